"""This checkout, installed in `.venv`: links to its packages, and the commands `vertex-emulator` and `vertex-training`.

`pip install --editable` would do the same with a build, and with a hook that every Python program runs when it starts.
Links need neither; `flit install --symlink` makes the same.
"""

import compileall
import importlib.util
import sys
import tomllib
from pathlib import Path

from tools.setup import CHECKOUT, VENV
from tools.setup.programs import Output

PACKAGES = {"vertex_training": "components", "vertex_api": "vertex_api", "vertex_emulator": "vertex_emulator"}
"""By the name that a package is imported by: its folder, as in setup.py."""
# `sh` starts the interpreter, because the first line of a script cannot hold a path with spaces.
_SCRIPT = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys
from {module} import {function}
sys.exit({function}())
"""


def find() -> str | None:
    """Describe the links and commands; return `None` if one of them or byte code is missing or another checkout's."""
    try:
        is_current = all(link.resolve(strict=True) == target.resolve() for link, target in links().items()) and all(
            (VENV / "bin" / name).read_text() == text for name, text in scripts().items()
        )
    except OSError:
        return None
    return _description() if is_current and not _uncompiled() else None


def make(output: Output) -> str:  # noqa: ARG001
    """Link the packages, write the commands, and compile the modules if Python may not do so when it runs them."""
    for link, target in links().items():
        new = link.with_name(f".{link.name}.new")
        new.unlink(missing_ok=True)
        new.symlink_to(target, target_is_directory=True)
        new.replace(link)
    for name, text in scripts().items():
        file = VENV / "bin" / name
        file.write_text(text)
        file.chmod(0o755)
    for module in _uncompiled():
        compileall.compile_file(module, quiet=2)
    return _description()


def _description() -> str:
    return f"Commands: {', '.join(sorted(scripts()))} in {VENV.name}/bin"


def _uncompiled() -> list[Path]:
    """Return the modules that each program would compile for itself: none if the first may keep what it compiles.

    Where the environment forbids that (`PYTHONDONTWRITEBYTECODE`, as in many containers), pip compiles what it
    installs all the same.
    """
    if not sys.dont_write_bytecode:
        return []
    modules = (module for folder in PACKAGES.values() for module in (CHECKOUT / folder).rglob("*.py"))
    return [module for module in modules if not _is_compiled(module)]


def _is_compiled(module: Path) -> bool:
    compiled = Path(importlib.util.cache_from_source(str(module)))
    return compiled.exists() and compiled.stat().st_mtime >= module.stat().st_mtime


def links() -> dict[Path, Path]:
    """Return what each link in the environment's site-packages leads to."""
    (site,) = VENV.glob("lib/python*/site-packages")
    return {site / name: CHECKOUT / folder for name, folder in PACKAGES.items()}


def scripts() -> dict[str, str]:
    """Return the text of each script of `[project.scripts]` in pyproject.toml by its name."""
    declared = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["scripts"]
    targets = {name: target.partition(":") for name, target in declared.items()}
    return {
        name: _SCRIPT.format(python=VENV / "bin" / "python", module=module, function=function)
        for name, (module, _, function) in targets.items()
    }
