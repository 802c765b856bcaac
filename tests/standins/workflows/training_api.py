"""The requests of a workflow to Vertex AI, sent to the emulator; answers and errors are maps as in Workflows."""

import json
from collections.abc import Mapping
from typing import Any

import requests

from tests.standins.workflows.expressions import WorkflowError
from tests.vertex_emulator.fakes import Emulator
from tests.vertex_emulator.jobs import LOCATION
from tests.vertex_emulator.running import RunningEmulator
from vertex_api.names import KINDS
from vertex_emulator.api.lists import MASKED, ListRequest
from vertex_emulator.errors import ApiError
from vertex_emulator.http.requests import read_query
from vertex_emulator.times import parse_time


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
            reply = self._emulator.http.request(method, address, params=query, json=body)
        except requests.ConnectionError as error:
            raise WorkflowError({"message": str(error), "tags": ["ConnectionError"]}) from error
        if reply.status_code >= 400:
            raise http_error(reply.status_code, reply.json())
        return reply.json()


class MemoryApi:
    """The same of an emulator in memory: its own methods on jobs, without HTTP.

    A job is listed `lag` seconds after it was created.
    """

    def __init__(self, emulator: Emulator, region: str) -> None:
        self._emulator, self._prefix = emulator, f"https://{region}-aiplatform.googleapis.com/v1/projects/"
        self.lag = 0.0

    def __call__(self, method: str, url: str, query: Mapping[str, Any], body: Any) -> Any:
        assert url.startswith(self._prefix), url
        collection, _, job_id = url.partition("/locations/")[2].partition("/")[2].partition("/")
        kind, jobs = KINDS[collection], self._emulator.jobs
        try:
            if method == "POST":
                answer = jobs.create(kind, LOCATION, body)
            elif job_id:
                answer = jobs.get(kind, LOCATION, job_id)
            else:
                answer = self._list(collection, query)
        except ApiError as error:
            raise http_error(error.http, error.to_json()) from error
        return json.loads(json.dumps(answer))

    def _list(self, collection: str, query: Mapping[str, Any]) -> Any:
        texts = {key: str(value) for key, value in query.items() if key != "pageSize"}
        listed = ListRequest.parse(read_query(texts, MASKED))
        found = self._emulator.jobs.list(KINDS[collection], LOCATION, listed).get(collection, [])
        before = self._emulator.machine.clock() - self.lag
        shown = [job for job in found if (parse_time(job["createTime"]) or 0) <= before * 10**9]
        return {collection: shown[: query["pageSize"]]} if shown else {}
