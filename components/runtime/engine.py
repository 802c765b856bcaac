"""The Pulumi engine that this provider process works for."""

import os
import socket
import sys
import threading
import time

from pulumi import dynamic

from ..errors import SubmitFailed

_LOOK_SECONDS = 1.0
_following = threading.Lock()


class Provider(dynamic.ResourceProvider):
    """What all providers here share. They hold nothing, so what Pulumi keeps of them in its state is a constant."""

    serialize_as_secret_always = False

    def configure(self, _req: dynamic.ConfigureRequest) -> None:
        """Called once before anything else."""
        follow()


def is_alive() -> bool:
    """Whether the engine still listens. A provider process outlives an engine that was killed.

    The engine's address is the process's first argument (tested with Pulumi 3.259). Elsewhere, as in a test that calls
    a provider directly, there is no engine to ask after.
    """
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "").rpartition(":")
    if not port.isdigit():
        return True
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except ConnectionRefusedError:
        return False
    except OSError:  # slow to answer, on a machine that has much to do, is not gone
        return True
    return True


def ensure_alive(doing: str) -> None:
    """Raises SubmitFailed when the engine is gone, so that nothing is started that no state will record."""
    if not is_alive():
        raise SubmitFailed(f"{doing}: stopped, because `pulumi` was killed; the next `pulumi up` goes on from here")


def follow() -> None:
    """Ends this process soon after its engine has gone: Pulumi does not, and what it still did would be lost."""
    if _following.acquire(blocking=False):
        threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    while is_alive():
        time.sleep(_LOOK_SECONDS)
    os._exit(1)
