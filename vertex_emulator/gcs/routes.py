"""The HTTP side of Cloud Storage: buckets, objects and their media. Uploads are in upload_routes.py."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.checksums import checksums
from vertex_emulator.gcs.objects import Objects, StoredObject
from vertex_emulator.gcs.resource_json import content_type, serialize_bucket, serialize_object
from vertex_emulator.gcs.uploads import check_preconditions

MAX_PAGE = 1000
_SYSTEM = frozenset({"alt", "fields", "key", "prettyPrint", "projection", "quotaUser", "userProject", "$prettyPrint"})
_CONDITIONS = frozenset({"ifGenerationMatch", "ifGenerationNotMatch"})
# An object has one version here, so that all of them are what is listed; folders are prefixes already.
_IGNORED = frozenset({"versions", "includeFoldersAsPrefixes"})
# Above every name that starts with the same text, so that a page can go on behind a prefix.
_LAST = "\U0010ffff"


@dataclass(frozen=True)
class StorageRoutes:
    """Methods on buckets and objects."""

    objects: Objects

    def routes(self) -> list[Route]:
        """The routes, below `/storage/v1` and `/download/storage/v1` as Google's clients use them."""
        one = "/b/{bucket}/o/{name:path}"
        return [
            Route("/storage/v1/b", self._buckets, methods=["GET"]),
            Route("/storage/v1/b/{bucket}", self._bucket, methods=["GET"]),
            Route("/storage/v1/b/{bucket}", self._delete_bucket, methods=["DELETE"]),
            Route("/storage/v1/b/{bucket}/storageLayout", self._layout, methods=["GET"]),
            Route("/storage/v1/b/{bucket}/managedFolders", self._managed_folders, methods=["GET"]),
            Route("/storage/v1/b/{bucket}/o", self._list, methods=["GET"]),
            Route(f"/storage/v1{one}", self._get, methods=["GET"]),
            Route(f"/storage/v1{one}", self._delete, methods=["DELETE"]),
            Route(f"/download/storage/v1{one}", self._media, methods=["GET"]),
        ]

    def _buckets(self, request: Request) -> Response:
        query = check_query(request, {"project", "maxResults", "prefix"})
        names = [name for name in self.objects.buckets() if name.startswith(query.get("prefix", ""))]
        found = [serialize_bucket(base_url(request), name, self.objects.bucket(name)) for name in names]
        return JSONResponse({"kind": "storage#buckets", **({"items": found} if found else {})})

    def _bucket(self, request: Request) -> Response:
        check_query(request)
        name = request.path_params["bucket"]
        return JSONResponse(serialize_bucket(base_url(request), name, self.objects.bucket(name)))

    def _layout(self, request: Request) -> Response:
        """What gcloud asks before it removes a bucket: a flat one has no folders to be removed first."""
        name = request.path_params["bucket"]
        self.objects.bucket(name)
        flat = {"hierarchicalNamespace": {"enabled": False}}
        return JSONResponse({"kind": "storage#storageLayout", "bucket": name, **flat})

    def _managed_folders(self, request: Request) -> Response:
        """Managed folders carry access rules, which there are none of here."""
        self.objects.bucket(request.path_params["bucket"])
        return JSONResponse({"kind": "storage#managedFolders"})

    def _delete_bucket(self, request: Request) -> Response:
        check_query(request)
        self.objects.remove_bucket(request.path_params["bucket"])
        return Response(status_code=204)

    def _list(self, request: Request) -> Response:
        query = check_query(request, {"prefix", "delimiter", "maxResults", "pageToken", *_IGNORED})
        bucket, prefix = request.path_params["bucket"], query.get("prefix", "")
        names = self.objects.names(bucket, prefix, _after(query.get("pageToken", "")))
        grouped = _grouped(names, prefix, query.get("delimiter", ""))
        page = list(islice(grouped, _page_size(query) + 1))
        reply: dict[str, Any] = {"kind": "storage#objects"}
        if len(page) > _page_size(query):
            page.pop()
            last, is_prefix = page[-1]
            reply["nextPageToken"] = _token(last + _LAST if is_prefix else last)
        found = [self.objects.find(bucket, name) for name, is_prefix in page if not is_prefix]
        items = [serialize_object(base_url(request), each, {}) for each in found if each]
        prefixes = [name for name, is_prefix in page if is_prefix]
        return JSONResponse(
            {**reply, **({"items": items} if items else {}), **({"prefixes": prefixes} if prefixes else {})}
        )

    def _get(self, request: Request) -> Response:
        if request.query_params.get("alt") == "media":
            return self._media(request)
        found = self._found(request)
        # Checksums are read from the whole file: not where the client wants other fields only.
        fields = request.query_params.get("fields", "*")
        wanted = any(name in fields for name in ("*", "md5Hash", "crc32c")) and not found.name.endswith("/")
        return JSONResponse(serialize_object(base_url(request), found, checksums(found.path) if wanted else {}))

    def _media(self, request: Request) -> Response:
        found = self._found(request)
        if found.name.endswith("/"):
            return Response(b"")
        sums = checksums(found.path)
        return FileResponse(
            found.path,
            media_type=content_type(found.name),
            headers={
                "x-goog-hash": f"crc32c={sums['crc32c']},md5={sums['md5Hash']}",
                "x-goog-generation": str(found.generation),
                "x-goog-metageneration": "1",
                "x-goog-stored-content-length": str(found.size),
                "x-goog-storage-class": "STANDARD",
                # Whatever a container wrote, a browser is not to run it beside the emulator's own pages.
                "content-disposition": "attachment",
            },
        )

    def _delete(self, request: Request) -> Response:
        self.objects.remove(self._found(request))
        return Response(status_code=204)

    def _found(self, request: Request) -> StoredObject:
        query = check_query(request, {"generation", *_CONDITIONS})
        found = self.objects.get(request.path_params["bucket"], request.path_params["name"])
        if query.get("generation", str(found.generation)) != str(found.generation):
            raise ApiError("NOT_FOUND", f"No such object: {found.bucket}/{found.name}#{query['generation']}")
        check_preconditions(query, found)
        return found


def check_query(request: Request, known: Iterable[str] = ()) -> Mapping[str, str]:
    """The query; a name that a method has not is refused. Raises ApiError."""
    for name in request.query_params:
        if name not in _SYSTEM and name not in known:
            message = f'This emulator\'s Cloud Storage does not know the query parameter "{name}" here.'
            raise ApiError("INVALID_ARGUMENT", message, [(name, "unknown query parameter")])
    return request.query_params


def base_url(request: Request) -> str:
    """The emulator's URL as the client wrote it."""
    return str(request.base_url).rstrip("/")


def _grouped(names: Iterable[str], prefix: str, delimiter: str) -> Iterable[tuple[str, bool]]:
    """Names, those with the delimiter after the prefix cut behind it and given once; True marks such a prefix."""
    last = ""
    for name in names:
        head, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        if not found:
            yield name, False
        elif prefix + head + found != last:
            last = prefix + head + found
            yield last, True


def _page_size(query: Mapping[str, str]) -> int:
    text = query.get("maxResults", str(MAX_PAGE))
    if not text.isdecimal() or int(text) < 1:
        raise ApiError("INVALID_ARGUMENT", f"maxResults is {text!r}; it must be a positive number")
    return min(int(text), MAX_PAGE)


def _token(after: str) -> str:
    return base64.urlsafe_b64encode(after.encode()).decode()


def _after(token: str) -> str:
    try:
        return base64.b64decode(token, b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise ApiError("INVALID_ARGUMENT", "pageToken is none that this list gave out") from error
