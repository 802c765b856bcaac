"""The routes of Cloud Storage's uploads (media, multipart, resumable)."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.client_set_metadata_fields import parse_object_fields
from vertex_emulator.gcs.preconditions import PRECONDITIONS
from vertex_emulator.gcs.routes.bucket_and_object_json import get_base_url, serialize_object
from vertex_emulator.gcs.routes.multipart_upload_parser import MultipartParser
from vertex_emulator.gcs.routes.os_and_disconnect_errors import raise_if_disconnected
from vertex_emulator.gcs.routes.unsupported_requests import get_checked_query
from vertex_emulator.gcs.upload_sessions import Upload, Uploads
from vertex_emulator.http.json_request_body import read_json_object

_HASH_FIELDS = {"md5": "md5Hash", "crc32c": "crc32c"}
_EXPECTED = (*_HASH_FIELDS.values(), *PRECONDITIONS)
_RANGE = re.compile(r"bytes (?:([0-9]{1,19})-([0-9]{1,19})|\*)/([0-9]{1,19}|\*)")


@dataclass(frozen=True)
class UploadRoutes:
    """Methods that receive content, which is written to disk as it arrives, a MiB at a time."""

    uploads: Uploads

    def build_routes(self) -> list[Route]:
        """Return the routes below `/upload` and gcloud's `/resumable/upload`."""
        routes = []
        for prefix in ("", "/resumable"):
            objects = f"{prefix}/upload/storage/v1/b/{{bucket}}/o"
            routes += [
                Route(objects, self._create_or_receive_upload, methods=["POST"]),
                Route(objects, self._receive_chunk_then_complete_or_report_progress, methods=["PUT"]),
                Route(objects, self._cancel_upload, methods=["DELETE"]),
            ]
        return routes

    async def _create_or_receive_upload(self, request: Request) -> Response:
        if "upload_id" in request.query_params:
            # Cloud Storage's page asks for PUT; gcsfs sends chunks by POST, which the service accepts.
            return await self._receive_chunk_then_complete_or_report_progress(request)
        query = get_checked_query(request, {"uploadType", "name", "predefinedAcl", *_EXPECTED})
        if "content-encoding" in request.headers:
            raise ApiError("INVALID_ARGUMENT", "Content-Encoding: send the body as it is to be stored", http=415)
        match query.get("uploadType"):
            case "media":
                upload = self._create_upload(request, {}, request.headers.get("content-type", ""))
                return await self._receive_whole_upload_and_respond(request, upload, request.stream())
            case "multipart":
                return await self._receive_multipart(request)
            case "resumable":
                metadata = await read_json_object(request)
                upload = self._create_upload(request, metadata, request.headers.get("x-upload-content-type", ""))
                url = f"{get_base_url(request)}{request.url.path}?uploadType=resumable&upload_id={upload.id}"
                return Response(headers={"location": url, "x-guploader-uploadid": upload.id})
        raise ApiError("INVALID_ARGUMENT", "uploadType must be media, multipart or resumable")

    async def _receive_multipart(self, request: Request) -> Response:
        parser = MultipartParser(request.headers.get("content-type", ""))
        stream = request.stream()
        first = b""
        async for part in stream:
            first += parser.feed_and_take_media(part)
            if parser.metadata is not None:
                break
        upload = self._create_upload(request, parser.metadata or {}, parser.media_type)

        async def iterate_media() -> AsyncIterator[bytes]:
            yield first
            async for part in stream:
                yield parser.feed_and_take_media(part)
            yield parser.take_last_media()

        return await self._receive_whole_upload_and_respond(request, upload, iterate_media())

    def _create_upload(self, request: Request, metadata: Mapping[str, object], media_type: str) -> Upload:
        fields = parse_object_fields({**metadata, "contentType": metadata.get("contentType") or media_type})
        parameters = {**metadata, **request.query_params}
        expected = {name: str(parameters[name]) for name in _EXPECTED if parameters.get(name)}
        return self.uploads.create(request.path_params["bucket"], str(parameters.get("name") or ""), expected, fields)

    async def _receive_whole_upload_and_respond(
        self, request: Request, upload: Upload, media: AsyncIterator[bytes]
    ) -> Response:
        """Receive the whole content in this request; an interrupted upload is deleted."""
        try:
            await upload.append_stream(media)
            return await self._complete_upload_and_respond(request, upload)
        finally:
            self.uploads.discard(upload)

    async def _receive_chunk_then_complete_or_report_progress(self, request: Request) -> Response:
        """Receive a chunk by its Content-Range, or answer how much has arrived (Cloud Storage, "Resumable uploads")."""
        upload = self.uploads.require(request.query_params.get("upload_id", ""))
        start, end, total = _parse_first_last_and_total_bytes(request.headers.get("content-range"))
        received = upload.received_byte_count_unless_finished
        if received is not None and (start is None or start <= received):
            if start is not None:
                upload.truncate(start)
                await upload.append_stream(request.stream())
            received = upload.received_byte_count_unless_finished
        if received is None:
            return await self._respond_with_object_of_finished_upload(request, upload)
        if (end is None and total is None and start is not None) or received == total:
            return await self._complete_upload_and_respond(request, upload)
        return Response(status_code=308, headers={"range": f"bytes=0-{received - 1}"} if received else {})

    def _cancel_upload(self, request: Request) -> Response:
        self.uploads.discard(self.uploads.require(request.query_params.get("upload_id", "")))
        return Response(status_code=499)  # as Cloud Storage does

    async def _complete_upload_and_respond(self, request: Request, upload: Upload) -> Response:
        expected = _parse_checksums_by_object_field(request.headers.get("x-goog-hash", ""))
        stored, checksums = await self.uploads.complete_and_get_object_with_checksums(upload, expected)
        return JSONResponse(serialize_object(get_base_url(request), stored, checksums))

    async def _respond_with_object_of_finished_upload(self, request: Request, upload: Upload) -> Response:
        stored, checksums = await self.uploads.require_current_object_and_checksums_of_finished_upload(
            upload, partial(raise_if_disconnected, request)
        )
        return JSONResponse(serialize_object(get_base_url(request), stored, checksums))


def _parse_first_last_and_total_bytes(content_range: str | None) -> tuple[int | None, int | None, int | None]:
    """Return first byte, last byte and total of a chunk: no first byte asks for the state, no header is all content."""
    if content_range is None:
        return 0, None, None
    match = _RANGE.fullmatch(content_range)
    if match is None:
        raise ApiError(
            "INVALID_ARGUMENT", f'Content-Range is "{content_range[:100]}"; it must be like "bytes 0-99/200"'
        )
    first, last, total = (int(text) if text and text != "*" else None for text in match.groups())
    return first, last, total


def _parse_checksums_by_object_field(hash_header: str) -> dict[str, str]:
    """Return the checksums of an `x-goog-hash` header by their field in the Objects resource."""
    pairs = (pair.strip().partition("=") for pair in hash_header.split(",") if pair.strip())
    return {_HASH_FIELDS[name]: value for name, _, value in pairs if name in _HASH_FIELDS}
