"""All routes of Cloud Storage's JSON API, and its methods on buckets and objects."""

import base64
import binascii
import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import FileIO
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs import batch, messages, metadata
from vertex_emulator.gcs.copies import CopyRoutes
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.gcs.metadata import MetadataDatabase
from vertex_emulator.gcs.objects import PRECONDITIONS, BucketStore, ObjectStore, StoredObject, check_preconditions
from vertex_emulator.gcs.uploads import UploadRoutes, Uploads
from vertex_emulator.http.permissions import need
from vertex_emulator.http.requests import read_json
from vertex_emulator.http.responses import OpenFileResponse

MAX_PAGE_SIZE = 1000
_NUMBER = re.compile("[0-9]{1,10}")
_OBJECT_PARAMETERS = {"generation", *PRECONDITIONS}
# An object has one version here, and folders are listed as prefixes anyway.
_OFFSETS = ("startOffset", "endOffset")
_IGNORED_PARAMETERS = {"versions", "includeFoldersAsPrefixes"}
# Sorts after every name that starts with the same text, so that a page can continue after a prefix.
_AFTER_PREFIX = "\U0010ffff"
_ACCESS_RULES = re.compile(r"/storage/v1/b/[^/]+/o/[^/]+/(?:acl(?:/[^/]+)?|iam(?:/testPermissions)?)")


def build(buckets_folder: Path, uploads_folder: Path, metadata_file: Path) -> list[Route]:
    """Return all routes of Cloud Storage, on the folder of all buckets.

    Unfinished uploads are in `uploads_folder`, metadata of objects in `metadata_file`. Raises StartError if the
    metadata cannot be read.
    """
    objects = ObjectStore(BucketStore(BucketTree(buckets_folder), MetadataDatabase(metadata_file)))
    uploads = Uploads.open(uploads_folder, objects)
    buckets_api, objects_api = BucketRoutes(objects.buckets), ObjectRoutes(objects)
    copies_api, uploads_api = CopyRoutes(objects, uploads), UploadRoutes(uploads)

    storage = "/storage/v1"
    bucket, one = f"{storage}/b/{{bucket}}", "b/{bucket}/o/{name:path}"
    routes = [
        Route(f"{storage}/b", buckets_api.list, methods=["GET"]),
        Route(f"{storage}/b", buckets_api.create, methods=["POST"]),
        Route(bucket, buckets_api.get, methods=["GET"]),
        Route(bucket, buckets_api.delete, methods=["DELETE"]),
        Route(f"{bucket}/storageLayout", buckets_api.get_layout, methods=["GET"]),
        Route(f"{bucket}/managedFolders", buckets_api.list_managed_folders, methods=["GET"]),
        Route(f"{bucket}/o", objects_api.list, methods=["GET"]),
        Route(f"{storage}/{one}", objects_api.get, methods=["GET"]),
        _ChangeRoute(f"{storage}/{one}", objects_api.patch, methods=["PATCH", "PUT"]),
        Route(f"{storage}/{one}", objects_api.delete, methods=["DELETE"]),
        Route(f"/download{storage}/{one}", objects_api.download, methods=["GET"]),
        Route(f"{bucket}/o/{{call:path}}", copies_api.call, methods=["POST"]),
    ]

    for prefix in ("/upload", "/resumable/upload"):  # the latter is gcloud's
        routes += [
            Route(f"{prefix}{bucket}/o", uploads_api.begin, methods=["POST"]),
            Route(f"{prefix}{bucket}/o", uploads_api.proceed, methods=["PUT"]),
            Route(f"{prefix}{bucket}/o", uploads_api.cancel, methods=["DELETE"]),
        ]

    routes.append(Route("/batch/storage/v1", batch.answer, methods=["POST"]))
    # The rest of Cloud Storage, which the emulator refuses.
    others = [f"{prefix}{storage}/{{path:path}}" for prefix in ("", "/upload", "/download")]
    for path in (*others, "/batch/storage/v1"):
        routes.append(Route(path, messages.refuse, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]))
    return routes


class _ChangeRoute(Route):
    """A route that takes a POST with the method that it stands for: Java's `HttpURLConnection` sends no PATCH."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route."""
        if scope["method"] != "POST" or Headers(scope=scope).get("x-http-method-override") != "PATCH":
            return super().matches(scope)
        match, child_scope = super().matches({**scope, "method": "PATCH"})
        return match, {**child_scope, "method": "PATCH"}


