"""The routes of Cloud Storage's objects and media. Uploads and copies have modules of their own."""

import base64
import binascii
import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from io import FileIO
from itertools import islice
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.checksums import compute_checksums
from vertex_emulator.gcs.client_set_metadata_fields import parse_object_fields, patch_object_fields
from vertex_emulator.gcs.object_records import StoredObject
from vertex_emulator.gcs.object_store import ObjectStore
from vertex_emulator.gcs.preconditions import (
    PRECONDITIONS,
    raise_unless_generation_matches,
    raise_unless_preconditions_hold,
)
from vertex_emulator.gcs.routes.bucket_and_object_json import (
    get_base_url,
    serialize_list_without_empty_fields,
    serialize_object,
)
from vertex_emulator.gcs.routes.os_and_disconnect_errors import raise_if_disconnected
from vertex_emulator.gcs.routes.unsupported_requests import (
    get_bucket_and_object_name_or_refuse_acl_method,
    get_checked_query,
)
from vertex_emulator.http.json_request_body import read_json_object
from vertex_emulator.http.open_file_response import OpenFileResponse

MAX_PAGE_SIZE = 1000
_NUMBER = re.compile("[0-9]{1,10}")
_METADATA_PARAMETERS = {"generation", "predefinedAcl", *PRECONDITIONS}
# An object has one version here, and folders are listed as prefixes anyway.
_IGNORED_PARAMETERS = {"versions", "includeFoldersAsPrefixes"}
# Sorts after every name that starts with the same text, so that a page can continue after a prefix.
_AFTER_PREFIX = "\U0010ffff"


@dataclass(frozen=True)
class ObjectRoutes:
    """Methods on objects, without those that store content."""

    objects: ObjectStore

    def build_routes(self) -> list[Route]:
        """Return the routes below `/storage/v1` and `/download/storage/v1`."""
        one = "/b/{bucket}/o/{name:path}"
        return [
            Route("/storage/v1/b/{bucket}/o", self._list_objects, methods=["GET"]),
            Route(f"/storage/v1{one}", self._get_object_or_media, methods=["GET"]),
            Route(f"/storage/v1{one}", self._patch_or_update_object, methods=["PATCH", "PUT"]),
            Route(f"/storage/v1{one}", self._delete_object, methods=["DELETE"]),
            Route(f"/download/storage/v1{one}", self._download_media, methods=["GET"]),
        ]

    def _list_objects(self, request: Request) -> Response:
        query = get_checked_query(request, {"prefix", "delimiter", "maxResults", "pageToken", *_IGNORED_PARAMETERS})
        bucket, prefix = request.path_params["bucket"], query.get("prefix", "")
        after, delimiter = _decode_last_name(query.get("pageToken", "")), query.get("delimiter", "")
        names = self.objects.iterate_object_names(bucket, prefix, after, folders_as_prefixes=delimiter == "/")
        grouped = _iterate_names_or_prefixes_with_is_prefix(names, prefix, delimiter)
        page = list(islice(grouped, _parse_page_size(query) + 1))
        token = ""
        if len(page) > _parse_page_size(query):
            page.pop()
            last, is_prefix = page[-1]
            token = base64.urlsafe_b64encode((last + _AFTER_PREFIX if is_prefix else last).encode()).decode()
        objects = self.objects.list_existing_objects(bucket, [name for name, is_prefix in page if not is_prefix])
        items = [serialize_object(get_base_url(request), stored, {}) for stored in objects]
        prefixes = [name for name, is_prefix in page if is_prefix]
        return JSONResponse(
            serialize_list_without_empty_fields("storage#objects", nextPageToken=token, items=items, prefixes=prefixes)
        )

    async def _get_object_or_media(self, request: Request) -> Response:
        if request.query_params.get("alt") == "media":
            return await self._download_media(request)
        if not _has_checksums_in_requested_fields(request):
            stored = await to_thread.run_sync(self._require_stored_object_of_request, request)
            return JSONResponse(serialize_object(get_base_url(request), stored, {}))
        stored, file = await to_thread.run_sync(self._require_requested_object_and_open_unless_folder, request)
        return await _respond_with_object_and_checksums(request, stored, file)

    async def _download_media(self, request: Request) -> Response:
        stored, file = await to_thread.run_sync(self._require_requested_object_and_open_unless_folder, request)
        if file is None:
            return Response(b"")
        with contextlib.ExitStack() as closed_on_error:
            closed_on_error.enter_context(file)
            checksums = await _compute_checksums_while_connected(request, file)
            closed_on_error.pop_all()
        return OpenFileResponse(
            file,
            media_type=stored.content_type,
            headers={
                "content-type": stored.content_type,  # without the charset that the framework adds to media_type
                "x-goog-hash": f"crc32c={checksums['crc32c']},md5={checksums['md5Hash']}",
                "x-goog-generation": str(stored.generation),
                "x-goog-metageneration": str(stored.metadata.metageneration),
                "x-goog-stored-content-length": str(stored.size),
                "x-goog-storage-class": "STANDARD",
                # A browser must not run what a container wrote with the rights of the emulator's own pages.
                "content-disposition": "attachment",
            },
        )

    async def _patch_or_update_object(self, request: Request) -> Response:
        """Change metadata: PATCH keeps what it does not name, PUT (objects.update) replaces everything."""
        query = get_checked_query(request, _METADATA_PARAMETERS)
        bucket, name = get_bucket_and_object_name_or_refuse_acl_method(request)
        body = await read_json_object(request)

        def check_preconditions_and_build_fields(stored: StoredObject) -> Mapping[str, Any]:
            _raise_unless_object_matches_query(query, stored)
            is_patch = request.method == "PATCH"
            return patch_object_fields(stored.metadata.fields, body) if is_patch else parse_object_fields(body)

        stored = await to_thread.run_sync(self.objects.set_metadata, bucket, name, check_preconditions_and_build_fields)
        if not _has_checksums_in_requested_fields(request):
            return JSONResponse(serialize_object(get_base_url(request), stored, {}))
        stored, file = await to_thread.run_sync(self.objects.require_object_and_open_unless_folder, bucket, name)
        return await _respond_with_object_and_checksums(request, stored, file)

    def _delete_object(self, request: Request) -> Response:
        query = get_checked_query(request, {"generation", *PRECONDITIONS})
        bucket, name = get_bucket_and_object_name_or_refuse_acl_method(request)
        self.objects.delete_object(bucket, name, partial(_raise_unless_object_matches_query, query))
        return Response(status_code=204)

    def _require_stored_object_of_request(self, request: Request) -> StoredObject:
        query = get_checked_query(request, {"generation", *PRECONDITIONS})
        stored = self.objects.require_object_or_folder(*get_bucket_and_object_name_or_refuse_acl_method(request))
        _raise_unless_object_matches_query(query, stored)
        return stored

    def _require_requested_object_and_open_unless_folder(self, request: Request) -> tuple[StoredObject, FileIO | None]:
        """Return an object and its open file, None for a folder. Raises ApiError and OSError."""
        query = get_checked_query(request, {"generation", *PRECONDITIONS})
        stored, file = self.objects.require_object_and_open_unless_folder(
            *get_bucket_and_object_name_or_refuse_acl_method(request)
        )
        with contextlib.ExitStack() as closed_on_error:
            closed_on_error.enter_context(file or contextlib.nullcontext())
            _raise_unless_object_matches_query(query, stored)
            closed_on_error.pop_all()
        return stored, file


