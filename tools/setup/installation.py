"""The commands `vertex-emulator` and `vertex-training`: scripts in `.venv` that run this checkout.

An editable installation would need a build, and a hook that every Python program runs when it starts.
"""

import tomllib

from tools.setup.checkout_folders import CHECKOUT, VENV
from tools.setup.progress_output import ProgressOutput

PACKAGE_FOLDERS = {"vertex_training": "components"}
# `sh` starts the interpreter, because the first line of a script cannot hold a path with spaces.
_SCRIPT = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys
sys.path[0] = {checkout!r}
from {module} import {function}
sys.exit({function}())
"""


def describe_if_ready() -> str | None:
    """Describe the scripts; return `None` if one is missing or runs another checkout."""
    scripts = render_scripts_by_name()
    try:
        is_current = all((VENV / "bin" / name).read_text() == text for name, text in scripts.items())
    except OSError:
        return None
    return f"Commands: {', '.join(sorted(scripts))} in {VENV.name}/bin" if is_current else None


def set_up_and_describe(output: ProgressOutput) -> str:  # noqa: ARG001
    """Write the scripts into `.venv/bin`."""
    for name, text in render_scripts_by_name().items():
        file = VENV / "bin" / name
        file.write_text(text)
        file.chmod(0o755)
    return describe_if_ready() or ""


def render_scripts_by_name() -> dict[str, str]:
    """Return the text of each script of `[project.scripts]` in pyproject.toml by its name."""
    texts = {}
    for name, target in tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["scripts"].items():
        module, _, function = target.partition(":")
        package, dot, submodule = module.partition(".")
        module = PACKAGE_FOLDERS.get(package, package) + dot + submodule
        python, checkout = VENV / "bin" / "python", str(CHECKOUT)
        texts[name] = _SCRIPT.format(python=python, checkout=checkout, module=module, function=function)
    return texts
