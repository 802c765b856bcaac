"""Cloud Storage and the emulator's bucket folders, as stores of the files that jobs and builds read."""

import base64
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice, pairwise
from typing import IO, Any, Protocol, TypeVar

from vertex_api import credentials
from vertex_api.client import Endpoint
from vertex_api.metrics import Entry, Found, Reader

from ..errors import UploadFailed
from ..own import emulator_data
from . import emulator
from .target import LOCAL_PREFIX

Value = TypeVar("Value")
_TYPE = "application/gzip"
MAX_UPLOAD_SECONDS = 3600.0
MAX_READ_SECONDS = 10.0
"""Of each call that reads an object: what is read is small, and a run waits for it."""
MAX_LIST_SECONDS = 600.0
"""Of each page of a list: the emulator computes the checksums of its objects."""
_MAX_FOLDERS, _MAX_ENTRIES = 200, 10_000
"""Of a folder that is listed, those below it, and what one of them has: a job may create them without end."""
_MAX_EMPTY_PAGES = 1000
"""Of a list, one after the other."""
_MAX_UPLOADS = 5
"""Of one object that others write at the same time."""


def store(full_location_name: str) -> "ObjectStore":
    """Return the store of a target, such as `//local/projects/P/locations/R`."""
    return EmulatorBuckets() if full_location_name.startswith(LOCAL_PREFIX) else CloudStorage()


@dataclass(frozen=True)
class StoredObject:
    """An object as a store has it: its `generation`, where the store has generations, and whether it `is_new`."""

    generation: str
    is_new: bool


class ObjectStore(Protocol):
    """A place that has objects by `gs://bucket/object` URI. Methods raise UploadFailed."""

    def exists(self, uri: str) -> bool:
        """Whether there is an object under this URI."""

    def put(self, uri: str, content: IO[bytes]) -> StoredObject:
        """Make an object have what is read from `content`, and send nothing if it has that already.

        The content of an object that is there is compared: others may write to the bucket too.
        """

    def reader(self) -> AbstractContextManager[Reader]:
        """Return what reads objects, each call within some seconds. Its methods raise UploadFailed."""


def _md5(content: IO[bytes]) -> str:
    """Return the MD5 of a file as Cloud Storage writes it, and put the file back to its start."""
    content.seek(0)
    digest = hashlib.md5(usedforsecurity=False)
    for block in iter(partial(content.read, 1 << 20), b""):
        digest.update(block)
    content.seek(0)
    return base64.b64encode(digest.digest()).decode()


