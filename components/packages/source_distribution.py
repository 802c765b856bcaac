"""Source distributions for `packageUris`: an archive that pip builds and installs, equal for equal files.

A folder is archived as it is, with its own pyproject.toml or setup.py. No build backend is run: that would need one to
be installed, and each of its versions would make another archive. So what a backend takes from a repository's history
(a version from git's tags) is missing. A script is wrapped as Google's SDK does in `CustomJob.from_local_script` (2.7,
`utils/source_utils.py`), under the same names.
"""

import gzip
import hashlib
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..files.cached_digests import TAG_LENGTH
from ..files.reproducible_tar_archives import ArchiveEntries
from ..schema import shapes

SCRIPT_PACKAGE = "aiplatform_custom_trainer_script"
"""The package that a script is installed as; a job runs its module `task`."""
_VERSION = "0.1"
_SETUP = """\
from setuptools import find_packages, setup

setup(name={name!r}, version={version!r}, packages=find_packages(), install_requires={requirements!r})
"""
_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


@dataclass(frozen=True)
class SourceDistribution:
    """The content of a source distribution, which is archived in one `top_folder`."""

    entries: ArchiveEntries
    top_folder: str

    @classmethod
    def from_declaration(cls, root: Path, name: str, package: shapes.PythonPackage) -> "SourceDistribution":
        """Return the source distribution of a declared package, whose paths are relative to `root`."""
        if "path" in package:
            folder = root / package["path"]
            return cls(ArchiveEntries(folder, {path: path for path in _walk_source_files(folder)}, {}), name)
        script = root / package["script"]
        metadata = {"name": SCRIPT_PACKAGE, "version": _VERSION}
        texts = {
            "PKG-INFO": _METADATA.format(**metadata),
            "setup.py": _SETUP.format(**metadata, requirements=list(package.get("requirements", []))),
            f"{SCRIPT_PACKAGE}/__init__.py": "",
        }
        files = {f"{SCRIPT_PACKAGE}/task.py": script.name}
        return cls(ArchiveEntries(script.parent, files, texts), f"{SCRIPT_PACKAGE}-{_VERSION}")

    @cached_property
    def tag(self) -> str:
        """The first digits of the digest of everything in the archive."""
        text = json.dumps([self.top_folder, self.entries.digests_by_path], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:TAG_LENGTH]

    def build_archive_bytes(self) -> bytes:
        """Return the archive, a `.tar.gz`."""
        stream = io.BytesIO()
        with gzip.GzipFile(fileobj=stream, mode="wb", filename="", mtime=0) as compressed:
            self.entries.write_tar(compressed, self.top_folder)
        return stream.getvalue()


def _walk_source_files(folder: Path) -> Iterator[str]:
    """Yield the files of a folder, without hidden folders and what Python and its build tools write."""
    for parent, folders, names in os.walk(folder):
        generated = ("__pycache__", "build", "dist") if Path(parent) == folder else ("__pycache__",)
        folders[:] = [
            name for name in folders if not (name.startswith(".") or name.endswith(".egg-info") or name in generated)
        ]
        for path in (Path(parent, name) for name in (*names, *folders) if not name.endswith((".pyc", ".pyo"))):
            if path.is_symlink() or path.is_file():
                yield path.relative_to(folder).as_posix()
