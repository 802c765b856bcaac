"""The process that translates gRPC: each call becomes the request of the REST API that its method stands for.

Requests and paths of Vertex AI are those of Google's own client (its REST transport, by which any method is known that
it has); of Secret Manager, Cloud Logging and Resource Manager, those of the three methods that the emulator has.

    python -m vertex_emulator.rpc.server URL

It reads a secret from its standard input, prints two ports, of the emulator's own user and of all others, and ends
when the input does. A call that sends no message takes no thread.
"""

import asyncio
import contextlib
import importlib
import inspect
import os
import re
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.machinery import PathFinder
from typing import Any

import grpc
import requests
from google.api_core import path_template, rest_helpers
from google.longrunning import operations_pb2
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from vertex_emulator.rpc import messages
from vertex_emulator.rpc.messages import Binding, Call, serialized
from vertex_emulator.rpc.relay import HEADER

_THREADS = 16
_STREAMS = 8
"""Calls at once on a connection of somebody else than the emulator's own user."""
_SECONDS = 600.0
_VERTEX = re.compile(r"/google\.cloud\.aiplatform\.(v1|v1beta1)\.([A-Za-z]+)/([A-Za-z]+)")
_PACKAGE = re.compile(r"google\.cloud\.aiplatform_v1(beta1)?(\.types|\.services(\.\w+(\.transports)?)?)?")
_OPERATION = "/google.longrunning.Operations/"
_PASSED = ("authorization", "x-goog-api-key", "x-goog-user-project")
"""The metadata that a request of REST has, too."""
_INTERNAL = grpc.StatusCode.INTERNAL


def binding(method: str) -> Binding | None:
    """Return what makes a call of the bytes of a request; None for a method that the emulator does not have."""
    found = _VERTEX.fullmatch(method)
    if found is not None:
        return _vertex(*found.groups())
    if method.startswith(_OPERATION):
        return _operations().get(method.removeprefix(_OPERATION))
    return messages.bindings().get(method)


class _Bare:
    """A finder of the packages of Google's client as folders: their `__init__` import all services and messages.

    One service takes 0.5 s and 70 MB so, and all take 1.6 s and 130 MB; many a client waits for 5 s.
    """

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> Any:
        spec = PathFinder.find_spec(name, path) if _PACKAGE.fullmatch(name) else None
        if spec is not None:
            spec.loader = None
        return spec


@cache
def _vertex(version: str, service: str, method: str) -> Binding | None:
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", service).lower()
    package = f"google.cloud.aiplatform_{version}.services.{snake}.transports"
    try:
        module = importlib.import_module(f"{package}.rest")
        stub = getattr(getattr(module, f"{service}RestTransport"), f"_{method}")
        base = getattr(getattr(module, f"_Base{service}RestTransport"), f"_Base{method}")
    except (ImportError, AttributeError):
        return None
    signature = inspect.signature(stub.__call__)
    request_type, answer_type = signature.parameters["request"].annotation, signature.return_annotation
    answer_type = None if answer_type is inspect.Signature.empty else answer_type

    pb_type = request_type.pb() if hasattr(request_type, "pb") else request_type

    def bind(data: bytes) -> Call:
        found = path_template.transcode(base._get_http_options(), message=pb_type.FromString(data))
        query = rest_helpers.flatten_query_params(json_format.MessageToDict(found["query_params"]), strict=True)
        body = json_format.MessageToJson(found["body"]) if "body" in found else None
        return Call(found["method"].upper(), found["uri"], query, body, partial(serialized, answer_type))

    return bind


@cache
def _operations() -> Mapping[str, Binding]:
    def one(kind: Any, verb: str, suffix: str, answer: Any) -> Binding:
        def bind(data: bytes) -> Call:
            return Call(verb, f"/v1/{kind.FromString(data).name}{suffix}", [], None, partial(serialized, answer))

        return bind

    pb = operations_pb2
    return {
        "GetOperation": one(pb.GetOperationRequest, "GET", "", pb.Operation),
        "WaitOperation": one(pb.WaitOperationRequest, "POST", ":wait", pb.Operation),
        "CancelOperation": one(pb.CancelOperationRequest, "POST", ":cancel", None),
        "DeleteOperation": one(pb.DeleteOperationRequest, "DELETE", "", None),
        "ListOperations": one(pb.ListOperationsRequest, "GET", "/operations", pb.ListOperationsResponse),
    }


