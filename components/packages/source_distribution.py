"""Source distributions for `packageUris`: an archive that pip builds and installs, equal for equal files.

A folder is archived as it is, with its own pyproject.toml or setup.py: no build backend is run here, which would need
one to be installed and would make another archive with each of its versions. What a backend makes of a repository's
history (a version from git's tags) is therefore not there. A script is wrapped as Google's SDK does in
`CustomJob.from_local_script` (2.7, `utils/source_utils.py`), under the same names.
"""

import gzip
import hashlib
import io
import json
import os
import posixpath
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vertex_api.validation.rules import Violation

from ..files.archives import add_file
from ..files.content_digests import TAG_LENGTH
from ..files.digests import digests
from ..schema import shapes

SCRIPT_PACKAGE = "aiplatform_custom_trainer_script"
"""What a script is installed as; a job runs the module `task` of it."""
_VERSION = "0.1"
_BUILT_BY = ("pyproject.toml", "setup.py")
_SETUP = """\
from setuptools import find_packages, setup

setup(name={name!r}, version={version!r}, packages=find_packages(), install_requires={requirements!r})
"""
_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


@dataclass(frozen=True)
class SourceDistribution:
    """What is archived: `files` of a folder by their paths in the archive's one folder, and `texts` made for it."""

    folder: Path
    files: Mapping[str, str]
    texts: Mapping[str, str]
    top: str

    @classmethod
    def of(cls, root: Path, name: str, package: shapes.PythonPackage) -> "SourceDistribution":
        """That of a declared package; its paths are relative to `root`."""
        if "path" in package:
            folder = root / package["path"]
            return cls(folder, {path: path for path in sorted(_sources(folder))}, {}, name)
        script = root / package["script"]
        known = {"name": SCRIPT_PACKAGE, "version": _VERSION}
        texts = {
            "PKG-INFO": _METADATA.format(**known),
            "setup.py": _SETUP.format(**known, requirements=list(package.get("requirements", []))),
            f"{SCRIPT_PACKAGE}/__init__.py": "",
        }
        return cls(script.parent, {f"{SCRIPT_PACKAGE}/task.py": script.name}, texts, f"{SCRIPT_PACKAGE}-{_VERSION}")

    @cached_property
    def digests(self) -> dict[str, str]:
        """Digest of everything in the archive by its path there."""
        found = digests(self.folder, self.files.values())
        made = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in self.texts.items()}
        return dict(sorted({**{path: found[file] for path, file in self.files.items()}, **made}.items()))

    @property
    def tag(self) -> str:
        """The first digits of the digest of all that is in the archive."""
        text = json.dumps([self.top, self.digests], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:TAG_LENGTH]

    def archive(self) -> bytes:
        """The archive, a `.tar.gz`."""
        content = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=content, mode="wb", filename="", mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w") as tar,
        ):
            for path in self.digests:
                inside = posixpath.join(self.top, path)
                if path in self.texts:
                    entry = tarfile.TarInfo(inside)
                    entry.size = len(self.texts[path].encode())
                    tar.addfile(entry, io.BytesIO(self.texts[path].encode()))
                else:
                    add_file(tar, self.folder / self.files[path], inside)
        return content.getvalue()


def broken(root: Path, package: shapes.PythonPackage) -> Iterator[Violation]:
    """Every rule that a declared package breaks; `root` is the project's folder."""
    if ("path" in package) == ("script" in package):
        yield (), "needs either the path of a folder with a pyproject.toml or setup.py, or a script"
        return
    key = "path" if "path" in package else "script"
    named = package.get("path", package.get("script", ""))
    if Path(named).is_absolute():
        yield (key,), f'"{named}" must be relative to the project\'s folder'
    elif key == "script" and not (named.endswith(".py") and (root / named).is_file()):
        yield (key,), f'"{named}" is not a Python file in {root.name}/'
    elif key == "path" and not any((root / named / file).is_file() for file in _BUILT_BY):
        yield (key,), f'"{named}" is not a folder with a {" or ".join(_BUILT_BY)} in {root.name}/; write one for pip'
    if key == "path" and "requirements" in package:
        yield ("requirements",), f"is for a script; those of a folder stand in its {' or '.join(_BUILT_BY)}"


def _sources(folder: Path) -> Iterator[str]:
    """The files of a folder, without hidden folders and what Python and its build tools leave behind."""
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_left_behind(Path(at, name), folder)]
        linked = [name for name in folders if Path(at, name).is_symlink()]
        yield from (
            Path(at, name).relative_to(folder).as_posix()
            for name in names + linked
            if not name.endswith((".pyc", ".pyo")) and (Path(at, name).is_symlink() or Path(at, name).is_file())
        )


def _is_left_behind(path: Path, folder: Path) -> bool:
    if path.name.startswith(".") or path.name == "__pycache__" or path.name.endswith(".egg-info"):
        return True
    return path.parent == folder and path.name in ("build", "dist")
