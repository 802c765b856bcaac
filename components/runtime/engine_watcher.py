"""Liveness of the Pulumi engine that this provider process works for, and a watcher that ends the process after it."""

import os
import socket
import sys
import threading
import time

from ..errors import SubmitFailed

_POLL_SECONDS = 1.0
_watching = threading.Lock()


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


def raise_unless_engine_is_alive(error_prefix: str) -> None:
    """Raise SubmitFailed if the engine is gone, so that nothing is started that no state will record."""
    if not is_engine_alive():
        raise SubmitFailed(
            f"{error_prefix}: stopped, because `pulumi` was killed; the next `pulumi up` goes on from here"
        )


def start_engine_watcher() -> None:
    """Watch the engine, and end this process soon after it: Pulumi does not, and no state would record the rest."""
    if _watching.acquire(blocking=False):
        threading.Thread(target=_exit_when_engine_ends, daemon=True).start()


def _exit_when_engine_ends() -> None:
    while is_engine_alive():
        time.sleep(_POLL_SECONDS)
    os._exit(1)