@dataclass(frozen=True)
class _Refusal(Exception):
    """How a call ends that is not answered."""

    code: grpc.StatusCode
    message: str
    status: status_pb2.Status | None = None


@dataclass
class Translation(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers all calls by requests to the emulator at `url`, with the secret that it knows, in threads of its own."""

    url: str
    secret: str
    _local: threading.local = field(default_factory=threading.local)
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_THREADS))

    def service(self, details: Any) -> Any:
        """Return the handler of a call."""
        return grpc.unary_unary_rpc_method_handler(partial(self._answer, details.method))

    async def _answer(self, method: str, data: bytes, context: Any) -> bytes:
        given = {name: value for name, value in context.invocation_metadata() if name in _PASSED}
        headers = {**given, HEADER: f"{self.secret}:{context.peer()}"}
        limit = min(context.time_remaining() or _SECONDS, _SECONDS)
        left = threading.Event()
        context.add_done_callback(lambda _: left.set())
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, self._translated, method, data, headers, limit, left)
        except _Refusal as refusal:
            if refusal.status is not None:
                context.set_trailing_metadata((("grpc-status-details-bin", refusal.status.SerializeToString()),))
            await context.abort(refusal.code, refusal.message)
            raise

    def _translated(
        self, method: str, data: bytes, headers: dict[str, str], limit: float, left: threading.Event
    ) -> bytes:
        """Return the answer of the emulator to a call. Raises _Refusal."""
        bind = binding(method)
        if bind is None:
            service = method.strip("/").partition("/")[0]
            message = f"{service} is not emulated: {method} (`vertex-training docs google`)."
            raise _Refusal(grpc.StatusCode.UNIMPLEMENTED, message)
        try:
            call = bind(data)
        except (ValueError, DecodeError, json_format.Error) as error:  # no path of the API, no message, or a NaN in it
            raise _Refusal(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from error
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        body = call.body.encode() if call.body is not None else None
        if left.is_set():
            return b""  # the caller has left, and another may have the relay's port by now
        try:
            reply = self._session().request(
                call.verb, f"{self.url}{call.path}", params=call.query, data=body, headers=headers, timeout=limit
            )
        except requests.RequestException as error:
            message = f"the emulator does not answer: {type(error).__name__}"
            raise _Refusal(grpc.StatusCode.UNAVAILABLE, message) from error
        if not reply.ok:
            raise _refusal(reply)
        return call.answer(reply.text)

    def _session(self) -> requests.Session:
        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
            self._local.session.trust_env = False
        session: requests.Session = self._local.session
        return session


def _refusal(reply: requests.Response) -> _Refusal:
    """Return the end of a call by the google.rpc.Status of an answer, its details included."""
    try:
        error = reply.json()["error"]
        code = grpc.StatusCode[error["status"]]
    except (ValueError, KeyError, TypeError):
        return _Refusal(_INTERNAL, f"the emulator answers HTTP {reply.status_code}")
    status = status_pb2.Status(code=code.value[0], message=error["message"])
    assert error_details_pb2.DESCRIPTOR  # the types of its details are known
    for detail in error.get("details", []):
        try:
            json_format.ParseDict(detail, status.details.add(), ignore_unknown_fields=True)
        except json_format.ParseError:
            status.details.pop()
    return _Refusal(code, error["message"], status)


async def serve(url: str, secret: str) -> None:
    """Serve until the input ends."""
    limits = [("grpc.max_receive_message_length", 4 << 20), ("grpc.so_reuseport", 0)]
    servers = [grpc.aio.server(options=[*limits, *more]) for more in ((), (("grpc.max_concurrent_streams", _STREAMS),))]
    ports = []
    for server in servers:
        server.add_generic_rpc_handlers((Translation(url, secret),))
        ports.append(server.add_insecure_port("127.0.0.1:0"))
        await server.start()
    with contextlib.suppress(BrokenPipeError):  # the emulator has ended meanwhile, and so has the input
        os.write(1, f"{ports[0]} {ports[1]}\n".encode())
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for server in servers:
        await server.stop(None)


if __name__ == "__main__":
    sys.meta_path.insert(0, _Bare())
    asyncio.run(serve(sys.argv[1], sys.stdin.readline().strip()))
