"""Errors of the Docker SDK in the emulator's words."""

import contextlib
from collections.abc import Iterator

from vertex_emulator.errors import ExecutorUnavailable


@contextlib.contextmanager
def translate_connection_errors() -> Iterator[None]:
    """Connection errors of the SDK as ExecutorUnavailable; errors that the daemon answers pass."""
    import requests
    import urllib3

    try:
        yield
    except (requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError, OSError) as error:
        if isinstance(error, requests.HTTPError):
            raise
        raise ExecutorUnavailable(f"Docker does not answer: {explain_error(error)}") from error


def explain_error(error: Exception) -> str:
    """What the daemon, or else the SDK, says went wrong."""
    return str(getattr(error, "explanation", None) or error).strip()