def _raise_unless_object_matches_query(query: Mapping[str, str], stored: StoredObject) -> None:
    raise_unless_generation_matches(query.get("generation"), stored)
    raise_unless_preconditions_hold(query, stored)


def _has_checksums_in_requested_fields(request: Request) -> bool:
    """Return whether the client wants checksums, which require reading the whole file."""
    fields = request.query_params.get("fields", "*")
    return any(name in fields for name in ("*", "md5Hash", "crc32c"))


async def _respond_with_object_and_checksums(request: Request, stored: StoredObject, file: FileIO | None) -> Response:
    with file or contextlib.nullcontext():
        checksums = await _compute_checksums_while_connected(request, file)
    return JSONResponse(serialize_object(get_base_url(request), stored, checksums))


async def _compute_checksums_while_connected(request: Request, file: FileIO | None) -> dict[str, str]:
    """Return the checksums of a file, none without one. Raises ClientDisconnect and OSError."""
    return {} if file is None else await compute_checksums(file, partial(raise_if_disconnected, request))


def _iterate_names_or_prefixes_with_is_prefix(
    names: Iterable[str], prefix: str, delimiter: str
) -> Iterable[tuple[str, bool]]:
    """Yield names and, once each and with True, the prefixes of names that have the delimiter after `prefix`."""
    last = ""
    for name in names:
        head, separator, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        if not separator:
            yield name, False
        elif prefix + head + separator != last:
            last = prefix + head + separator
            yield last, True


def _parse_page_size(query: Mapping[str, str]) -> int:
    text = query.get("maxResults", str(MAX_PAGE_SIZE))
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise ApiError("INVALID_ARGUMENT", f"maxResults is {text[:20]!r}; it must be a positive number")
    return min(int(text), MAX_PAGE_SIZE)


def _decode_last_name(page_token: str) -> str:
    try:
        return base64.b64decode(page_token, b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise ApiError("INVALID_ARGUMENT", "pageToken was not returned by this list") from error
