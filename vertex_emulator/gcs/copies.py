"""Cloud Storage's methods that make an object of others: copy, rewrite, compose and move."""

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

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs import messages, metadata
from vertex_emulator.gcs.objects import (
    PRECONDITIONS,
    SOURCE_PRECONDITIONS,
    ObjectStore,
    StoredObject,
    check_preconditions,
)
from vertex_emulator.gcs.uploads import Uploads
from vertex_emulator.http.permissions import need
from vertex_emulator.http.requests import read_json

MAX_COMPONENTS = 32  # Cloud Storage, "Composite objects"
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
class Call:
    """A call of copyTo, rewriteTo, moveTo or compose: of an object, with a destination (for `compose`, the object)."""

    bucket: str
    name: str
    method: str
    destination_bucket: str
    destination_name: str

    @classmethod
    def parse(cls, encoded_path: str) -> "Call | None":
        """Return the call that a path with encoded names means; None if it is none of these methods."""
        match = _CALL.fullmatch(encoded_path)
        if match is None:
            return None
        bucket, name, compose, copy, copy_bucket, copy_name, move, move_name = match.groups()
        method = compose or copy or move
        destination = {"compose": (bucket, name), "moveTo": (bucket, move_name)}.get(method, (copy_bucket, copy_name))
        return cls(unquote(bucket), unquote(name), method, *map(unquote, destination))


@dataclass(frozen=True)
class CopyRoutes:
    """The methods, all sent by POST. Content is copied, as an upload: files that are links share changes."""

    objects: ObjectStore
    uploads: Uploads

    async def call(self, request: Request) -> Response:
        """Answer any of the methods."""
        call = Call.parse(messages.encoded_path(request))
        if call is None:
            return messages.refuse(request)
        query = messages.checked_query(request, _PARAMETERS[call.method])
        body = await read_json(request)
        destination = call.destination_bucket, call.destination_name
        if call.method == "moveTo":
            for verb in ("get", "delete"):
                need(request, f"storage.objects.{verb}", f"gs://{call.bucket}/{call.name}")
            messages.need_to_store(request, self.objects, *destination)
            check_source = partial(_check_source, query)
            move = partial(self.objects.move, call.bucket, call.name, call.destination_name, query, check_source)
            return JSONResponse(messages.object_json(request, await to_thread.run_sync(move)))
        with contextlib.ExitStack() as files:
            open_sources = self._open_components if call.method == "compose" else self._open_source
            sources, fields = await to_thread.run_sync(open_sources, request, call, body, query, files)
            messages.need_to_store(request, self.objects, *destination)
            stored, checksums = await self._join(request, call, sources, fields)
        resource = messages.object_json(request, stored, checksums)
        if call.method != "rewriteTo":
            return JSONResponse(resource)
        size = str(stored.size)
        reply = {"kind": "storage#rewriteResponse", "totalBytesRewritten": size, "objectSize": size, "done": True}
        return JSONResponse({**reply, "resource": resource})

    def _open_source(
        self,
        request: Request,
        call: Call,
        body: Mapping[str, Any],
        query: Mapping[str, str],
        files: contextlib.ExitStack,
    ) -> tuple[list[_Source], Mapping[str, Any]]:
        """Return the source of a copy, open, and the copy's metadata: the source's unless the body has some."""
        fields = metadata.parse(body)
        source = self._open(request, call.bucket, call.name, files)
        _check_source(query, source[0])
        return [source], fields or source[0].fields_of_copy

    def _open_components(
        self,
        request: Request,
        call: Call,
        body: Mapping[str, Any],
        _query: Mapping[str, str],
        files: contextlib.ExitStack,
    ) -> tuple[list[_Source], Mapping[str, Any]]:
        """Return the sources of a composed object, open, and its metadata."""
        components, fields = parse_composition(body)
        sources = []
        for component in components:
            sources.append(self._open(request, call.bucket, component.name, files))
            sources[-1][0].require_generation(component.generation)
            check_preconditions(component.preconditions, sources[-1][0])
        return sources, fields

    def _open(self, request: Request, bucket: str, name: str, files: contextlib.ExitStack) -> _Source:
        need(request, "storage.objects.get", f"gs://{bucket}/{name}")
        stored, file = self.objects.open(bucket, name)
        files.enter_context(file or contextlib.nullcontext())
        return stored, file

    async def _join(
        self, request: Request, call: Call, sources: Sequence[_Source], fields: Mapping[str, Any]
    ) -> tuple[StoredObject, dict[str, str]]:
        """Store the content of the sources, one after the other, as the destination; return it with its checksums."""
        expected = {name: value for name, value in request.query_params.items() if name in PRECONDITIONS}
        self.uploads.require_space(sum(stored.size for stored, _ in sources))
        upload = self.uploads.create(call.destination_bucket, call.destination_name, expected, fields)
        try:
            await upload.append_stream(_content(request, sources))
            return await self.uploads.complete(upload)
        finally:
            self.uploads.discard(upload)


def _check_source(query: Mapping[str, str], stored: StoredObject) -> None:
    stored.require_generation(query.get("sourceGeneration"))
    check_preconditions(query, stored, prefix="ifSource")


async def _content(request: Request, sources: Sequence[_Source]) -> AsyncIterator[bytes]:
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
            await messages.check_connection(request)


@dataclass(frozen=True)
class Component:
    """A source: an object in the same bucket, with the generation and the preconditions that it must have."""

    name: str
    generation: str | None
    preconditions: Mapping[str, str]


def parse_composition(body: Mapping[str, Any]) -> tuple[list[Component], Mapping[str, Any]]:
    """Return the sources of a ComposeRequest (Cloud Storage, Objects: compose) in order, and the object's metadata.

    Raises ApiError that names the field.
    """
    for name, value in body.items():
        if value and name not in ("kind", "sourceObjects", "destination"):
            raise _field_error(name, "is not supported")
    sources, destination = body.get("sourceObjects"), body.get("destination") or {}
    if not isinstance(sources, list) or not 1 <= len(sources) <= MAX_COMPONENTS:
        raise _field_error("sourceObjects", f"must be a list of 1 to {MAX_COMPONENTS} objects")
    if not isinstance(destination, Mapping):
        raise _field_error("destination", "must be an object")
    components = [_parse_component(source, f"sourceObjects[{index}]") for index, source in enumerate(sources)]
    return components, metadata.parse(destination)


def _parse_component(source: Any, path: str) -> Component:
    if not isinstance(source, Mapping) or not isinstance(source.get("name"), str) or not source["name"]:
        raise _field_error(path, "must be an object with the name of one")
    conditions = source.get("objectPreconditions") or {}
    if not isinstance(conditions, Mapping) or conditions.keys() - {"ifGenerationMatch"}:
        raise _field_error(f"{path}.objectPreconditions", "must be an object with ifGenerationMatch")
    generation = source.get("generation")
    preconditions = {name: str(value) for name, value in conditions.items() if value is not None}
    return Component(source["name"], None if generation is None else str(generation), preconditions)


def _field_error(field: str, text: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"{field}: {text}.", [(field, text)])
