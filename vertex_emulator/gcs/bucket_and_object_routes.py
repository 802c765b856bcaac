"""The routes of Cloud Storage's buckets, objects and media. Uploads are in upload_routes.py."""

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
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.bucket_and_object_json import guess_content_type, serialize_bucket, serialize_object
from vertex_emulator.gcs.checksums import compute_checksums
from vertex_emulator.gcs.object_store import ObjectStore, StoredObject, check_preconditions
from vertex_emulator.http.json_request_body import read_json_object
from vertex_emulator.http.open_file_response import OpenFileResponse

MAX_PAGE_SIZE = 1000
_NUMBER = re.compile("[0-9]{1,10}")
_SYSTEM_PARAMETERS = {"alt", "fields", "key", "prettyPrint", "projection", "quotaUser", "userProject", "$prettyPrint"}
_PRECONDITIONS = {"ifGenerationMatch", "ifGenerationNotMatch"}
# An object has one version here, and folders are listed as prefixes anyway.
_IGNORED_PARAMETERS = {"versions", "includeFoldersAsPrefixes"}
# Sorts after every name that starts with the same text, so that a page can continue after a prefix.
_AFTER_PREFIX = "\U0010ffff"


@dataclass(frozen=True)
class BucketAndObjectRoutes:
    """Methods on buckets and objects."""

    objects: ObjectStore

    def build_routes(self) -> list[Route]:
        """Return the routes below `/storage/v1` and `/download/storage/v1`."""
        one = "/b/{bucket}/o/{name:path}"
        return [
            Route("/storage/v1/b", self._list_all_buckets, methods=["GET"]),
            Route("/storage/v1/b", self._create_new_bucket, methods=["POST"]),
            Route("/storage/v1/b/{bucket}", self._get_bucket, methods=["GET"]),
            Route("/storage/v1/b/{bucket}", self._delete_bucket, methods=["DELETE"]),
            Route("/storage/v1/b/{bucket}/storageLayout", self._get_storage_layout, methods=["GET"]),
            Route("/storage/v1/b/{bucket}/managedFolders", self._list_managed_folders, methods=["GET"]),
            Route("/storage/v1/b/{bucket}/o", self._list_objects, methods=["GET"]),
            Route(f"/storage/v1{one}", self._get_object_or_media, methods=["GET"]),
            Route(f"/storage/v1{one}", self._delete_object, methods=["DELETE"]),
            Route(f"/download/storage/v1{one}", self._download_media, methods=["GET"]),
        ]

    def _list_all_buckets(self, request: Request) -> Response:
        query = get_checked_query(request, {"project", "maxResults", "prefix"})
        names = [name for name in self.objects.list_bucket_names() if name.startswith(query.get("prefix", ""))]
        statuses = [(name, self.objects.find_bucket_folder_stat(name)) for name in names]
        base_url = get_base_url(request)
        items = [serialize_bucket(base_url, name, status) for name, status in statuses if status is not None]
        return _respond_with_list("storage#buckets", items=items)

    async def _create_new_bucket(self, request: Request) -> Response:
        get_checked_query(request, {"project", "predefinedAcl", "predefinedDefaultObjectAcl", "enableObjectRetention"})
        name = str((await read_json_object(request)).get("name", ""))
        self.objects.create_new_bucket(name)
        return JSONResponse(
            serialize_bucket(get_base_url(request), name, self.objects.require_bucket_folder_stat(name))
        )

    def _get_bucket(self, request: Request) -> Response:
        get_checked_query(request)
        name = request.path_params["bucket"]
        return JSONResponse(
            serialize_bucket(get_base_url(request), name, self.objects.require_bucket_folder_stat(name))
        )

    def _get_storage_layout(self, request: Request) -> Response:
        """Return the layout that gcloud requests before it deletes a bucket: a flat one, without folders to delete."""
        name = request.path_params["bucket"]
        self.objects.require_bucket_folder_stat(name)
        flat = {"hierarchicalNamespace": {"enabled": False}}
        return JSONResponse({"kind": "storage#storageLayout", "bucket": name, **flat})

    def _list_managed_folders(self, request: Request) -> Response:
        """Return no managed folders: they carry access rules, which do not exist here."""
        self.objects.require_bucket_folder_stat(request.path_params["bucket"])
        return _respond_with_list("storage#managedFolders")

    def _delete_bucket(self, request: Request) -> Response:
        get_checked_query(request)
        self.objects.delete_bucket(request.path_params["bucket"])
        return Response(status_code=204)

    def _list_objects(self, request: Request) -> Response:
        query = get_checked_query(request, {"prefix", "delimiter", "maxResults", "pageToken", *_IGNORED_PARAMETERS})
        bucket, prefix = request.path_params["bucket"], query.get("prefix", "")
        after, delimiter = _parse_last_name(query.get("pageToken", "")), query.get("delimiter", "")
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
        return _respond_with_list("storage#objects", nextPageToken=token, items=items, prefixes=prefixes)

    async def _get_object_or_media(self, request: Request) -> Response:
        if request.query_params.get("alt") == "media":
            return await self._download_media(request)
        # Checksums require reading the whole file, so they are computed only if the client requests them.
        fields = request.query_params.get("fields", "*")
        if not any(name in fields for name in ("*", "md5Hash", "crc32c")):
            stored, checksums = await to_thread.run_sync(self._check_query_and_require_stored_object, request), {}
        else:
            stored, file = await to_thread.run_sync(self._check_query_require_object_and_open_file, request)
            with file or contextlib.nullcontext():
                checksums = await _compute_checksums_while_connected(request, file)
        return JSONResponse(serialize_object(get_base_url(request), stored, checksums))

    async def _download_media(self, request: Request) -> Response:
        stored, file = await to_thread.run_sync(self._check_query_require_object_and_open_file, request)
        if file is None:
            return Response(b"")
        with contextlib.ExitStack() as closed_on_error:
            closed_on_error.enter_context(file)
            checksums = await _compute_checksums_while_connected(request, file)
            closed_on_error.pop_all()
        return OpenFileResponse(
            file,
            media_type=guess_content_type(stored.name),
            headers={
                "x-goog-hash": f"crc32c={checksums['crc32c']},md5={checksums['md5Hash']}",
                "x-goog-generation": str(stored.generation),
                "x-goog-metageneration": "1",
                "x-goog-stored-content-length": str(stored.size),
                "x-goog-storage-class": "STANDARD",
                # A browser must not run what a container wrote with the rights of the emulator's own pages.
                "content-disposition": "attachment",
            },
        )

    def _delete_object(self, request: Request) -> Response:
        self.objects.delete_object(self._check_query_and_require_stored_object(request))
        return Response(status_code=204)

    def _check_query_and_require_stored_object(self, request: Request) -> StoredObject:
        query = get_checked_query(request, {"generation", *_PRECONDITIONS})
        stored = self.objects.require_object_or_folder(request.path_params["bucket"], request.path_params["name"])
        _check_generation_and_preconditions(query, stored)
        return stored

    def _check_query_require_object_and_open_file(self, request: Request) -> tuple[StoredObject, FileIO | None]:
        """Return an object and its open file; a folder has none. Raises ApiError and OSError."""
        query = get_checked_query(request, {"generation", *_PRECONDITIONS})
        stored, file = self.objects.require_object_and_open_file(
            request.path_params["bucket"], request.path_params["name"]
        )
        with contextlib.ExitStack() as closed_on_error:
            closed_on_error.enter_context(file or contextlib.nullcontext())
            _check_generation_and_preconditions(query, stored)
            closed_on_error.pop_all()
        return stored, file