@dataclass(frozen=True)
class BucketRoutes:
    """Methods on buckets."""

    buckets: BucketStore

    def list(self, request: Request) -> Response:
        """List all buckets in one page."""
        need(request, "storage.buckets.list", "project")
        query = messages.checked_query(request, {"project", "maxResults", "prefix"})
        names = [name for name in self.buckets.names() if name.startswith(query.get("prefix", ""))]
        found = [(name, self.buckets.find(name)) for name in names]
        items = [messages.bucket_json(request, name, folder) for name, folder in found if folder is not None]
        return messages.list_reply("storage#buckets", items=items)

    async def create(self, request: Request) -> Response:
        """Create a bucket; where it is and who may use it has no effect."""
        need(request, "storage.buckets.create", "project")
        allowed = {"project", "predefinedAcl", "predefinedDefaultObjectAcl", "enableObjectRetention"}
        messages.checked_query(request, allowed)
        name = str((await read_json(request)).get("name", ""))
        self.buckets.create(name)
        return self._reply(request, name)

    def get(self, request: Request) -> Response:
        """Return a bucket."""
        need(request, "storage.buckets.get", f"gs://{request.path_params['bucket']}")
        messages.checked_query(request)
        return self._reply(request, request.path_params["bucket"])

    def _reply(self, request: Request, name: str) -> Response:
        return JSONResponse(messages.bucket_json(request, name, self.buckets.require(name)))

    def delete(self, request: Request) -> Response:
        """Delete an empty bucket."""
        need(request, "storage.buckets.delete", f"gs://{request.path_params['bucket']}")
        messages.checked_query(request)
        self.buckets.delete(request.path_params["bucket"])
        return Response(status_code=204)

    def get_layout(self, request: Request) -> Response:
        """Return the layout that gcloud requests before it deletes a bucket: a flat one, without folders to delete."""
        name = request.path_params["bucket"]
        self.buckets.require(name)
        flat = {"hierarchicalNamespace": {"enabled": False}}
        return JSONResponse({"kind": "storage#storageLayout", "bucket": name, **flat})

    def list_managed_folders(self, request: Request) -> Response:
        """Return no managed folders: they carry access rules, which do not exist here."""
        need(request, "storage.managedFolders.list", f"gs://{request.path_params['bucket']}")
        self.buckets.require(request.path_params["bucket"])
        return messages.list_reply("storage#managedFolders")


