"""The Pulumi engine that this provider process works for."""

import socket
import sys

from components.errors import SubmitFailed


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
    except OSError:
        return False
    return True


def ensure_alive(doing: str) -> None:
    """Raises SubmitFailed when the engine is gone, so that nothing is started that no state will record."""
    if not is_alive():
        raise SubmitFailed(f"{doing}: stopped, because `pulumi` was killed; the next `pulumi up` goes on from here")
