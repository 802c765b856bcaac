"""Uploads (media, multipart, resumable): their state on disk, and the methods that receive content."""

import json
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from enum import IntEnum
from io import FileIO
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs import messages, metadata
from vertex_emulator.gcs.objects import PRECONDITIONS, ObjectStore, StoredObject, checksums
from vertex_emulator.http.requests import parse_json, read_json, unpacked

EXPIRY_SECONDS = 7 * 24 * 3600  # Cloud Storage, "Resumable uploads": a session lives for a week
MAX_UPLOADS = 1000  # finished ones too, whose last answer is repeated
IDLE_SECONDS = 600
_BATCH_BYTES = 1 << 20
_RECORD = ".json"
_ID = re.compile(r"[0-9a-f]{32}")
_HASH_FIELDS = {"md5": "md5Hash", "crc32c": "crc32c"}
_EXPECTED = (*_HASH_FIELDS.values(), *PRECONDITIONS)
_RANGE = re.compile(r"bytes (?:([0-9]{1,19})-([0-9]{1,19}|\*)|\*)/([0-9]{1,19}|\*)")
"""Node's client sends `0-*/*` for a stream: all that comes, to its end."""


@dataclass(frozen=True)
class Upload:
    """An unfinished upload: a partial file and a record of its target, so that a restart loses nothing.

    `expected` holds the checksums and preconditions that the client sent, `fields` the metadata.
    """

    partial: Path
    bucket: str
    name: str
    expected: Mapping[str, str]
    fields: Mapping[str, Any] = field(default_factory=dict)  # checkouts before the first release recorded none

    @property
    def record(self) -> Path:
        """The file that records the target of the upload."""
        return self.partial.with_suffix(_RECORD)

    @property
    def id(self) -> str:
        """The id with which the client continues the upload."""
        return self.partial.stem

    @property
    def received(self) -> int | None:
        """The number of bytes that have arrived; None once the upload has become the object."""
        try:
            return self.partial.stat().st_size
        except FileNotFoundError:
            return None

    def append(self, data: bytes) -> None:
        """Append bytes. Raises OSError."""
        with self.partial.open("ab") as file:
            file.write(data)

    async def append_stream(self, media: AsyncIterator[bytes]) -> None:
        """Append bytes as they arrive, a MiB at a time. Raises OSError."""
        batch = bytearray()
        async for part in media:
            batch += part
            if len(batch) >= _BATCH_BYTES:
                await to_thread.run_sync(self.append, bytes(batch))
                batch.clear()
        await to_thread.run_sync(self.append, bytes(batch))

    def truncate(self, size: int) -> None:
        """Drop the bytes after the first `size`: the client sends them again."""
        with self.partial.open("r+b") as file:
            file.truncate(size)