@dataclass(frozen=True)
class ObjectRoutes:
    """Methods on objects, without those that store content."""

    objects: ObjectStore

    async def list(self, request: Request) -> Response:
        """List a page of objects and, with a delimiter, of prefixes; with checksums if the fields name them."""
        need(request, "storage.objects.list", f"gs://{request.path_params['bucket']}")
        page, prefixes, token = await to_thread.run_sync(self._page, request)
        fields, items = request.query_params.get("fields", ""), []
        for stored in page:
            checksums: Mapping[str, str] = {}
            if "md5Hash" in fields or "crc32c" in fields:
                try:
                    stored, file = await to_thread.run_sync(self.objects.open, stored.bucket, stored.name)
                except ApiError:  # it was removed meanwhile
                    continue
                with file or contextlib.nullcontext():
                    checksums = await messages.file_checksums(request, file) if file else {}
            items.append(messages.object_json(request, stored, checksums))
        return messages.list_reply("storage#objects", nextPageToken=token, items=items, prefixes=prefixes)

    def _page(self, request: Request) -> tuple[Sequence[StoredObject], Sequence[str], str]:
        """Return the objects and prefixes of a page, and the token of the next one, "" for the last."""
        allowed = {"prefix", "delimiter", "maxResults", "pageToken", *_OFFSETS, *_IGNORED_PARAMETERS}
        query = messages.checked_query(request, allowed)
        bucket, prefix, delimiter = request.path_params["bucket"], query.get("prefix", ""), query.get("delimiter", "")
        after, size = _last_name(query.get("pageToken", "")), _page_size(query)
        start, end = (query.get(name, "") for name in _OFFSETS)
        names = self.objects.names(bucket, prefix, after, folders_as_prefixes=delimiter == "/" and not (start or end))
        names = takewhile(lambda name: not end or name < end, dropwhile(lambda name: name < start, names))
        page = list(islice(_group(names, prefix, delimiter), size + 1))
        token = ""
        if len(page) > size:
            page.pop()
            last, is_prefix = page[-1]
            token = base64.urlsafe_b64encode((last + _AFTER_PREFIX if is_prefix else last).encode()).decode()
        found = self.objects.existing(bucket, [name for name, is_prefix in page if not is_prefix])
        return found, [name for name, is_prefix in page if is_prefix], token

    async def get(self, request: Request) -> Response:
        """Return an object or its content."""
        _need(request, "storage.objects.get")
        if request.query_params.get("alt") == "media":
            return await self._content(request)
        if not _wants_checksums(request):
            stored = await to_thread.run_sync(self._require, request)
            return JSONResponse(messages.object_json(request, stored))
        return await messages.object_reply(request, *await to_thread.run_sync(self._open, request))

    async def download(self, request: Request) -> Response:
        """Return the content of an object."""
        _need(request, "storage.objects.get")
        return await self._content(request)

    async def _content(self, request: Request) -> Response:
        stored, file = await to_thread.run_sync(self._open, request)
        if file is None:
            return Response(b"")
        with contextlib.ExitStack() as closed_on_error:
            closed_on_error.enter_context(file)
            checksums = await messages.file_checksums(request, file)
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

    async def patch(self, request: Request) -> Response:
        """Change metadata: PATCH keeps what it does not name, PUT (objects.update) replaces everything."""
        query = messages.checked_query(request, {"predefinedAcl", *_OBJECT_PARAMETERS})
        bucket, name = _object_name(request)
        for verb in ("get", "update"):
            _need(request, f"storage.objects.{verb}")
        body = await read_json(request)

        def build_fields(stored: StoredObject) -> Mapping[str, Any]:
            _check(query, stored)
            is_patch = request.method == "PATCH"
            return metadata.patch(stored.metadata.fields, body) if is_patch else metadata.parse(body)

        stored = await to_thread.run_sync(self.objects.set_metadata, bucket, name, build_fields)
        if not _wants_checksums(request):
            return JSONResponse(messages.object_json(request, stored))
        return await messages.object_reply(request, *await to_thread.run_sync(self.objects.open, bucket, name))

    def delete(self, request: Request) -> Response:
        """Delete an object or an empty folder."""
        _need(request, "storage.objects.delete")
        query = messages.checked_query(request, _OBJECT_PARAMETERS)
        self.objects.delete(*_object_name(request), partial(_check, query))
        return Response(status_code=204)

    def _require(self, request: Request) -> StoredObject:
        query = messages.checked_query(request, _OBJECT_PARAMETERS)
        stored = self.objects.require(*_object_name(request))
        _check(query, stored)
        return stored

    def _open(self, request: Request) -> tuple[StoredObject, FileIO | None]:
        """Return an object and its open file, None for a folder. Raises ApiError and OSError."""
        query = messages.checked_query(request, _OBJECT_PARAMETERS)
        stored, file = self.objects.open(*_object_name(request))
        with contextlib.ExitStack() as closed_on_error:
            closed_on_error.enter_context(file or contextlib.nullcontext())
            _check(query, stored)
            closed_on_error.pop_all()
        return stored, file


def _object_name(request: Request) -> tuple[str, str]:
    """Return the names in a path `/b/BUCKET/o/NAME`. Raises ApiError for a method on an object's access rules."""
    if _ACCESS_RULES.fullmatch(messages.encoded_path(request)):
        messages.refuse(request)
    return request.path_params["bucket"], request.path_params["name"]


def _need(request: Request, permission: str) -> None:
    need(request, permission, "gs://" + "/".join(_object_name(request)))


def _check(query: Mapping[str, str], stored: StoredObject) -> None:
    stored.require_generation(query.get("generation"))
    check_preconditions(query, stored)


def _wants_checksums(request: Request) -> bool:
    """Return whether the client wants checksums, which require reading the whole file."""
    fields = request.query_params.get("fields", "*")
    return any(name in fields for name in ("*", "md5Hash", "crc32c"))


def _group(names: Iterable[str], prefix: str, delimiter: str) -> Iterable[tuple[str, bool]]:
    """Yield names and, once each and with True, the prefixes of names that have the delimiter after `prefix`."""
    last = ""
    for name in names:
        head, separator, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        if not separator:
            yield name, False
        elif prefix + head + separator != last:
            last = prefix + head + separator
            yield last, True


def _page_size(query: Mapping[str, str]) -> int:
    text = query.get("maxResults", str(MAX_PAGE_SIZE))
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise ApiError("INVALID_ARGUMENT", f"maxResults is {text[:20]!r}; it must be a positive number")
    return min(int(text), MAX_PAGE_SIZE)


def _last_name(page_token: str) -> str:
    try:
        return base64.b64decode(page_token, b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise ApiError("INVALID_ARGUMENT", "pageToken was not returned by this list") from error
