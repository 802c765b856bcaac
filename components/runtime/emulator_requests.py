"""Requests for resources that the emulator alone has, below `/vertex_emulator`, such as its schedules."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Literal

from ..errors import SubmitFailed
from . import emulator_process
from .emulator_discovery import DIRECT_OPENER, MAX_ANSWER_BYTES

_ANSWER_SECONDS = 60


def start_emulator_and_request_or_none(
    method: Literal["GET", "PUT", "DELETE"], path: str, body: Mapping[str, Any] | None, error_prefix: str
) -> dict[str, Any] | None:
    """Send a request and return the answer, `None` for status 404. Starts the emulator if it is not running.

    `path` stands below `/vertex_emulator/`. Raises SubmitFailed, as one line: `<error_prefix>: <what it answered>`.
    """
    endpoint = emulator_process.start_emulator_unless_running()
    headers = {"Content-Type": "application/json"}
    if endpoint.token:
        headers["Authorization"] = f"Bearer {endpoint.token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{endpoint.jobs}/vertex_emulator/{path}", data, headers, method=method)
    try:
        with DIRECT_OPENER.open(request, timeout=_ANSWER_SECONDS) as reply:
            answer: dict[str, Any] = json.loads(reply.read(MAX_ANSWER_BYTES) or b"{}")
            return answer
    except urllib.error.HTTPError as error:
        with error:
            text = error.read(MAX_ANSWER_BYTES).decode(errors="replace")
        if error.code == 404:
            return None
        raise SubmitFailed(f"{error_prefix}: {_get_error_message(text)}") from error
    except (OSError, ValueError) as error:
        raise SubmitFailed(f"{error_prefix}: the emulator does not answer ({error}); run this again") from error


def _get_error_message(answer_text: str) -> str:
    """Return the message of a google.rpc.Status, or the text itself."""
    try:
        return str(json.loads(answer_text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer_text.strip() or "it refuses without a reason"
