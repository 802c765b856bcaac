"""The requests of a workflow to Vertex AI, sent to the emulator; answers and errors are maps as in Workflows."""

from collections.abc import Mapping
from typing import Any

import requests

from tests.standins.workflows.expressions import WorkflowError
from tests.vertex_emulator.running import RunningEmulator


def http_error(code: int, body: Any) -> WorkflowError:
    """What Workflows raises for an answer of 400 or more (Google's page "Workflow errors")."""
    message = f"HTTP server responded with error code {code}"
    return WorkflowError({"message": message, "code": code, "body": body, "headers": {}, "tags": ["HttpError"]})


class TrainingApi:
    """Sends what is for `https://REGION-aiplatform.googleapis.com` to an emulator; `posted` are the bodies of jobs."""

    def __init__(self, emulator: RunningEmulator, region: str) -> None:
        self._emulator, self._prefix = emulator, f"https://{region}-aiplatform.googleapis.com/"
        self.posted: list[Any] = []

    def __call__(self, method: str, url: str, query: Mapping[str, Any], body: Any) -> Any:
        assert url.startswith(self._prefix), url
        if method == "POST":
            self.posted.append(body)
        address = f"{self._emulator.url}/{url.removeprefix(self._prefix)}"
        try:
            reply = self._emulator.http.request(method, address, params=query, json=body, timeout=30)
        except requests.ConnectionError as error:
            raise WorkflowError({"message": str(error), "tags": ["ConnectionError"]}) from error
        if reply.status_code >= 400:
            raise http_error(reply.status_code, reply.json())
        return reply.json()
