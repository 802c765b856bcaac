"""Declared data in buckets of Google's, fetched for jobs that read files below `/gcs`: each object once.

A cache beside the stack's emulator has objects by generation, whole or begun, so that a fetch goes on where an earlier
one was killed. Names and contents are a bucket's, which strangers may write to. Nothing is written there.
"""

import base64
import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from vertex_api import locks

from ..data.listing import BUCKET, selection
from ..data.lock import Data
from ..errors import ComponentError
from ..rehearsal_file import size
from ..runtime.storage import EmulatorBuckets

LIMIT_GB = 10
_PIECE = 32 << 20
_THREADS = 8
_PAGE, _MAX_PAGES = 1_000, 1_000
_TOLD_SECONDS = 5.0
_PARTIAL = ".partial"
_FIELDS = "items(name,size,generation,md5Hash,contentEncoding),nextPageToken"
_OBJECTS = "https://storage.googleapis.com/storage/v1/b/{}/o"


class FetchFailed(ComponentError):
    """Data cannot be fetched: the message says why, in one line."""


class Reply(NamedTuple):
    """What Google answers: the `content`, and for another status than 2xx the `reason` in its words."""

    status: int
    content: bytes
    reason: str = ""

    def json(self) -> Any:
        """Return the JSON that it is. Raises ValueError."""
        import json

        return json.loads(self.content)


class Google(Protocol):
    """Asks Google with somebody's token. Raises ComponentError without an answer."""

    def __call__(self, url: str, params: Mapping[str, str], headers: Mapping[str, str]) -> Reply: ...


@dataclass(frozen=True)
class Object:
    """An object of a bucket, one generation of it."""

    bucket: str
    name: str
    size: int
    generation: str
    md5: str

    @property
    def uri(self) -> str:
        """Its URI."""
        return f"{BUCKET}{self.bucket}/{self.name}"


@dataclass(frozen=True)
class Cache:
    """The folder of fetched objects. `say` takes lines on what goes on, `limit` is in bytes of one fetch."""

    folder: Path
    limit: int
    say: Callable[[str], None]

    def fetch(self, data: Data, google: Google) -> None:
        """Put the objects of data into the buckets of the present target, as they are now. Raises FetchFailed."""
        place = f"data.{data.name}"
        found, left_out = _listed(place, data.uri, google)
        if left_out:
            self.say(f"{place}: {left_out:,} objects are no files below /gcs, by their names or their gzip encoding")
        needed = sum(each.size for each in found)
        if needed > self.limit:
            raise FetchFailed(
                f"{place}: {data.uri} has {size(needed)}, and --fetch allows {size(self.limit)}; give --fetch "
                f"{-(-needed // 10**9)}, or --fetch 0 for no files of Google's below /gcs"
            )
        try:
            with self._held():
                self._fill(place, found, google)
                for each in found:
                    path = self._path(each)
                    with path.open("rb") as stream:
                        EmulatorBuckets().put(each.uri, stream)
                    os.utime(path)  # by which `prune` knows what is used
        except OSError as error:
            raise FetchFailed(f"{place}: {error.filename or self.folder}: {error.strerror or error}") from error

    def _fill(self, place: str, wanted: list[Object], google: Google) -> None:
        """Fetch what is not there."""
        missing = [each for each in wanted if not self._path(each).is_file()]
        if not missing:
            self.say(f"{place}: {len(wanted):,} objects, {size(sum(each.size for each in wanted))}, are here already")
            return
        total = sum(each.size for each in missing)
        free = os.statvfs(self.folder)
        if (room := free.f_bavail * free.f_frsize) < 2 * total:  # the cache, and the copy that the job may change
            raise FetchFailed(
                f"{place}: {size(total)} are to be fetched twice, and {self.folder} has {size(room)} left"
            )
        self.say(f"{place}: fetching {len(missing):,} of {len(wanted):,} objects, {size(total)}")
        stopped, done, told = threading.Event(), 0, time.monotonic()
        with ThreadPoolExecutor(_THREADS) as threads:
            try:
                for future in as_completed([threads.submit(self._one, each, google, stopped) for each in missing]):
                    done += future.result()
                    if time.monotonic() - told > _TOLD_SECONDS:
                        told = time.monotonic()
                        self.say(f"{place}: {size(done)} of {size(total)}")
            except BaseException:
                stopped.set()
                threads.shutdown(cancel_futures=True)
                raise

    def _one(self, wanted: Object, google: Google, stopped: threading.Event) -> int:
        """Fetch an object by pieces, after those that an earlier fetch has left, and return its size."""
        path = self._path(wanted)
        path.parent.mkdir(exist_ok=True)
        partial_path = path.with_suffix(_PARTIAL)
        url = f"{_OBJECTS.format(wanted.bucket)}/{quote(wanted.name, safe='')}"
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(partial_path, flags, 0o600), "r+b") as file:
            at = os.fstat(file.fileno()).st_size
            while at < wanted.size and not stopped.is_set():
                end = min(at + _PIECE, wanted.size)
                params = {"alt": "media", "generation": wanted.generation}
                reply = google(url, params, {"Range": f"bytes={at}-{end - 1}", "Accept-Encoding": "identity"})
                if reply.status not in (200, 206):
                    raise FetchFailed(f"{wanted.uri}: Google answers {reply.status} ({reply.reason})")
                if len(reply.content) != end - at:
                    raise FetchFailed(f"{wanted.uri}: Google answers {len(reply.content):,} bytes of {end - at:,}")
                file.write(reply.content)
                at = end
            if stopped.is_set():
                return 0
            file.seek(0)
            digest = hashlib.md5(usedforsecurity=False)
            for block in iter(partial(file.read, 1 << 20), b""):
                digest.update(block)
            if at != wanted.size or (wanted.md5 and base64.b64encode(digest.digest()).decode() != wanted.md5):
                partial_path.unlink()
                raise FetchFailed(f"{wanted.uri}: what came is not what its checksum says; run this again")
        partial_path.replace(path)
        return wanted.size

    def _path(self, wanted: Object) -> Path:
        # With the folder's own number, which no branch knows that brings one.
        key = f"{self.folder.stat().st_ino}\n{wanted.name}\n{wanted.generation}"
        return self.folder / wanted.bucket / hashlib.sha256(key.encode()).hexdigest()

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the cache, which is the owner's alone, so that no two runs fetch the same. Raises FetchFailed."""
        for folder, open_modes in ((self.folder.parent, 0), (self.folder, 0o077)):
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_mode & open_modes:
                raise FetchFailed(
                    f"{folder}: is a link, or others can open it, which no run leaves so: a branch may have brought "
                    "it; remove it"
                )
        waiting = partial(self.say, f"waiting for another run, which fetches into {self.folder}")
        with locks.held(self.folder / "lock", waiting):
            yield


