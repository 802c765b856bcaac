"""The files of a container that has ended, which go with it: what a program wrote there, and what it had to run."""

import tarfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from posixpath import join
from typing import IO, Any, cast

from vertex_emulator.replicas import daemon

MAX_BYTES = 8 << 20
"""How much of a folder is read to list it."""


@dataclass(frozen=True)
class Remains:
    """A container's own files. `folder` is its working directory, `words` are its command with all arguments.

    Methods raise ExecutorUnavailable; what cannot be read is not there.
    """

    folder: str
    words: tuple[str, ...]
    _client: Any
    _container: str

    @classmethod
    def of(cls, client: Any, container: str) -> "Remains | None":
        """Return those of a container; None if it is gone."""
        config: Any = None
        with daemon.translate_errors(), daemon.ignore(404):
            config = client.inspect_container(container)["Config"]
        if config is None:
            return None
        words = (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ()))
        return cls(config.get("WorkingDir") or "/", words, client, container)

    def has(self, path: str) -> bool:
        """Whether there is a file or folder under a path, relative to the working directory.

        Takes some 20 ms. A list of what has changed, as `docker diff` makes it, takes seconds.
        """
        url = self._client._url("/containers/{0}/archive", self._container)  # the SDK can only fetch
        with daemon.translate_errors():
            return bool(self._client.head(url, params={"path": join(self.folder, path)}, timeout=60).ok)

    def files(self, path: str, most: int) -> list[str]:
        """Return files below a folder by their paths from there on, in order; not all of a large folder."""
        from docker.errors import APIError

        found: list[str] = []
        with daemon.translate_errors(), suppress(APIError, tarfile.TarError):  # the archive is cut off at the limit
            blocks, _ = self._client.get_archive(self._container, join(self.folder, path))
            with tarfile.open(fileobj=cast(IO[bytes], _Limited(blocks)), mode="r|") as archive:
                for member in archive:
                    if member.isfile():
                        found.append(member.name.partition("/")[2])
                    if len(found) == most:
                        break
        return sorted(found)


class _Limited:
    """A file of the first `MAX_BYTES` of a stream."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks: Iterator[bytes] = iter(blocks)
        self._rest, self._left = b"", MAX_BYTES

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and self._left > 0:
            block = next(self._blocks, b"")
            if not block:
                break
            self._rest += block
            self._left -= len(block)
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
