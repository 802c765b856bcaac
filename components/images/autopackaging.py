"""Autopackaging: the Dockerfile that makes an image of a script or module, as gcloud's `--local-package-path` does.

Source of the rules: gcloud 528, `command_lib/ai/docker/build.py`. docs/autopackaging.md says where this differs.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator

from ..schema import shapes

BELOW = "package"
"""The folder of the build context that holds the files, so that none of them can meet the Dockerfile."""
WORKDIR = "/usr/app"
HOME = "/home"
SETUP = "setup.py"
REQUIREMENTS = "requirements.txt"
READ_BY_SETUP = ("setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "README.rst", "README", REQUIREMENTS)
"""What a setup.py reads, most often, when it is run."""
FOUND = (SETUP, REQUIREMENTS)
"""What is used where it lies in the package's path."""
_PREBUILT = re.compile(r"(us|europe|asia)-docker[.]pkg[.]dev/vertex-ai/training/(tf|scikit-learn|pytorch|xgboost)-.+")


def main_file(package: shapes.Package) -> str:
    """The script, or the file of the module, relative to the package's path."""
    if "module" in package:
        return package["module"].replace(".", "/") + ".py"
    return posixpath.normpath(package["script"])


def sources(package: shapes.Package, present: Collection[str]) -> list[str]:
    """The folders that are copied, each under its own name: `extraDirs`, then the main file's.

    A module's is the outermost package that it belongs to, as its code may import any part of that. `present` are the
    files of the package's path, relative to it.
    """
    folder = posixpath.dirname(main_file(package)) or "."
    while "module" in package and f"{posixpath.dirname(folder)}/__init__.py" in present:
        folder = posixpath.dirname(folder)
    return [*(posixpath.normpath(extra) for extra in package.get("extraDirs", [])), folder]


def taken(package: shapes.Package, present: Collection[str]) -> list[str]:
    """All files and folders of the package's path that the image is made of."""
    found = [name for name in FOUND if name in present]
    found += _read_by_setup(present)
    return [*found, *map(posixpath.normpath, package.get("extraPackages", [])), *sources(package, present)]


def dockerfile(package: shapes.Package, present: Collection[str]) -> str:
    """The Dockerfile. It finds the files below `BELOW` in its context; `present` as in `sources`."""
    return "\n".join(_instructions(package, present)) + "\n"


def _instructions(package: shapes.Package, present: Collection[str]) -> Iterator[str]:
    base = package["baseImage"]
    prebuilt = _PREBUILT.fullmatch(base) is not None
    pip = "pip3 install --no-cache-dir" if prebuilt else "pip install --no-cache-dir"
    yield f"FROM {base}"
    yield "# Made by root, for whatever user the container runs as."
    yield f"RUN mkdir -m 777 -p {WORKDIR} {HOME}"
    yield f"WORKDIR {WORKDIR}"
    yield f"ENV HOME={HOME}"
    yield "ENV PYTHONDONTWRITEBYTECODE=1"
    if prebuilt:
        yield "RUN rm -rf /var/sitecustomize"
    folders = [_copy(folder, folder) for folder in sources(package, present)]
    if SETUP in present:
        for name in (SETUP, *_read_by_setup(present)):
            yield _copy(name, name)
        yield from folders
        yield f"RUN {pip} ."
    if REQUIREMENTS in present:
        yield _copy(REQUIREMENTS, REQUIREMENTS)
        yield f"RUN {pip} -r ./{REQUIREMENTS}"
    for extra in package.get("extraPackages", []):
        name = posixpath.basename(extra)
        yield _copy(extra, name)
        yield f"RUN {pip} {shlex.quote(name)}"
    for requirement in package.get("requirements", []):
        yield f"RUN {pip} --upgrade {shlex.quote(requirement)}"
    if SETUP not in present:
        yield from folders
    yield f"ENTRYPOINT {json.dumps(_entrypoint(package, prebuilt))}"


def _entrypoint(package: shapes.Package, prebuilt: bool) -> list[str]:
    python = "python3" if prebuilt else "python"
    if "module" in package:
        return [python, "-m", package["module"]]
    script = main_file(package)
    return [python if script.endswith(".py") else "/bin/bash", script]


def _read_by_setup(present: Collection[str]) -> list[str]:
    return [name for name in READ_BY_SETUP if name in present] if SETUP in present else []


def _copy(source: str, to: str) -> str:
    return f"COPY {json.dumps([posixpath.normpath(posixpath.join(BELOW, source)), to])}"
