"""The build context of an image: which files are in it, their digest, and the archive that is built.

What is hashed is what is sent: relative path, executable bit and bytes of every file that `.dockerignore` lets through.
Times, owners, umask, the order of files and empty folders (git keeps none) play no part.
"""

import hashlib
import json
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ..errors import ContextUnusable
from ..files.archives import add_file
from ..files.content_digests import TAG_LENGTH
from ..files.digests import digests
from ..files.folder_digests import remembered
from . import dockerignore


@dataclass(frozen=True)
class BuildContext:
    """A folder to build from, and how.

    `dockerfile` is relative to the folder, `platform` is such as "linux/amd64". `secret_ids` name what the build may
    read as `RUN --mount=type=secret,id=…`; their values are no part of the content.
    """

    folder: Path
    dockerfile: str
    build_args: Mapping[str, str]
    target: str | None
    platform: str
    secret_ids: tuple[str, ...] = ()

    @cached_property
    def paths(self) -> list[str]:
        """Every file that is read of the folder, relative to it, in no order."""
        found = let_through(self.folder, self.dockerfile)
        dockerfile = PurePosixPath(self.dockerfile).as_posix()
        return found if dockerfile in found else [*found, dockerfile]

    @cached_property
    def files(self) -> dict[str, str]:
        """Digest of every file by relative path; an executable file's or a link's digest differs from a plain one's."""
        try:
            return digests(self.folder, sorted(self.paths))
        except OSError as error:
            raise ContextUnusable.of(error) from error

    @property
    def count(self) -> int:
        """How many files there are, without reading any."""
        return len(self.paths)

    @cached_property
    def digest(self) -> str:
        """64 hex digits for all that decides what the image holds."""
        try:
            return remembered(self.folder, self.paths, json.dumps(self._about(), sort_keys=True), self._digest)
        except OSError as error:
            raise ContextUnusable.of(error) from error

    def _about(self) -> dict[str, Any]:
        """What decides it beside the files of the folder."""
        options = {
            "dockerfile": self.dockerfile,
            "buildArgs": dict(self.build_args),
            "target": self.target,
            "platform": self.platform,
        }
        return options | ({"secrets": list(self.secret_ids)} if self.secret_ids else {})

    def _digest(self) -> str:
        options = {**BuildContext._about(self), "dockerfile": self.files[self.dockerfile]}
        text = json.dumps([options, self.files], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def tag(self) -> str:
        """The image's tag: the first digits of the digest."""
        return self.digest[:TAG_LENGTH]

    def archive(self) -> IO[bytes]:
        """The context as a tar file, equal for equal files, so that layers are cached across machines."""
        file = tempfile.TemporaryFile()  # noqa: SIM115  (the caller closes it)
        with tarfile.open(fileobj=file, mode="w") as tar:
            for path in self.files:
                self._add(tar, path)
        file.seek(0)
        return file

    def _add(self, tar: tarfile.TarFile, path: str) -> None:
        add_file(tar, self.folder / path, path)


def let_through(folder: Path, dockerfile: str | None) -> list[str]:
    """The files of a folder that its ignore file lets through, relative to it, in no order.

    `dockerfile` names an ignore file of its own, which wins over the general one as with BuildKit; None where the
    folder's image has no Dockerfile in it. Raises ContextUnusable.
    """
    names = [f"{dockerfile}.dockerignore"] if dockerfile else []
    found = [folder / name for name in [*names, ".dockerignore"] if (folder / name).is_file()]
    try:
        rules = dockerignore.IgnoreRules.read(found[0]) if found else None
        return list(dockerignore.files(folder, rules))
    except OSError as error:
        raise ContextUnusable.of(error) from error
