"""Ctrl-C: the engine asks its providers to cancel what they do, and Pulumi's own provider for Python does nothing then.

The provider process is in a process group of its own, so it gets no signal (tested with Pulumi 3.259).
"""

import sys
import threading
from typing import Any

_requested = threading.Event()


def listen_for_cancellation() -> None:
    """Take notice of the engine's request to cancel. Outside of a provider process there is none.

    The server holds the bound method, so its code is replaced. The request needs one of the four threads that serve all
    calls: it is noticed late while four calls are under way.
    """
    servicer: Any = getattr(sys.modules["__main__"], "DynamicResourceProviderServicer", None)
    if servicer is not None:
        servicer.cancellation_requested = _requested
        servicer.Cancel.__code__ = _set_cancellation_event.__code__


def wait_for_cancellation(timeout_seconds: float) -> bool:
    """Wait for that long, or until the engine asks to cancel; return whether it has."""
    return _requested.wait(timeout_seconds)


def _set_cancellation_event(self, request, context):  # type: ignore[no-untyped-def]  # noqa: ARG001
    # Runs with the globals of Pulumi's module.
    from google.protobuf import empty_pb2

    self.cancellation_requested.set()
    return empty_pb2.Empty()