@dataclass(frozen=True)
class Uploads:
    """The uploads to `objects`, in a `folder` on the same file system, so that a rename completes an upload."""

    folder: Path
    objects: ObjectStore

    @classmethod
    def open(cls, folder: Path, objects: ObjectStore) -> "Uploads":
        """Open the uploads of a folder, and delete those that are older than `EXPIRY_SECONDS`."""
        for path in folder.iterdir():
            if time.time() - path.stat().st_mtime > EXPIRY_SECONDS:
                path.unlink()
        return cls(folder, objects)

    def create(self, bucket: str, name: str, expected: Mapping[str, str], fields: Mapping[str, Any]) -> Upload:
        """Start an upload. Raises ApiError for a name that no object can have or if too many are open, or OSError."""
        if not name:
            raise ApiError("INVALID_ARGUMENT", "The upload names no object: set `name` in the query or the metadata.")
        self.objects.buckets.check_name(bucket, name)
        self._make_room()
        upload = Upload(self.folder / f"{secrets.token_hex(16)}.partial", bucket, name, expected, fields)
        upload.record.write_text(json.dumps([bucket, name, expected, fields]))
        upload.partial.touch()
        return upload

    def _make_room(self) -> None:
        """Delete the finished uploads and those nobody continues, the oldest first, that are too many or too large.

        Together, idle uploads hold no more bytes than the disk has left. Their clients begin them again: the answer is
        404, as for an expired one. Those that bytes still arrive for stay. Raises ApiError if there are too many.
        """
        ids = {path.stem for path in self.folder.iterdir() if _ID.fullmatch(path.stem)}
        surplus = len(ids) - MAX_UPLOADS + 1
        now = time.time()
        open_uploads = {id_: status for id_ in ids if (status := _status(self.folder / f"{id_}.partial"))}
        idle = [(status.st_mtime, id_) for id_, status in open_uploads.items() if now - status.st_mtime > IDLE_SECONDS]
        held = sum(open_uploads[id_].st_size for _, id_ in idle)
        free = self._free_bytes()
        finished: list[tuple[float, str]] = []
        if surplus > 0:
            records = ((id_, _status(self.folder / f"{id_}{_RECORD}")) for id_ in ids - open_uploads.keys())
            finished = [(status.st_mtime, id_) for id_, status in records if status]
        for at, id_ in [*sorted(finished), *sorted(idle)]:
            size = open_uploads[id_].st_size if id_ in open_uploads else 0
            if surplus <= 0 and (held <= free or not size) and now - at <= EXPIRY_SECONDS:
                continue
            surplus, held, free = surplus - 1, held - size, free + size
            self.discard(Upload(self.folder / f"{id_}.partial", "", "", {}))
        if surplus > 0:
            message = (
                f"{MAX_UPLOADS} uploads are open. Finish or cancel some, or wait until one has been idle for "
                f"{IDLE_SECONDS // 60} minutes."
            )
            raise ApiError("RESOURCE_EXHAUSTED", message)

    def _free_bytes(self) -> int:
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize

    def require_space(self, size: int) -> None:
        """Raise ApiError if the disk has less space than a content of `size` bytes needs."""
        free = self._free_bytes()
        if size > free:
            message = f"The disk has {free} bytes left, and this needs {size}; nothing was stored."
            raise ApiError("RESOURCE_EXHAUSTED", message, http=413)

    def require(self, upload_id: str) -> Upload:
        """Return an upload by its id. Raises ApiError NOT_FOUND."""
        partial = self.folder / f"{upload_id}.partial"
        try:
            if not _ID.fullmatch(upload_id):
                raise FileNotFoundError(upload_id)
            return Upload(partial, *json.loads(partial.with_suffix(_RECORD).read_text()))
        except (FileNotFoundError, ValueError) as error:
            raise ApiError("NOT_FOUND", f"There is no upload {upload_id!r} here, or it has expired.") from error

    async def complete(
        self, upload: Upload, last_checksums: Mapping[str, str] = {}
    ) -> tuple[StoredObject, dict[str, str]]:
        """Store the object of an unfinished upload; return it with its checksums.

        `last_checksums` came with the last bytes. Raises ApiError or OSError and discards the upload.
        """
        try:
            with FileIO(upload.partial) as file:
                computed = await checksums(file)
            for name, value in {**upload.expected, **last_checksums}.items():
                actual = computed.get(name, value)
                if value != actual:
                    message = f"Provided {name} {value!r} doesn't match the calculated {actual!r}: send it again."
                    raise ApiError("INVALID_ARGUMENT", message)
            target = (upload.bucket, upload.name, upload.partial, upload.fields, upload.expected)
            return await to_thread.run_sync(self.objects.put, *target), computed
        except (ApiError, OSError):
            self.discard(upload)
            raise

    def discard(self, upload: Upload) -> None:
        """Delete an upload."""
        upload.partial.unlink(missing_ok=True)
        upload.record.unlink(missing_ok=True)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


