"""Autopackaging: the Dockerfile for a script or module, as gcloud's `--local-package-path` generates it.

Source of the rules: gcloud 528, `command_lib/ai/docker/build.py`. docs/autopackaging.md lists the differences.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator

from ..schema import shapes

PACKAGE_FOLDER = "package"
"""The folder of the build context that holds the files, so that none of them can replace the Dockerfile."""
WORKDIR = "/usr/app"
HOME = "/home"
SETUP = "setup.py"
REQUIREMENTS = "requirements.txt"
SETUP_INPUTS = ("setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "README.rst", "README", REQUIREMENTS)
"""Files that a setup.py often reads."""
INSTALL_FILES = (SETUP, REQUIREMENTS)
"""Files that are used if they are in the package's path."""
_PREBUILT = re.compile(r"(us|europe|asia)-docker[.]pkg[.]dev/vertex-ai/training/(tf|scikit-learn|pytorch|xgboost)-.+")


def get_main_file(package: shapes.Package) -> str:
    """Return the script, or the file of the module, relative to the package's path."""
    if "module" in package:
        return package["module"].replace(".", "/") + ".py"
    return posixpath.normpath(package["script"])


def list_copied_folders(package: shapes.Package, copyable_files: Collection[str]) -> list[str]:
    """Return the folders that are copied, each under its own name: `extraDirs`, then the main file's.

    A module's folder is its outermost Python package, as its code may import any part of that. `copyable_files` are
    the files of the package's path, relative to it.
    """
    folder = posixpath.dirname(get_main_file(package)) or "."
    while "module" in package and f"{posixpath.dirname(folder)}/__init__.py" in copyable_files:
        folder = posixpath.dirname(folder)
    return [*(posixpath.normpath(extra) for extra in package.get("extraDirs", [])), folder]


def list_copied_paths(package: shapes.Package, copyable_files: Collection[str]) -> list[str]:
    """Return all files and folders of the package's path that the image contains."""
    return [
        *(name for name in INSTALL_FILES if name in copyable_files),
        *_list_files_that_setup_py_may_read(copyable_files),
        *map(posixpath.normpath, package.get("extraPackages", [])),
        *list_copied_folders(package, copyable_files),
    ]


def render_dockerfile(package: shapes.Package, copyable_files: Collection[str]) -> str:
    """Return the text of the Dockerfile, which copies files from `PACKAGE_FOLDER` in its context."""
    return "\n".join(_iterate_dockerfile_lines(package, copyable_files)) + "\n"


def _iterate_dockerfile_lines(package: shapes.Package, copyable_files: Collection[str]) -> Iterator[str]:
    base = package["baseImage"]
    is_prebuilt = _PREBUILT.fullmatch(base) is not None
    pip = "pip3 install --no-cache-dir" if is_prebuilt else "pip install --no-cache-dir"
    yield f"FROM {base}"
    yield "# Made by root, for whatever user the container runs as."
    yield f"RUN mkdir -m 777 -p {WORKDIR} {HOME}"
    yield from (f"WORKDIR {WORKDIR}", f"ENV HOME={HOME}", "ENV PYTHONDONTWRITEBYTECODE=1")
    if is_prebuilt:
        yield "RUN rm -rf /var/sitecustomize"
    folders = list_copied_folders(package, copyable_files)
    copy_folders = [_render_copy_from_package(folder, folder) for folder in folders]
    if SETUP in copyable_files:
        for name in (SETUP, *_list_files_that_setup_py_may_read(copyable_files)):
            yield _render_copy_from_package(name, name)
        yield from copy_folders
        yield f"RUN {pip} ."
    if REQUIREMENTS in copyable_files:
        yield _render_copy_from_package(REQUIREMENTS, REQUIREMENTS)
        yield f"RUN {pip} -r ./{REQUIREMENTS}"
    for extra in package.get("extraPackages", []):
        name = posixpath.basename(extra)
        yield _render_copy_from_package(extra, name)
        yield f"RUN {pip} {shlex.quote(name)}"
    for requirement in package.get("requirements", []):
        yield f"RUN {pip} --upgrade {shlex.quote(requirement)}"
    if SETUP not in copyable_files:
        yield from copy_folders
    yield f"ENTRYPOINT {json.dumps(_get_entrypoint(package, is_prebuilt))}"


def _get_entrypoint(package: shapes.Package, is_prebuilt: bool) -> list[str]:
    python = "python3" if is_prebuilt else "python"
    if "module" in package:
        return [python, "-m", package["module"]]
    script = get_main_file(package)
    return [python if script.endswith(".py") else "/bin/bash", script]


def _list_files_that_setup_py_may_read(copyable_files: Collection[str]) -> list[str]:
    return [name for name in SETUP_INPUTS if name in copyable_files] if SETUP in copyable_files else []


def _render_copy_from_package(path_in_package: str, destination: str) -> str:
    return f"COPY {json.dumps([posixpath.normpath(posixpath.join(PACKAGE_FOLDER, path_in_package)), destination])}"
