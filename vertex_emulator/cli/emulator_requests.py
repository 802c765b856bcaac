"""Requests of the command line to a running emulator."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from vertex_emulator.data_folder import Endpoint
from vertex_emulator.errors import EmulatorError, EmulatorNotRunning


def send_request(
    endpoint: Endpoint,
    path: str,
    body: Mapping[str, Any] | None = None,
    method: str | None = None,
    timeout_seconds: float = 60,
) -> Any:
    """Return the JSON reply to a GET, or to a POST if there is a `body`.

    Raises EmulatorError with the emulator's message, and EmulatorNotRunning.
    """
    headers = {"Content-Type": "application/json"}
    if token := endpoint.read_token():
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(endpoint.url + path, data, headers, method=method)
    # No proxy: the emulator is on this machine, whatever http_proxy says.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout_seconds) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        answer = json.load(error)
        if "error" in answer:
            raise EmulatorError(answer["error"]["message"]) from error
        return answer
    except (OSError, http.client.HTTPException) as error:
        raise EmulatorNotRunning(f"the emulator at {endpoint.url} does not answer: {error}") from error
