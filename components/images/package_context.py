"""The build context of a package: the files that its image is made of, below one folder, and a Dockerfile beside it."""

import hashlib
import io
import posixpath
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vertex_api.validation.rules import Violation

from ..files.archives import add_file
from ..files.digests import digests
from ..schema import shapes
from . import autopackaging as packaging
from .context import BuildContext, let_through

DOCKERFILE = "Dockerfile"


@dataclass(frozen=True)
class PackageContext(BuildContext):
    """A folder of which a part is copied by a Dockerfile that is written here.

    `text` is that Dockerfile's, `taken` the files it copies. `files` has both by their paths in the archive, so the
    digest covers all that decides what the image holds, and none of the folder's other files.
    """

    text: str = ""
    taken: tuple[str, ...] = ()

    @classmethod
    def of(cls, root: Path, package: shapes.Package, platform: str) -> "PackageContext":
        """The context of a declared package, whose path is relative to `root`."""
        folder = root / package["path"]
        present = _present(folder, package)
        return cls(
            folder=folder,
            dockerfile=DOCKERFILE,
            build_args={},
            target=None,
            platform=platform,
            text=packaging.dockerfile(package, present),
            taken=tuple(sorted(_below(folder, packaging.taken(package, present), present))),
        )

    @cached_property
    def paths(self) -> list[str]:
        """Every file that is read of the folder, relative to it."""
        return [*self.taken]

    @property
    def count(self) -> int:
        """How many files there are: those that are copied, and the Dockerfile."""
        return len(self.taken) + 1

    @cached_property
    def files(self) -> dict[str, str]:
        """Digest of every file by its path in the archive."""
        own = digests(self.folder, self.taken)
        return {DOCKERFILE: hashlib.sha256(self.text.encode()).hexdigest()} | {
            posixpath.join(packaging.BELOW, path): digest for path, digest in own.items()
        }

    def _about(self) -> dict[str, Any]:
        return super()._about() | {"text": self.text}

    def _add(self, tar: tarfile.TarFile, path: str) -> None:
        if path == DOCKERFILE:
            entry = tarfile.TarInfo(path)
            entry.size = len(self.text.encode())
            tar.addfile(entry, io.BytesIO(self.text.encode()))
        else:
            add_file(tar, self.folder / path.removeprefix(f"{packaging.BELOW}/"), path)


def problems(root: Path, package: shapes.Package) -> Iterator[Violation]:
    """What keeps a package from being built; its path is a folder in `root`."""
    if ("script" in package) == ("module" in package):
        yield (), "needs either a script (.py, or anything else for Bash) or a module to run"
        return
    folder = root / package["path"]
    named = [
        (("script",) if "script" in package else ("module",), packaging.main_file(package), False),
        *((("extraPackages", index), path, False) for index, path in enumerate(package.get("extraPackages", []))),
        *((("extraDirs", index), path, True) for index, path in enumerate(package.get("extraDirs", []))),
        *((("path",), name, False) for name in packaging.FOUND if (folder / name).is_file()),
    ]
    broken = [(key, message) for key, path, is_dir in named if (message := _misplaced(folder, path, is_dir=is_dir))]
    yield from broken
    if broken:
        return
    present = _present(folder, package)
    for key, path, _ in named:
        if not _below(folder, [posixpath.normpath(path)], present):
            yield key, f'"{path}" holds nothing, or .dockerignore leaves it out; let it through by a line "!{path}"'


def _misplaced(folder: Path, path: str, *, is_dir: bool) -> str | None:
    """Why a path cannot be copied from a folder."""
    inside = folder.resolve()
    found = (folder / path).resolve()
    if posixpath.isabs(path) or not found.is_relative_to(inside):
        return f'"{path}" leads out of the package\'s path; move it there, or set path to a folder that holds both'
    if not (found.is_dir() if is_dir else found.is_file()):
        return (
            f'there is no {"folder" if is_dir else "file"} "{path}" in the package\'s path; write it relative to that'
        )
    return None


def _present(folder: Path, package: shapes.Package) -> set[str]:
    """The files of a package's path that may be copied.

    Without what Python leaves behind when the code is run, which gcloud deletes, and without `.dockerignore`, to which
    the classic builder adds a line that is never the same when gcloud builds.
    """
    beside = posixpath.dirname(packaging.main_file(package))
    return {
        path
        for path in let_through(folder, None)
        if path != ".dockerignore"
        and "__pycache__" not in path.split("/")
        and not (path.endswith((".pyc", ".pyo")) and posixpath.dirname(path) == beside)
    }


def _below(folder: Path, chosen: Iterable[str], present: Iterable[str]) -> set[str]:
    """The files that are one of `chosen` or lie below one; of a link, the link and what it leads to."""
    inside = folder.resolve()
    wanted = {*chosen}
    ends = {(folder / path).resolve() for path in wanted}
    wanted |= {end.relative_to(inside).as_posix() for end in ends if end.is_relative_to(inside)}
    if "." in wanted:
        return {*present}
    on_the_way = {"/".join(parts[:end]) for path in wanted for parts in [path.split("/")] for end in range(len(parts))}
    return {
        path for path in present if path in wanted or path in on_the_way or any(_is_below(path, one) for one in wanted)
    }


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")
