"""Build contexts: the files that an image is built from, their digest, and the archive that a builder takes.

What is hashed is what is sent: relative path, executable bit and bytes of every file. Times, owners, umask, the order
of files and empty folders (git keeps none) do not matter.
"""

import hashlib
import json
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from ..errors import ContextUnusable
from ..files.cached_digests import TAG_LENGTH, get_cached_or_compute_folder_digest
from ..files.reproducible_tar_archives import ArchiveEntries
from .dockerignore import list_included_files


@dataclass(frozen=True)
class BuildContext(ABC):
    """A folder to build an image from, and the options of the build.

    `dockerfile` is the Dockerfile's path in the archive, `platform` is such as "linux/amd64". `secret_ids` are the
    secrets that the build may read as `RUN --mount=type=secret,id=…`; their values are no part of the content.
    """

    folder: Path
    dockerfile: str
    build_args: Mapping[str, str]
    target: str | None
    platform: str
    secret_ids: tuple[str, ...] = ()

    @property
    @abstractmethod
    def files_by_context_path(self) -> Mapping[str, str]:
        """Paths in the folder by path in the archive, in no order. Raises ContextUnusable."""

    @property
    def generated_texts_by_context_path(self) -> Mapping[str, str]:
        """Texts that are generated for the archive, by path there."""
        return {}

    @property
    def dockerfile_text(self) -> str:
        """The content of the Dockerfile."""
        return self.generated_texts_by_context_path.get(self.dockerfile) or (self.folder / self.dockerfile).read_text()

    @property
    def is_dockerfile_ignored(self) -> bool:
        """Whether an ignore file excludes the Dockerfile: Docker then reads it and lets no `COPY` see it."""
        return False

    @abstractmethod
    def render_base_image_location(self, declared_name: str, line: int) -> str:
        """Return where a declared image names the base image at a line of its Dockerfile, as a place for a message."""

    @property
    def entry_count(self) -> int:
        """How many entries the archive has; reads no file."""
        return len(self.files_by_context_path) + len(self.generated_texts_by_context_path)

    @property
    def digests_by_context_path(self) -> dict[str, str]:
        """The digest of every entry by path in the archive; an executable's or a link's differs from a plain file's."""
        return self._archive_entries.digests_by_path

    @cached_property
    def digest(self) -> str:
        """64 hex digits for everything that decides what the image holds."""
        options = json.dumps([self._digested_options, self.generated_texts_by_context_path], sort_keys=True)
        try:
            files = [*self._archive_entries.files.values()]
            return get_cached_or_compute_folder_digest(self.folder, files, options, self._compute_digest)
        except OSError as error:
            raise ContextUnusable.from_os_error(error) from error

    @property
    def tag(self) -> str:
        """The image's tag: the first digits of the digest."""
        return self.digest[:TAG_LENGTH]

    def open_archive(self) -> IO[bytes]:
        """Return the context as a tar file, which the caller closes.

        It is equal for equal files, so that layers are cached across machines.
        """
        file = tempfile.TemporaryFile()  # noqa: SIM115
        self._archive_entries.write_tar(file)
        file.seek(0)
        return file

    @cached_property
    def _archive_entries(self) -> ArchiveEntries:
        return ArchiveEntries(self.folder, self.files_by_context_path, self.generated_texts_by_context_path)

    @property
    def _digested_options(self) -> dict[str, Any]:
        options = {"dockerfile": self.dockerfile, "buildArgs": dict(self.build_args)}
        secrets = {"secrets": list(self.secret_ids)} if self.secret_ids else {}
        return options | {"target": self.target, "platform": self.platform} | secrets

    def _compute_digest(self) -> str:
        options = {**self._digested_options, "dockerfile": self.digests_by_context_path[self.dockerfile]}
        text = json.dumps([options, self.digests_by_context_path], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class DockerfileContext(BuildContext):
    """A folder with a Dockerfile of its own: every file that `.dockerignore` includes, and the Dockerfile."""

    @cached_property
    def files_by_context_path(self) -> Mapping[str, str]:
        return {path: path for path in [*self._included_files, self.dockerfile]}

    @property
    def is_dockerfile_ignored(self) -> bool:
        return self.dockerfile not in self._included_files

    def render_base_image_location(self, declared_name: str, line: int) -> str:  # noqa: ARG002
        return f"{os.path.relpath(self.folder / self.dockerfile)}:{line}"

    @cached_property
    def _included_files(self) -> list[str]:
        return list_included_files(self.folder, self.dockerfile)