@dataclass(frozen=True)
class UploadRoutes:
    """Methods that receive content, which is written to disk as it arrives, a MiB at a time."""

    uploads: Uploads

    async def begin(self, request: Request) -> Response:
        """Receive a whole upload, or begin a resumable one."""
        if "upload_id" in request.query_params:
            # Cloud Storage's page asks for PUT; gcsfs sends chunks by POST, which the service accepts.
            return await self.proceed(request)
        query = messages.checked_query(request, {"uploadType", "name", "predefinedAcl", *_EXPECTED})
        match query.get("uploadType"):
            case "media":
                if "content-encoding" in request.headers:
                    message = "Content-Encoding: send the body as it is to be stored"
                    raise ApiError("INVALID_ARGUMENT", message, http=415)
                upload = self._create(request, {}, request.headers.get("content-type", ""))
                return await self._receive(request, upload, request.stream())
            case "multipart":
                return await self._receive_multipart(request)
            case "resumable":
                resource = await read_json(request)
                upload = self._create(request, resource, request.headers.get("x-upload-content-type", ""))
                url = f"{messages.base_url(request)}{request.url.path}?uploadType=resumable&upload_id={upload.id}"
                return _spelt(Response(headers={"location": url, "x-guploader-uploadid": upload.id}))
        raise ApiError("INVALID_ARGUMENT", "uploadType must be media, multipart or resumable")

    async def _receive_multipart(self, request: Request) -> Response:
        parser = MultipartParser(request.headers.get("content-type", ""))
        stream = unpacked(request)
        first = b""
        async for part in stream:
            first += parser.feed(part)
            if parser.metadata is not None:
                break
        upload = self._create(request, parser.metadata or {}, parser.media_type)

        async def media() -> AsyncIterator[bytes]:
            yield first
            async for part in stream:
                yield parser.feed(part)
            yield parser.finish()

        return await self._receive(request, upload, media())

    def _create(self, request: Request, resource: Mapping[str, object], media_type: str) -> Upload:
        fields = metadata.parse({**resource, "contentType": resource.get("contentType") or media_type})
        parameters = {**resource, **request.query_params}
        expected = {name: str(parameters[name]) for name in _EXPECTED if parameters.get(name)}
        bucket, name = request.path_params["bucket"], str(parameters.get("name") or "")
        messages.need_to_store(request, self.uploads.objects, bucket, name)
        return self.uploads.create(bucket, name, expected, fields)

    async def _receive(self, request: Request, upload: Upload, media: AsyncIterator[bytes]) -> Response:
        """Receive the whole content in this request; an interrupted upload is deleted."""
        try:
            await upload.append_stream(media)
            return await self._complete(request, upload)
        finally:
            self.uploads.discard(upload)

    async def proceed(self, request: Request) -> Response:
        """Receive a chunk by its Content-Range, or answer how much has arrived (Cloud Storage, "Resumable uploads")."""
        upload = self.uploads.require(request.query_params.get("upload_id", ""))
        start, end, total = _parse_range(request.headers.get("content-range"))
        received = upload.received
        if received is not None and (start is None or start <= received):
            if start is not None:
                upload.truncate(start)
                await upload.append_stream(request.stream())
            received = upload.received
        if received is None:
            # The object that now has this name may be another, endless one.
            stored, file = await to_thread.run_sync(self.uploads.objects.open, upload.bucket, upload.name)
            return await messages.object_reply(request, stored, file)
        if (end is None and total is None and start is not None) or received == total:
            return await self._complete(request, upload)
        return _spelt(Response(status_code=308, headers={"range": f"bytes=0-{received - 1}"} if received else {}))

    def cancel(self, request: Request) -> Response:
        """Delete an unfinished upload."""
        self.uploads.discard(self.uploads.require(request.query_params.get("upload_id", "")))
        return Response(status_code=499)  # as Cloud Storage does

    async def _complete(self, request: Request, upload: Upload) -> Response:
        pairs = (pair.strip().partition("=") for pair in request.headers.get("x-goog-hash", "").split(","))
        expected = {_HASH_FIELDS[name]: value for name, _, value in pairs if name in _HASH_FIELDS}
        stored, computed = await self.uploads.complete(upload, expected)
        return JSONResponse(messages.object_json(request, stored, computed))


def _parse_range(content_range: str | None) -> tuple[int | None, int | None, int | None]:
    """Return first byte, last byte and total of a chunk: no first byte asks for the state, no header is all content."""
    if content_range is None:
        return 0, None, None
    match = _RANGE.fullmatch(content_range)
    if match is None:
        message = f'Content-Range is "{content_range[:100]}"; it must be like "bytes 0-99/200"'
        raise ApiError("INVALID_ARGUMENT", message)
    first, last, total = (int(text) if text and text != "*" else None for text in match.groups())
    return first, last, total


_MAX_HEAD_BYTES = 1 << 20
_CLOSING_BYTES = 8  # line breaks and dashes around the last boundary


