"""What the stack's last update has exported: a program reads it from the stack's own state, as another stack would."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import grpc
import pulumi
from google.protobuf import struct_pb2
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor

ANSWER_SECONDS = 30.0
_TOKEN = "pulumi:pulumi:readStackOutputs"
"""The call behind StackReference. That one is a resource, so that each preview would show it."""


def read_texts(output: str) -> Callable[[], Mapping[str, str]]:
    """Begin to read a stack output that is a map of texts, and return a function that waits for it.

    The engine answers from the state that it has: no resource and no other service is asked. The function returns an
    empty map if the stack has no such output; if the state cannot be read, it says so in a line.
    """
    monitor: Any = get_monitor()
    if not hasattr(getattr(monitor, "Invoke", None), "future"):
        return dict  # no program runs, or one on Pulumi's mocks, where there is no state

    def begin(stack: str) -> Any:
        arguments = struct_pb2.Struct()
        arguments.update({"name": stack})
        request = resource_pb2.ResourceInvokeRequest(tok=_TOKEN, args=arguments)
        return monitor.Invoke.future(request, timeout=ANSWER_SECONDS)

    first = begin(f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}")

    @cache
    def wait() -> Mapping[str, str]:
        try:
            return _texts(first.result(), output)
        except grpc.RpcError as error:
            reason = " ".join(str(error.details()).split())
        try:  # a backend without projects takes the stack's name alone
            return _texts(begin(pulumi.get_stack()).result(), output)
        except grpc.RpcError:
            pulumi.log.info(f"{output}: not known from the stack's state, so they begin anew: {reason}")
            return {}

    return wait


def _texts(response: Any, output: str) -> dict[str, str]:
    outputs = getattr(response, "return").fields["outputs"].struct_value.fields
    found = outputs[output].struct_value.fields if output in outputs else {}
    return {key: value.string_value for key, value in found.items()}
