"""Autopackaging: an image of a script or module, with the Dockerfile that gcloud's `--local-package-path` generates.

Source of the rules: gcloud 528, `command_lib/ai/docker/build.py`. docs/autopackaging.md lists the differences.
"""

import json
import posixpath
import re
import shlex
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from vertex_api.names import join_names
from vertex_api.validation.formats import Violation

from ..schema import shapes
from .context import BuildContext, included
from .dockerfile import explain_absent

PACKAGE_FOLDER = "package"
"""The folder of the build context that holds the files, so that none of them can replace the Dockerfile."""
_WORKDIR, _HOME = "/usr/app", "/home"
_SETUP, _REQUIREMENTS, _PROJECT = "setup.py", "requirements.txt", "pyproject.toml"
_MAX_PROJECT_BYTES = 1 << 20
_SETUP_CFG = "setup.cfg"
_OTHER_REQUIREMENTS = ("Pipfile", "environment.yaml", "environment.yml")
"""Where Pipenv and conda have them."""
_POETRY_SOURCES = frozenset({"git", "path", "source", "url"})
"""Keys of a dependency that Poetry takes from elsewhere (its page "Dependency specification")."""
_SETUP_INPUTS = ("setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "README.rst", "README", _REQUIREMENTS)
"""Files that a setup.py often reads."""
_INSTALL_FILES = (_SETUP, _REQUIREMENTS)
"""Files that are used if they are in the package's path."""
_PREBUILT = re.compile(r"(us|europe|asia)-docker[.]pkg[.]dev/vertex-ai/training/(tf|scikit-learn|pytorch|xgboost)-.+")


@dataclass(frozen=True)
class PackageContext(BuildContext):
    """The files of a folder that a generated Dockerfile copies, and that Dockerfile.

    The digest covers everything that decides what the image holds, and none of the folder's other files.
    """

    package: shapes.Package = field(kw_only=True)

    @cached_property
    def files(self) -> Mapping[str, str]:
        paths = _at_or_below(self.folder, self._recipe.copied_paths, self._recipe.copyable)
        return {f"{PACKAGE_FOLDER}/{path}": path for path in sorted(paths)}

    @cached_property
    def texts(self) -> Mapping[str, str]:
        return {self.dockerfile: self._recipe.dockerfile}

    def place(self, image_name: str, line: int) -> str:  # noqa: ARG002
        return f"images.{image_name}.package.baseImage"

    @property
    def warning(self) -> str:
        return self._dependencies.warning

    @cached_property
    def _recipe(self) -> "Recipe":
        return Recipe(self.package, self._copyable, self._dependencies.installed)

    @cached_property
    def _dependencies(self) -> "Dependencies":
        return Dependencies.of(self.folder, self.package, self._copyable)

    @cached_property
    def _copyable(self) -> set[str]:
        return copyable(self.folder, self.package)


def copyable(folder: Path, package: shapes.Package) -> set[str]:
    """Return the files of a package's path that may be copied.

    Excludes what Python writes when the code runs, which gcloud deletes, and `.dockerignore`, to which the classic
    builder adds a line that differs in each of gcloud's builds.
    """
    main_folder = posixpath.dirname(_main_file(package))
    return {
        path
        for path in included(folder, None)
        if not (path == ".dockerignore" or "__pycache__" in path.split("/"))
        and not (path.endswith((".pyc", ".pyo")) and posixpath.dirname(path) == main_folder)
    }


@dataclass(frozen=True)
class Dependencies:
    """What a package's path says it needs, where neither setup.py, requirements.txt nor the declaration do.

    `installed` are requirements as pip takes them. `unread` are names by where they are declared.
    """

    installed: Sequence[str] = ()
    unread: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, package: shapes.Package, copyable_files: Collection[str]) -> "Dependencies":
        """Read pyproject.toml, of which gcloud installs nothing, and see what other tools have.

        Installed is only what an index has under that name: not what a tool has elsewhere, such as
        `[tool.uv.sources]`, where another's package may have the name on the index.
        """
        if {_SETUP, _REQUIREMENTS} & {*copyable_files} or package.get("requirements") or package.get("extraPackages"):
            return cls()
        unread: dict[str, Sequence[str]] = {file: () for file in _OTHER_REQUIREMENTS if file in copyable_files}
        if _SETUP_CFG in copyable_files and b"install_requires" in _read(folder / _SETUP_CFG):
            unread[_SETUP_CFG] = ("install_requires",)
        try:
            declared = tomllib.loads(_read(folder / _PROJECT).decode() if _PROJECT in copyable_files else "")
            project, tools = declared.get("project", {}), declared.get("tool", {})
            needed = [str(each) for each in project.get("dependencies", ())]
            sources = {_canonical(name) for name in tools.get("uv", {}).get("sources", {})}
            poetry = {
                _canonical(name): set(each) if isinstance(each, dict) else set[str]()
                for name, each in tools.get("poetry", {}).get("dependencies", {}).items()
                if name != "python" and not (isinstance(each, dict) and each.get("optional"))
            }
            dynamic = [*project.get("dynamic", ())]
        except (OSError, ValueError, AttributeError, TypeError):  # pip would not read it either
            return cls((), unread)
        elsewhere = sources | {name for name, keys in poetry.items() if keys & _POETRY_SOURCES}
        installed = tuple(each for each in needed if each.isprintable() and _canonical(each) not in elsewhere)
        names = {_canonical(each) for each in installed}
        in_project = {_canonical(each) for each in needed}
        unread |= {
            f"{_PROJECT}, {table}": found
            for table, found in {
                "[tool.uv.sources]": sorted(sources & in_project),
                "[tool.poetry.dependencies]": sorted(poetry.keys() - names),
                "[project] dynamic": ["dependencies"] if "dependencies" in dynamic else [],
            }.items()
            if found
        }
        return cls(installed, unread)

    @property
    def warning(self) -> str:
        """What is not installed, and what to do; "" if there is nothing."""
        found = [f"{place} ({join_names(names)})" if names else place for place, names in self.unread.items()]
        if not found:
            return ""
        return (
            f"what {join_names(found)} asks for is not installed; write it to a {_REQUIREMENTS} in the package's path, "
            "or into requirements or extraPackages"
        )


