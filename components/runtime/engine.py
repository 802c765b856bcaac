"""The Pulumi engine that this provider process works for."""

import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from pulumi import dynamic

from ..errors import SubmitFailed

_POLL_SECONDS = 1.0
_watching = threading.Lock()


class Provider(dynamic.ResourceProvider):
    """Base of all providers. They hold nothing, so that their pickled form in Pulumi's state is a constant."""

    serialize_as_secret_always = False
    input_names: ClassVar[Sequence[str]] = ()
    """Those properties that are inputs; all others are outputs."""

    def configure(self, _req: dynamic.ConfigureRequest) -> None:
        """Called once before anything else."""
        exit_with_engine()

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Do what `create` does with the new inputs. The resource keeps its id."""
        return dynamic.UpdateResult(self.create(news).outs)

    def build_read_result(self, id_: str, props: dict[str, Any], **outputs: Any) -> dynamic.ReadResult:
        """Return what `read` reports of a resource that exists: the inputs among `props`, and its outputs."""
        inputs = {name: props[name] for name in self.input_names if name in props}
        return dynamic.ReadResult(id_, {**inputs, **outputs}, inputs)


def is_engine_alive() -> bool:
    """Return whether the engine still listens. A provider process outlives an engine that was killed.

    The engine's address is the process's first argument (tested with Pulumi 3.259). Without one, as in a test that
    calls a provider directly, there is no engine that could be gone.
    """
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "").rpartition(":")
    if not port.isdigit():
        return True
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except ConnectionRefusedError:
        return False
    except OSError:  # slow to answer on a busy machine
        return True
    return True


def ensure_engine_alive(failed_action: str) -> None:
    """Raise SubmitFailed if the engine is gone, so that nothing is started that no state will record."""
    if not is_engine_alive():
        raise SubmitFailed(
            f"{failed_action}: stopped, because `pulumi` was killed; the next `pulumi up` goes on from here"
        )


def exit_with_engine() -> None:
    """Watch the engine, and end this process soon after it: Pulumi does not, and no state would record the rest."""
    if _watching.acquire(blocking=False):
        threading.Thread(target=_exit_when_engine_ends, daemon=True).start()


def _exit_when_engine_ends() -> None:
    while is_engine_alive():
        time.sleep(_POLL_SECONDS)
    os._exit(1)
