"""The routes of Cloud Storage that make an object of others: copy, rewrite, compose and move."""

import contextlib
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import FileIO
from typing import Any
from urllib.parse import unquote

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.client_set_metadata_fields import parse_object_fields
from vertex_emulator.gcs.object_records import StoredObject
from vertex_emulator.gcs.object_store import ObjectStore
from vertex_emulator.gcs.preconditions import (
    PRECONDITIONS,
    SOURCE_PRECONDITIONS,
    raise_unless_generation_matches,
    raise_unless_preconditions_hold,
)
from vertex_emulator.gcs.routes.bucket_and_object_json import get_base_url, serialize_object
from vertex_emulator.gcs.routes.compose_body_parser import parse_composition
from vertex_emulator.gcs.routes.os_and_disconnect_errors import raise_if_disconnected
from vertex_emulator.gcs.routes.unsupported_requests import get_checked_query, get_encoded_path, raise_unimplemented
from vertex_emulator.gcs.upload_sessions import Uploads
from vertex_emulator.http.json_request_body import read_json_object

_BATCH_BYTES = 1 << 20
_MOVE_PARAMETERS = {"sourceGeneration", *PRECONDITIONS, *SOURCE_PRECONDITIONS}
_PARAMETERS = {
    "moveTo": _MOVE_PARAMETERS,
    "copyTo": {"destinationPredefinedAcl", *_MOVE_PARAMETERS},
    # One call rewrites everything, so that none returns a token to go on with.
    "rewriteTo": {"destinationPredefinedAcl", "maxBytesRewrittenPerCall", *_MOVE_PARAMETERS},
    "compose": {"destinationPredefinedAcl", *PRECONDITIONS},
}
_CALL = re.compile(
    r"/storage/v1/b/([^/]+)/o/(.+?)/"
    r"(?:(compose)|(copyTo|rewriteTo)/b/([^/]+)/o/(.+)|(moveTo)/o/(.+))"
)
_Source = tuple[StoredObject, FileIO | None]


@dataclass(frozen=True)
class CopyCall:
    """A call of copyTo, rewriteTo, moveTo or compose: of an object, with a destination (for `compose`, the object)."""

    bucket: str
    name: str
    method: str
    destination_bucket: str
    destination_name: str