def _read(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(_MAX_PROJECT_BYTES)


def _canonical(requirement: str) -> str:
    """Return the name in a requirement as indexes compare it (PEP 503)."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
    return re.sub(r"[-_.]+", "-", match[0]).lower() if match else ""


def _main_file(package: shapes.Package) -> str:
    """Return the script, or the file of the module, relative to the package's path."""
    if "module" in package:
        return package["module"].replace(".", "/") + ".py"
    return posixpath.normpath(package["script"])


def _at_or_below(folder: Path, selected: Iterable[str], copyable_files: Iterable[str]) -> set[str]:
    """Return the files that are one of the `selected` paths or are below one; for a link, the link and its target."""
    root = folder.resolve()
    paths = {*selected}
    targets = {(folder / path).resolve() for path in paths}
    paths |= {target.relative_to(root).as_posix() for target in targets if target.is_relative_to(root)}
    if "." in paths:
        return {*copyable_files}
    parents = {"/".join(parts[:end]) for path in paths for parts in [path.split("/")] for end in range(len(parts))}
    folders = tuple(f"{path}/" for path in paths)
    return {file for file in copyable_files if file in paths or file in parents or file.startswith(folders)}


@dataclass(frozen=True)
class Recipe:
    """What an image copies of a package's path, and how. `copyable` are the files there, relative to it.

    `dependencies` are those of a project without a setup.py or requirements.
    """

    package: shapes.Package
    copyable: Collection[str]
    dependencies: Sequence[str] = ()

    @property
    def copied_paths(self) -> list[str]:
        """All files and folders of the package's path that the image contains."""
        return [
            *(name for name in _INSTALL_FILES if name in self.copyable),
            *self._setup_inputs,
            *map(posixpath.normpath, self.package.get("extraPackages", [])),
            *self.folders,
        ]

    @property
    def folders(self) -> list[str]:
        """The folders that are copied, each under its own name: `extraDirs`, then the main file's.

        A module's folder is its outermost Python package, as its code may import any part of that.
        """
        folder = posixpath.dirname(_main_file(self.package)) or "."
        while "module" in self.package and f"{posixpath.dirname(folder)}/__init__.py" in self.copyable:
            folder = posixpath.dirname(folder)
        return [*(posixpath.normpath(extra) for extra in self.package.get("extraDirs", [])), folder]

    @property
    def dockerfile(self) -> str:
        """The text of the Dockerfile, which copies files from `PACKAGE_FOLDER` in its context."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        is_prebuilt = _PREBUILT.fullmatch(self.package["baseImage"]) is not None
        pip = "pip3 install --no-cache-dir" if is_prebuilt else "pip install --no-cache-dir"
        yield f"FROM {self.package['baseImage']}"
        yield "# Made by root, for whatever user the container runs as."
        yield f"RUN mkdir -m 777 -p {_WORKDIR} {_HOME}"
        yield from (f"WORKDIR {_WORKDIR}", f"ENV HOME={_HOME}", "ENV PYTHONDONTWRITEBYTECODE=1")
        if is_prebuilt:
            yield "RUN rm -rf /var/sitecustomize"
        copy_folders = [_copy(folder, folder) for folder in self.folders]
        if _SETUP in self.copyable:
            for name in (_SETUP, *self._setup_inputs):
                yield _copy(name, name)
            yield from copy_folders
            yield f"RUN {pip} ."
        if _REQUIREMENTS in self.copyable:
            yield _copy(_REQUIREMENTS, _REQUIREMENTS)
            yield f"RUN {pip} -r ./{_REQUIREMENTS}"
        if self.dependencies:
            yield f"RUN {pip} {' '.join(map(shlex.quote, self.dependencies))}"
        for extra in self.package.get("extraPackages", []):
            name = posixpath.basename(extra)
            yield _copy(extra, name)
            yield f"RUN {pip} {shlex.quote(name)}"
        for requirement in self.package.get("requirements", []):
            yield f"RUN {pip} --upgrade {shlex.quote(requirement)}"
        if _SETUP not in self.copyable:
            yield from copy_folders
        yield f"ENTRYPOINT {json.dumps(self._entrypoint('python3' if is_prebuilt else 'python'))}"

    def _entrypoint(self, python: str) -> list[str]:
        if "module" in self.package:
            return [python, "-m", self.package["module"]]
        script = _main_file(self.package)
        return [python if script.endswith(".py") else "/bin/bash", script]

    @property
    def _setup_inputs(self) -> list[str]:
        return [name for name in _SETUP_INPUTS if name in self.copyable] if _SETUP in self.copyable else []


def _copy(path: str, destination: str) -> str:
    return f"COPY {json.dumps([posixpath.normpath(posixpath.join(PACKAGE_FOLDER, path)), destination])}"


def violations(folder: Path, package: shapes.Package) -> Iterator[Violation]:
    """Find what prevents a package from being built; `folder` is its path, an existing folder."""
    if ("script" in package) == ("module" in package):
        yield (), "needs either a script (.py, or anything else for Bash) or a module to run"
        return
    named_paths = [
        (("script",) if "script" in package else ("module",), _main_file(package), False),
        *((("extraPackages", index), path, False) for index, path in enumerate(package.get("extraPackages", []))),
        *((("extraDirs", index), path, True) for index, path in enumerate(package.get("extraDirs", []))),
        *((("path",), name, False) for name in _INSTALL_FILES if (folder / name).is_file()),
    ]
    misplaced = [
        (key, message)
        for key, path, is_folder in named_paths
        if (message := _misplacement(folder, path, is_folder=is_folder))
    ]
    yield from misplaced
    if misplaced:
        return
    copyable_files = copyable(folder, package)
    for key, path, _ in named_paths:
        if not _at_or_below(folder, [posixpath.normpath(path)], copyable_files):
            yield key, f'"{path}" {explain_absent(folder, path)}'


def _misplacement(folder: Path, path: str, *, is_folder: bool) -> str | None:
    """Return why a path cannot be copied from a folder; `None` if it can."""
    target = (folder / path).resolve()
    if posixpath.isabs(path) or not target.is_relative_to(folder.resolve()):
        return f'"{path}" is outside the package\'s path; move it there, or set path to a folder that contains both'
    if target.is_dir() if is_folder else target.is_file():
        return None
    return f'there is no {"folder" if is_folder else "file"} "{path}" in the package\'s path; write it relative to that'