def _listed(place: str, uri: str, google: Google) -> tuple[list[Object], int]:
    """Return the objects of a URI that can be files, and how many others it has. Raises FetchFailed."""
    bucket, prefix, folder, pattern = selection(uri)
    found: dict[str, Object] = {}
    left_out, token = 0, ""
    for _ in range(_MAX_PAGES):
        page = {"maxResults": str(_PAGE), "prefix": prefix, "fields": _FIELDS}
        reply = google(_OBJECTS.format(bucket), {**page, **({"pageToken": token} if token else {})}, {})
        if reply.status != 200:
            raise FetchFailed(f"{place}: {uri}: Google answers {reply.status} ({reply.reason})")
        try:
            answer = reply.json()
            for item in answer.get("items", []):
                name = str(item["name"])
                if not pattern.fullmatch(name[len(folder) :]) or name.endswith("/"):
                    continue
                if not _is_path(name) or item.get("contentEncoding"):
                    left_out += 1
                    continue
                generation = str(int(item["generation"]))
                found[name] = Object(bucket, name, int(item["size"]), generation, str(item.get("md5Hash", "")))
            token = str(answer.get("nextPageToken", ""))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise FetchFailed(f"{place}: {uri}: what answers is not Cloud Storage") from error
        if not token:
            break
    else:
        raise FetchFailed(f"{place}: {uri}: the list does not end after {len(found):,} objects")
    files = [each for each in found.values() if not _is_below(each.name, found)]
    if not found:
        raise FetchFailed(f"{place}: there is nothing under {uri}; correct it, or write the data first")
    return files, left_out + len(found) - len(files)


def _is_path(name: str) -> bool:
    """Whether an object can be a file below a folder."""
    parts = name.split("/")
    return not {"", ".", ".."} & {*parts} and "\0" not in name and all(len(part.encode()) <= 255 for part in parts)


def _is_below(name: str, others: Mapping[str, Object]) -> bool:
    """Whether an object is below another one, which is a file already."""
    parts = name.split("/")
    return any("/".join(parts[:end]) in others for end in range(1, len(parts)))