class _Place(IntEnum):
    """Where the next line of a body belongs."""

    PREAMBLE, JSON_HEADERS, JSON, MEDIA_HEADERS = range(4)


class MultipartParser:
    """The streaming parser of a `multipart/related` body: a JSON part, then a media part (Cloud Storage, "Multipart
    upload").

    The methods return media bytes as they arrive; `metadata` is the JSON part, None until it has arrived, and
    `media_type` the Content-Type of the media part. It buffers the head of the body or the length of a boundary, not
    more. Raises ApiError.
    """

    def __init__(self, content_type: str) -> None:
        header = Message()
        header["content-type"] = content_type
        # gcloud puts the boundary into single quotes, which the mail standards do not treat as quotes.
        boundary = (header.get_boundary() or "").strip("'")
        if header.get_content_type() != "multipart/related" or not boundary:
            raise _malformed(f'Content-Type is "{content_type}", not multipart/related with a boundary')
        self._mark = f"--{boundary}".encode()
        self._tail = re.compile(rb"\r?\n" + re.escape(self._mark) + rb"--\s*\Z")
        self._tail_bytes = len(boundary) + _CLOSING_BYTES
        self._buffer = bytearray()
        self._read_bytes = self._searched_bytes = 0
        self._place = _Place.PREAMBLE
        self._lines = dict[_Place, list[bytes]]((place, []) for place in _Place)
        self.metadata: Mapping[str, Any] | None = None
        self.media_type = ""

    def feed(self, data: bytes) -> bytes:
        """Add the next bytes of the body; return the media bytes that are known so far."""
        self._buffer += data
        if self.metadata is None:
            self._read_head()
            if self.metadata is None:
                if len(self._buffer) > _MAX_HEAD_BYTES:
                    raise _malformed("no second part within the first MiB")
                return b""
        media_bytes = max(0, len(self._buffer) - self._tail_bytes)
        media = bytes(self._buffer[:media_bytes])
        del self._buffer[:media_bytes]
        return media

    def _read_head(self) -> None:
        """Read the lines that have arrived, each once, in whatever pieces, up to the beginning of the media."""
        # Some clients end lines with CR LF, those built on Python's email package with LF.
        while (end := self._buffer.find(b"\n", self._searched_bytes) + 1) > 0:
            line = bytes(self._buffer[self._read_bytes : end])
            self._read_bytes = self._searched_bytes = end
            is_blank, is_mark = not line.strip(b"\r\n"), line.rstrip() == self._mark
            if self._place == _Place.PREAMBLE:
                if line.strip() not in (b"", self._mark):
                    raise _malformed("it does not begin with its boundary")
                is_next = line.strip() == self._mark
            else:
                is_next = is_mark if self._place == _Place.JSON else is_blank
            if not is_next:
                self._lines[self._place].append(line)
            elif self._place == _Place.MEDIA_HEADERS:
                break
            else:
                self._place = _Place(self._place + 1)
        else:
            self._searched_bytes = len(self._buffer)
            return

        # All of the head is there; what remains in the buffer is media.
        header_lines = b"".join(self._lines[_Place.MEDIA_HEADERS])
        if b"base64" in header_lines.lower():
            raise _malformed("the media part is base64; send it as it is")
        self.metadata = parse_json(b"".join(self._lines[_Place.JSON]))
        pairs = (line.partition(":") for line in header_lines.decode("latin-1").splitlines())
        types = (value.strip() for name, _, value in pairs if name.strip().lower() == "content-type")
        self.media_type = next(types, "")
        del self._buffer[: self._read_bytes]

    def finish(self) -> bytes:
        """Return the last media bytes, without the closing boundary."""
        # After an empty media part only the boundary is left: its line break was matched with the head.
        rest = bytes(self._buffer)
        closing = self._tail.search(rest)
        if self.metadata is None or (closing is None and not self._tail.match(b"\n" + rest)):
            raise _malformed("it ends before its closing boundary")
        return rest[: closing.start()] if closing else b""


def _malformed(reason: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Malformed multipart body: {reason}.")


def _spelt(response: Response) -> Response:
    """Spell the names of headers as the service does: TensorFlow's file system finds them by capitals alone."""
    response.raw_headers = [(name.title(), value) for name, value in response.raw_headers]
    return response