def get_checked_query(request: Request, allowed: Iterable[str] = ()) -> Mapping[str, str]:
    """Return the query. Raises ApiError for a parameter that the method does not have."""
    for name in request.query_params:
        if name not in _SYSTEM_PARAMETERS and name not in allowed:
            message = f'This emulator\'s Cloud Storage does not know the query parameter "{name}" here.'
            raise ApiError("INVALID_ARGUMENT", message, [(name, "unknown query parameter")])
    return request.query_params


def get_base_url(request: Request) -> str:
    """Return the emulator's URL as the client wrote it."""
    return str(request.base_url).rstrip("/")


async def raise_if_disconnected(request: Request) -> None:
    """Raise ClientDisconnect if the client, whose whole body has arrived, has left."""
    if await request.is_disconnected():
        raise ClientDisconnect


def _check_generation_and_preconditions(query: Mapping[str, str], stored: StoredObject) -> None:
    """Raise ApiError if the query asks for another generation, or a precondition does not hold."""
    if query.get("generation", str(stored.generation)) != str(stored.generation):
        raise ApiError("NOT_FOUND", f"No such object: {stored.bucket}/{stored.name}#{query['generation']}")
    check_preconditions(query, stored)


async def _compute_checksums_while_connected(request: Request, file: FileIO | None) -> dict[str, str]:
    """Return the checksums of a file, none without one. Raises ClientDisconnect and OSError."""
    return {} if file is None else await compute_checksums(file, partial(raise_if_disconnected, request))


def _respond_with_list(kind: str, **fields: Any) -> Response:
    return JSONResponse({"kind": kind, **{name: value for name, value in fields.items() if value}})


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


def _parse_last_name(page_token: str) -> str:
    try:
        return base64.b64decode(page_token, b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise ApiError("INVALID_ARGUMENT", "pageToken was not returned by this list") from error
