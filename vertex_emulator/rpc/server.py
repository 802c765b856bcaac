"""The process that translates gRPC: each call becomes the request of the REST API that its method stands for.

Requests and paths of Vertex AI are those of Google's own client (its REST transport, by which any method is known that
it has); of Secret Manager and Cloud Logging, those of the two methods that the emulator has.

    python -m vertex_emulator.rpc.server URL

It reads a secret from its standard input, prints its port, and ends when the input does.
"""

import importlib
import inspect
import re
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
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

_THREADS, _CALLS = 16, 256
_SECONDS = 600.0
_VERTEX = re.compile(r"/google\.cloud\.aiplatform\.(v1|v1beta1)\.([A-Za-z]+)/([A-Za-z]+)")
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


@dataclass
class Translation(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers all calls by requests to the emulator at `url`, with the secret that it knows."""

    url: str
    secret: str
    _local: threading.local = field(default_factory=threading.local)

    def service(self, details: Any) -> Any:
        """Return the handler of a call."""
        return grpc.unary_unary_rpc_method_handler(partial(self._answer, details.method))

    def _answer(self, method: str, data: bytes, context: Any) -> bytes:
        bind = binding(method)
        if bind is None:
            service = method.strip("/").partition("/")[0]
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{service} is not emulated: {method} (docs/google.md).")
            raise AssertionError("an aborted call raises")
        try:
            call = bind(data)
        except (ValueError, DecodeError) as error:  # no path of the API, or no message
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise
        given = {name: value for name, value in context.invocation_metadata() if name in _PASSED}
        headers = {**given, HEADER: f"{self.secret}:{context.peer()}"}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        body = call.body.encode() if call.body is not None else None
        if not context.is_active():
            return b""  # the caller has left, and another may have the relay's port by now
        limit = min(context.time_remaining() or _SECONDS, _SECONDS)
        try:
            reply = self._session().request(
                call.verb, f"{self.url}{call.path}", params=call.query, data=body, headers=headers, timeout=limit
            )
        except requests.RequestException as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, f"the emulator does not answer: {type(error).__name__}")
            raise
        if not reply.ok:
            _abort(context, reply)
        return call.answer(reply.text)

    def _session(self) -> requests.Session:
        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
            self._local.session.trust_env = False
        session: requests.Session = self._local.session
        return session


def _abort(context: Any, reply: requests.Response) -> None:
    """End a call with the google.rpc.Status of an answer, its details included."""
    try:
        error = reply.json()["error"]
        code = grpc.StatusCode[error["status"]]
    except (ValueError, KeyError, TypeError):
        context.abort(_INTERNAL, f"the emulator answers HTTP {reply.status_code}")
        return
    status = status_pb2.Status(code=code.value[0], message=error["message"])
    assert error_details_pb2.DESCRIPTOR  # the types of its details are known
    for detail in error.get("details", []):
        try:
            json_format.ParseDict(detail, status.details.add(), ignore_unknown_fields=True)
        except json_format.ParseError:
            status.details.pop()
    context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString())])
    context.abort(code, error["message"])


def main() -> None:
    """Serve until the input ends."""
    secret = sys.stdin.readline().strip()
    limits = [("grpc.max_receive_message_length", 4 << 20), ("grpc.so_reuseport", 0)]
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=limits, maximum_concurrent_rpcs=_CALLS)
    server.add_generic_rpc_handlers((Translation(sys.argv[1], secret),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    main()
