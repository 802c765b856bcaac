"""The messages of three methods of other services that jobs call: a secret's version, log entries, and a project.

Their libraries need not be installed here. Numbers are those of googleapis'
`google/cloud/secretmanager/v1/service.proto` and `resources.proto`, `google/logging/v2/logging.proto` and
`log_entry.proto`, `google/cloud/resourcemanager/v3/projects.proto`; fields that are not named are left out.
"""

import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from google.logging.type import log_severity_pb2
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, struct_pb2

_VERSION = re.compile(r'"type\.googleapis\.com/google\.cloud\.aiplatform\.(v1|v1beta1)\.')
_SECRET = "/google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion"
_WRITE = "/google.logging.v2.LoggingServiceV2/WriteLogEntries"
_PROJECT = "/google.cloud.resourcemanager.v3.Projects/GetProject"
_PACKAGE = "vertex_emulator.rpc"
_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Name": {"name": (1, "string")},
    "Payload": {"data": (1, "bytes"), "data_crc32c": (2, "int64")},
    "Version": {"name": (1, "string"), "payload": (2, "Payload")},
    "Entry": {
        "text_payload": (3, "string"),
        "json_payload": (6, ".google.protobuf.Struct"),
        "severity": (10, "enum .google.logging.type.LogSeverity"),
    },
    "Entries": {"entries": (4, "repeated Entry")},
    "Project": {"name": (1, "string"), "project_id": (3, "string"), "display_name": (5, "string")},
    "Nothing": {},
}
"""By message: the number and type of each field."""


@cache
def types() -> Mapping[str, Any]:
    """Return the classes of the messages by name."""
    kinds = descriptor_pb2.FieldDescriptorProto
    dependencies = [struct_pb2.DESCRIPTOR.name, log_severity_pb2.DESCRIPTOR.name]
    file = descriptor_pb2.FileDescriptorProto(
        name="vertex_emulator/rpc.proto", package=_PACKAGE, syntax="proto3", dependency=dependencies
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            *words, last = kind.split()
            one = message.field.add(name=field_name, number=number, label=kinds.LABEL_OPTIONAL)
            if "repeated" in words:
                one.label = kinds.LABEL_REPEATED
            if last.islower() and not last.startswith("."):
                one.type = kinds.Type.Value(f"TYPE_{last.upper()}")
            else:
                one.type = kinds.TYPE_ENUM if "enum" in words else kinds.TYPE_MESSAGE
                one.type_name = last if last.startswith(".") else f".{_PACKAGE}.{last}"
    pool = descriptor_pool.Default()
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    found = (pool.FindMessageTypeByName(f"{_PACKAGE}.{name}") for name in _MESSAGES)
    return {each.name: message_factory.GetMessageClass(each) for each in found}


@dataclass(frozen=True)
class Call:
    """A request of the REST API, and how its answer is written; the body is JSON."""

    verb: str
    path: str
    query: list[tuple[str, Any]]
    body: str | None
    answer: Callable[[str], bytes]


Binding = Callable[[bytes], Call]
"""Makes a call of the bytes of a request."""


def serialized(kind: Any, text: str) -> bytes:
    """Return an answer of the REST API as a message of a type of proto-plus or protobuf, or as an empty one."""
    if kind is None:
        return b""

    def parsed() -> bytes:
        message = kind.pb(kind()) if hasattr(kind, "pb") else kind()
        return bytes(json_format.Parse(text or "{}", message, ignore_unknown_fields=True).SerializeToString())

    try:
        return parsed()
    except json_format.ParseError:
        # An operation has messages in it that its method does not name.
        for version in set(_VERSION.findall(text)):
            _load_all(version)
        return parsed()


@cache
def _load_all(version: str) -> None:
    """Make all messages of a version of Vertex AI known."""
    types = importlib.import_module(f"google.cloud.aiplatform_{version}.types")
    for module in pkgutil.iter_modules(types.__path__, f"{types.__name__}."):
        importlib.import_module(module.name)


@cache
def bindings() -> Mapping[str, Binding]:
    """Return the bindings by method."""
    known = types()

    def access(data: bytes) -> Call:
        name = known["Name"].FromString(data).name
        return Call("GET", f"/v1/{name}:access", [], None, partial(serialized, known["Version"]))

    def write(data: bytes) -> Call:
        body = json_format.MessageToDict(known["Entries"].FromString(data))
        return Call("POST", "/v2/entries:write", [], json.dumps(body), partial(serialized, known["Nothing"]))

    def project(data: bytes) -> Call:
        return Call(
            "GET", f"/v3/{known['Name'].FromString(data).name}", [], None, partial(serialized, known["Project"])
        )

    return {_SECRET: access, _WRITE: write, _PROJECT: project}
