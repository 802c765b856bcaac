"""The rules for the package that an image is built from: what its files must be, and where."""

import posixpath
from collections.abc import Iterator
from pathlib import Path

from vertex_api.validation.rules import Violation

from ..schema import shapes
from .package_context import find_copyable_files, select_files_at_or_below_and_link_targets
from .package_dockerfile import INSTALL_FILES, get_main_file


def find_package_violations(package_folder: Path, declared_package: shapes.Package) -> Iterator[Violation]:
    """Find what prevents a package from being built; `package_folder` is its path, an existing folder."""
    if ("script" in declared_package) == ("module" in declared_package):
        yield (), "needs either a script (.py, or anything else for Bash) or a module to run"
        return
    named_paths = [
        (("script",) if "script" in declared_package else ("module",), get_main_file(declared_package), False),
        *(
            (("extraPackages", index), path, False)
            for index, path in enumerate(declared_package.get("extraPackages", []))
        ),
        *((("extraDirs", index), path, True) for index, path in enumerate(declared_package.get("extraDirs", []))),
        *((("path",), name, False) for name in INSTALL_FILES if (package_folder / name).is_file()),
    ]
    misplaced = [
        (key, message)
        for key, path, is_folder in named_paths
        if (message := _explain_misplacement_or_none(package_folder, path, is_folder=is_folder))
    ]
    yield from misplaced
    if misplaced:
        return
    copyable_files = find_copyable_files(package_folder, declared_package)
    for key, path, _ in named_paths:
        if not select_files_at_or_below_and_link_targets(package_folder, [posixpath.normpath(path)], copyable_files):
            yield key, f'"{path}" is empty, or excluded by .dockerignore; include it by a line "!{path}"'


def _explain_misplacement_or_none(folder: Path, path: str, *, is_folder: bool) -> str | None:
    """Return why a path cannot be copied from a folder; `None` if it can."""
    target = (folder / path).resolve()
    if posixpath.isabs(path) or not target.is_relative_to(folder.resolve()):
        return f'"{path}" is outside the package\'s path; move it there, or set path to a folder that contains both'
    if target.is_dir() if is_folder else target.is_file():
        return None
    return f'there is no {"folder" if is_folder else "file"} "{path}" in the package\'s path; write it relative to that'