class EmulatorBuckets:
    """The buckets of the emulator: `gs://bucket/object` is the file `gcs/bucket/object` in its data folder.

    Written without Google's client: docs/decisions/0006-packages-are-written-to-bucket-folders.md says why.
    """

    def exists(self, uri: str) -> bool:
        try:
            with self._open_folder(uri, create=False) as folder:
                status = os.stat(uri.rpartition("/")[2], dir_fd=folder, follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode)

    def put(self, uri: str, content: IO[bytes]) -> StoredObject:
        if self._has_content(uri, content):
            return StoredObject("", is_new=False)
        temporary = f".{secrets.token_hex(8)}.partial"
        try:
            with self._open_folder(uri, create=True) as folder:
                with open(temporary, "xb", opener=partial(os.open, mode=0o644, dir_fd=folder)) as file:
                    os.fchmod(file.fileno(), 0o644)
                    shutil.copyfileobj(content, file)
                os.replace(temporary, uri.rpartition("/")[2], src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            path = emulator_data() / "gcs" / uri.removeprefix("gs://")
            raise UploadFailed(f"{uri} cannot be written to {path}: {error.strerror}") from error
        return StoredObject("", is_new=True)

    def _has_content(self, uri: str, content: IO[bytes]) -> bool:
        """Whether an object has this content, which is put back to its start."""
        if not self.exists(uri):
            return False
        try:
            with self._open(uri) as file:
                return _md5(file) == _md5(content)
        except OSError:
            return False

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        yield self

    def read(self, uri: str, max_bytes: int, *, from_end: bool = False) -> Found | None:
        """As a reader does. Raises UploadFailed."""
        if not self.exists(uri):
            return None
        try:
            with self._open(uri) as file:
                status = os.fstat(file.fileno())
                file.seek(max(0, status.st_size - max_bytes) if from_end else 0)
                return Found(file.read(max_bytes), status.st_mtime, status.st_size)
        except OSError as error:
            path = emulator_data() / "gcs" / uri.removeprefix("gs://")
            raise UploadFailed(f"{uri} cannot be read from {path}: {error.strerror}") from error

    def objects(self, folder_uri: str, most: int) -> list[Entry]:
        """As a reader does, in no order: folders that cannot be read have no objects."""
        return [*islice(self._listed(f"{folder_uri.rstrip('/')}/"), most)]

    def _listed(self, base: str) -> Iterator[Entry]:
        pending = [""]
        for _ in range(_MAX_FOLDERS):
            if not pending:
                return
            below = pending.pop()
            with (
                suppress(OSError),
                self._open_folder(f"{base}{below}", create=False) as folder,
                os.scandir(folder) as entries,
            ):
                for entry in islice(entries, _MAX_ENTRIES):
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(f"{below}{entry.name}/")
                    elif entry.is_file(follow_symlinks=False):
                        yield Entry(f"{below}{entry.name}", entry.stat(follow_symlinks=False).st_mtime)

    @contextmanager
    def _open(self, uri: str) -> Iterator[IO[bytes]]:
        """Open the file of an object. Raises OSError, also for a link that a container created."""
        with self._open_folder(uri, create=False) as folder:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(uri.rpartition("/")[2], flags, dir_fd=folder), "rb") as file:
                yield file

    @contextmanager
    def _open_folder(self, object_uri: str, *, create: bool) -> Iterator[int]:
        """Yield a descriptor of the folder of an object. Raises OSError, also for a link that a container created."""
        buckets = emulator_data() / "gcs"
        if create:
            with suppress(FileExistsError):
                buckets.parent.mkdir(mode=0o700, parents=True)
            buckets.mkdir(exist_ok=True)
        folder = os.open(buckets, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in object_uri.removeprefix("gs://").split("/")[:-1]:
                is_new = create and _make_folder(name, folder)
                subfolder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = subfolder
                if is_new:
                    os.fchmod(folder, 0o777)  # containers run as any user
            yield folder
        finally:
            os.close(folder)


def _make_folder(name: str, parent_descriptor: int) -> bool:
    """Create a folder in an open one, and return whether it was missing. Raises OSError."""
    try:
        os.mkdir(name, dir_fd=parent_descriptor)
    except FileExistsError:
        return False
    return True


_READING = ("storage.objectViewer", "what it has is not read")


class CloudStorage:
    """Cloud Storage, with `vertex_api.credentials`. `STORAGE_EMULATOR_HOST` is its address in tests."""

    def exists(self, uri: str) -> bool:
        with _blob(uri) as blob:
            return bool(blob.exists())

    def put(self, uri: str, content: IO[bytes]) -> StoredObject:
        from google.api_core.exceptions import NotFound, PreconditionFailed

        expected = _md5(content)
        with _blob(uri) as named:
            for _ in range(_MAX_UPLOADS):
                blob = named.bucket.blob(named.name)  # one that has been looked at keeps its generation
                try:
                    blob.reload()
                except NotFound:
                    found = 0
                else:
                    # Not by its CRC32C, which anyone can give to another content. Composite objects have no MD5.
                    if blob.md5_hash == expected:
                        return StoredObject(_generation(blob), is_new=False)
                    found = blob.generation
                # With its size, which is what decides whether an upload takes several calls.
                size = content.seek(0, os.SEEK_END)
                with suppress(PreconditionFailed):  # somebody has written it meanwhile
                    blob.upload_from_file(content, True, size, content_type=_TYPE, if_generation_match=found)
                    return StoredObject(_generation(blob), is_new=True)
        raise UploadFailed(f"{uri}: somebody else writes it again and again; find out who writes to its bucket")

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        with _errors_in_one_line("Cloud Storage", *_READING), _client(MAX_READ_SECONDS) as client:
            yield _CloudReader(client, {"timeout": MAX_READ_SECONDS, "retry": None})


@dataclass(frozen=True)
class _CloudReader:
    client: Any
    limits: Mapping[str, Any]

    def read(self, uri: str, max_bytes: int, *, from_end: bool = False) -> Found | None:
        from google.api_core.exceptions import NotFound

        with _errors_in_one_line(uri, *_READING):
            blob = _blob_of(self.client, uri)
            try:
                blob.reload(**self.limits)
                size, updated = _require(blob.size, int), _require(blob.updated, datetime)
                start = max(0, size - max_bytes) if from_end else 0
                end = min(size, start + max_bytes) - 1
                # A range of an empty object cannot be satisfied.
                content = (
                    blob.download_as_bytes(start=start, end=end, checksum=None, **self.limits) if end >= 0 else b""
                )
            except NotFound:
                return None
            return Found(content[:max_bytes], updated.timestamp(), size)

    def objects(self, folder_uri: str, most: int) -> list[Entry]:
        from google.api_core.exceptions import NotFound

        with _errors_in_one_line(folder_uri, *_READING):
            bucket, _, folder = folder_uri.removeprefix("gs://").partition("/")
            fields = "items(name,updated),nextPageToken"
            try:
                found = self.client.list_blobs(bucket, prefix=folder, max_results=most, fields=fields, **self.limits)
                # The service puts as many into the first page; what puts fewer could do so without end.
                page = next(found.pages, ())
                return [
                    Entry(_require(blob.name, str).removeprefix(folder), _require(blob.updated, datetime).timestamp())
                    for blob in page
                ]
            except NotFound:
                return []


@dataclass(frozen=True)
class Listed:
    """An object in a list; a composite one has no `md5`."""

    name: str
    size: int
    generation: str
    crc32c: str
    md5: str


_LISTED_FIELDS = "items(name,size,generation,crc32c,md5Hash),nextPageToken"


def listing(full_location_name: str, bucket: str, prefix: str) -> Iterator[Listed]:
    """Yield the objects whose names begin with `prefix`, in order, page by page. Raises UploadFailed.

    The emulator starts if the target is local; its checksums take as long as it takes to read the objects.
    """
    role, after_loss = "storage.objectViewer", "run the command again"
    endpoint = emulator.start() if full_location_name.startswith(LOCAL_PREFIX) else None
    with (
        _errors_in_one_line(f"gs://{bucket}/{prefix}", role, after_loss),
        _client(MAX_LIST_SECONDS, endpoint) as client,
    ):
        found = client.list_blobs(bucket, prefix=prefix or None, fields=_LISTED_FIELDS, timeout=MAX_LIST_SECONDS)
        for blob in _of_bucket(bucket, found):
            name, size, crc32c = _require(blob.name, str), _require(blob.size, int), _require(blob.crc32c, str)
            yield Listed(name, size, _generation(blob), crc32c, str(blob.md5_hash or ""))


def _of_bucket(bucket: str, blobs: Any) -> Iterator[Any]:
    """Yield what a list has. Raises UploadFailed if there is no such bucket."""
    from google.api_core.exceptions import NotFound

    empty, last = 0, ""
    try:
        for page in blobs.pages:
            found = [*page]
            empty = 0 if found else empty + 1
            names = [last, *(_require(blob.name, str) for blob in found)]
            # A list without an end has empty pages, or names again: those of buckets are in order, each once.
            if empty > _MAX_EMPTY_PAGES or any(after <= before for before, after in pairwise(names)):
                raise _Foreign
            last = names[-1]
            yield from found
    except NotFound as error:
        raise UploadFailed(f"gs://{bucket}: there is no bucket of this name; correct it, or create it") from error


def _generation(blob: Any) -> str:
    """Return the generation of an object, which all objects have. Raises _Foreign for an answer without one."""
    return str(_require(blob.generation, int))


class _Foreign(ValueError):
    """What answers is not Cloud Storage."""


def _require(value: Any, type_: type[Value]) -> Value:
    """Return what all objects have, such as a name and a size. Raises _Foreign for an answer without it."""
    if not isinstance(value, type_) or value == "":
        raise _Foreign
    return value


@contextmanager
def _blob(uri: str) -> Iterator[Any]:
    """Yield the client's handle of an object, and turn errors into an UploadFailed of one line."""
    with (
        _errors_in_one_line(uri, "storage.objectUser", "run `pulumi up` again to continue"),
        _client(MAX_UPLOAD_SECONDS) as client,
    ):
        yield _blob_of(client, uri)


def _blob_of(client: Any, uri: str) -> Any:
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    return client.bucket(bucket).blob(name)


@contextmanager
def _client(seconds: float, endpoint: Endpoint | None = None) -> Iterator[Any]:
    """Yield Google's client, each call of which may take `seconds`; `endpoint` is that of the emulator."""
    from google.cloud.storage import Client

    from vertex_api import transport

    # An object belongs to a bucket: the project does not matter, and may be unknown.
    project = os.environ.get("GOOGLE_CLOUD_PROJECT", "none")
    options: dict[str, Any] = {}
    if endpoint:
        from google.auth.credentials import AnonymousCredentials
        from google.oauth2.credentials import Credentials

        caller: Any = Credentials(endpoint.token) if endpoint.token else AnonymousCredentials()
        options = {"client_options": {"api_endpoint": endpoint.jobs}}
    else:
        caller = None if os.environ.get("STORAGE_EMULATOR_HOST") else credentials.load()
    with closing(Client(project=project, credentials=caller, **options)) as client:
        transport.mount(client._http, seconds)
        client._http.trust_env = client._http.trust_env and not endpoint
        yield client


@contextmanager
def _errors_in_one_line(uri: str, role: str, after_loss: str) -> Iterator[None]:
    """Turn errors into an UploadFailed: `role` is what a call needs, `after_loss` what to do without a connection."""
    import requests
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import GoogleAuthError

    from vertex_api import transport
    from vertex_api.answers import FOREIGN_TYPES

    before = transport.answers()
    try:
        yield
    except GoogleAuthError as error:
        raise UploadFailed(
            f"{uri}: no valid Google credentials for its bucket: {credentials.explain(error)}"
        ) from error
    except GoogleAPICallError as error:
        raise UploadFailed(
            f"{uri}: Cloud Storage refuses: {' '.join(error.message.split())[:300]}; your account needs "
            f"roles/{role} on the bucket"
        ) from error
    except transport.AnswerRefused as error:
        raise UploadFailed(f"{uri}: {error}") from error
    except FOREIGN_TYPES as error:
        if not (isinstance(error, _Foreign) or transport.is_of_answer(error, before)):
            raise
        raise UploadFailed(f"{uri}: what answers is not Cloud Storage, or a proxy stands before it") from error
    except (RetryError, requests.RequestException) as error:
        raise UploadFailed(f"{uri}: the connection to Cloud Storage was lost; {after_loss}") from error
