"""The commands `vertex-emulator` and `vertex-training`: scripts in `.venv` that run this checkout.

An editable installation would need a build, and a hook that every Python program runs when it starts.
"""

import tomllib

from tools.setup.console import Console
from tools.setup.folders import CHECKOUT, VENV

INSTALLED_AS = {"vertex_training": "components"}
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


def find() -> str | None:
    """What is in place, in one line; None when a script is missing or runs another checkout."""
    try:
        is_current = all((VENV / "bin" / name).read_text() == text for name, text in scripts().items())
    except OSError:
        return None
    return _line() if is_current else None


def make(console: Console) -> str:  # noqa: ARG001
    """Write the scripts into `.venv/bin`."""
    for name, text in scripts().items():
        file = VENV / "bin" / name
        file.write_text(text)
        file.chmod(0o755)
    return _line()


def scripts() -> dict[str, str]:
    """Return the text of each script of `[project.scripts]` in pyproject.toml by its name."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    texts = {}
    for name, target in project["scripts"].items():
        module, _, function = target.partition(":")
        package, dot, rest = module.partition(".")
        module = INSTALLED_AS.get(package, package) + dot + rest
        texts[name] = _SCRIPT.format(
            python=VENV / "bin" / "python", checkout=str(CHECKOUT), module=module, function=function
        )
    return texts


def _line() -> str:
    return f"Commands: {', '.join(sorted(scripts()))} in {VENV.name}/bin"