@dataclass(frozen=True)
class CopyRoutes:
    """Methods that make an object of others. Content is copied, as an upload: files that are links share changes."""

    objects: ObjectStore
    uploads: Uploads

    def build_routes(self) -> list[Route]:
        """Return the route of all methods that are sent by POST to an object."""
        return [Route("/storage/v1/b/{bucket}/o/{call:path}", self._copy_compose_or_move, methods=["POST"])]

    async def _copy_compose_or_move(self, request: Request) -> Response:
        call = parse_copy_call_or_none(get_encoded_path(request))
        if call is None:
            return raise_unimplemented(request)
        query = get_checked_query(request, _PARAMETERS[call.method])
        body = await read_json_object(request)
        if call.method == "moveTo":
            stored = await to_thread.run_sync(self._move_and_get_object, query, call)
            return JSONResponse(serialize_object(get_base_url(request), stored, {}))
        with contextlib.ExitStack() as open_files:
            if call.method == "compose":
                sources, fields = await to_thread.run_sync(
                    self._get_opened_compose_sources_and_fields, call, body, open_files
                )
            else:
                sources, fields = await to_thread.run_sync(
                    self._get_opened_copy_sources_and_fields, call, body, query, open_files
                )
            stored, checksums = await self._join_sources_to_object_with_checksums(request, call, sources, fields)
        resource = serialize_object(get_base_url(request), stored, checksums)
        if call.method != "rewriteTo":
            return JSONResponse(resource)
        size = str(stored.size)
        reply = {"kind": "storage#rewriteResponse", "totalBytesRewritten": size, "objectSize": size, "done": True}
        return JSONResponse({**reply, "resource": resource})

    def _move_and_get_object(self, query: Mapping[str, str], call: CopyCall) -> StoredObject:
        raise_unless_source_is_movable = partial(_raise_unless_source_matches_query, query)
        return self.objects.move_object(
            call.bucket, call.name, call.destination_name, query, raise_unless_source_is_movable
        )

    def _get_opened_copy_sources_and_fields(
        self, call: CopyCall, body: Mapping[str, Any], query: Mapping[str, str], open_files: contextlib.ExitStack
    ) -> tuple[list[_Source], Mapping[str, Any]]:
        """Return the source of a copy, open, and the copy's metadata: the source's unless the body has some."""
        fields = parse_object_fields(body)
        stored, file = self.objects.require_object_and_open_unless_folder(call.bucket, call.name)
        open_files.enter_context(file or contextlib.nullcontext())
        _raise_unless_source_matches_query(query, stored)
        return [(stored, file)], fields or stored.fields_of_copy

    def _get_opened_compose_sources_and_fields(
        self, call: CopyCall, body: Mapping[str, Any], open_files: contextlib.ExitStack
    ) -> tuple[list[_Source], Mapping[str, Any]]:
        """Return the sources of a composed object, open, and its metadata."""
        composition = parse_composition(body)
        sources = []
        for component in composition.components:
            stored, file = self.objects.require_object_and_open_unless_folder(call.bucket, component.name)
            open_files.enter_context(file or contextlib.nullcontext())
            raise_unless_generation_matches(component.generation, stored)
            raise_unless_preconditions_hold(component.preconditions, stored)
            sources.append((stored, file))
        return sources, composition.fields

    async def _join_sources_to_object_with_checksums(
        self, request: Request, call: CopyCall, sources: Sequence[_Source], fields: Mapping[str, Any]
    ) -> tuple[StoredObject, dict[str, str]]:
        """Store the content of the sources, one after the other, as the destination of a call."""
        expected = {name: value for name, value in request.query_params.items() if name in PRECONDITIONS}
        self.uploads.raise_unless_disk_has_free_bytes(sum(stored.size for stored, _ in sources))
        upload = self.uploads.create(call.destination_bucket, call.destination_name, expected, fields)
        try:
            await upload.append_stream(_iterate_content(request, sources))
            return await self.uploads.complete_and_get_object_with_checksums(upload, {})
        finally:
            self.uploads.discard(upload)


def parse_copy_call_or_none(encoded_path: str) -> CopyCall | None:
    """Return the call that a path with encoded names means; None if it is none of these methods."""
    match = _CALL.fullmatch(encoded_path)
    if match is None:
        return None
    bucket, name, compose, copy, copy_bucket, copy_name, move, move_name = match.groups()
    method = compose or copy or move
    destination = {"compose": (bucket, name), "moveTo": (bucket, move_name)}.get(method, (copy_bucket, copy_name))
    return CopyCall(unquote(bucket), unquote(name), method, *map(unquote, destination))


def _raise_unless_source_matches_query(query: Mapping[str, str], stored: StoredObject) -> None:
    raise_unless_generation_matches(query.get("sourceGeneration"), stored)
    raise_unless_preconditions_hold(query, stored, prefix="ifSource")


async def _iterate_content(request: Request, sources: Sequence[_Source]) -> AsyncIterator[bytes]:
    """Yield the content that the sources had when they were opened. Raises ApiError and ClientDisconnect."""
    for stored, file in sources:
        position = 0
        while file is not None and position < stored.size:
            size = min(_BATCH_BYTES, stored.size - position)
            part = await to_thread.run_sync(os.pread, file.fileno(), size, position)
            if not part:
                message = f"{stored.bucket}/{stored.name} became shorter while it was copied; try again."
                raise ApiError("FAILED_PRECONDITION", message, http=409)
            yield part
            position += len(part)
            await raise_if_disconnected(request)
