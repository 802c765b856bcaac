"""The rules that declarations of Python packages must follow."""

from collections.abc import Iterator
from pathlib import Path

from vertex_api.validation.rules import Violation

from ..schema import shapes
from ..schema.source import explain_outside

_BUILD_FILES = ("pyproject.toml", "setup.py")


def find_python_package_violations(root: Path, package: shapes.PythonPackage) -> Iterator[Violation]:
    """Find every rule that a declared package breaks; `root` is the project's folder."""
    if ("path" in package) == ("script" in package):
        yield (), "needs either the path of a folder with a pyproject.toml or setup.py, or a script"
        return
    key, path = ("path", package["path"]) if "path" in package else ("script", package["script"])
    build_files = " or ".join(_BUILD_FILES)
    if Path(path).is_absolute():
        yield (key,), f'"{path}" must be relative to the project\'s folder'
    elif message := explain_outside(root, path):
        yield (key,), message
    elif key == "script" and not (path.endswith(".py") and (root / path).is_file()):
        yield (key,), f'"{path}" is not a Python file in {root.name}/'
    elif key == "path" and not any((root / path / file).is_file() for file in _BUILD_FILES):
        yield (key,), f'"{path}" is not a folder with a {build_files} in {root.name}/; write one for pip'
    if key == "path" and "requirements" in package:
        yield ("requirements",), f"is for a script; declare those of a folder in its {build_files}"
