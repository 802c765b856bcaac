"""Cloud Logging's `entries:write` for jobs: what a job writes becomes lines of its own log.

Source: Cloud Logging's reference, "Method: entries.write" and "LogEntry".
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse

from vertex_emulator.database import Database
from vertex_emulator.database.records import SEVERITIES, Job
from vertex_emulator.errors import ApiError
from vertex_emulator.http.requests import read_json

MAX_JOB_BYTES = 100 << 20
"""Of all that a job writes; as `serve --log-limit-mb` has it for what its containers print."""
_MAX_JOBS = 10_000
_ROW_BYTES = 100
"""That an entry takes beside its text, so that those without any have an end too."""


@dataclass
class EntryWriter:
    """Writes entries; each job may write so many bytes."""

    database: Database
    _written: dict[str, int] = field(default_factory=dict)

    async def answer(self, request: Request, job: Job) -> JSONResponse:
        """Store the entries of a request in the log of `job`. Raises ApiError."""
        found = list(_entries(await read_json(request)))
        size = self._written.get(job.id, 0) + sum(len(text.encode()) + _ROW_BYTES for _, text in found)
        if size > MAX_JOB_BYTES:
            raise ApiError(
                "RESOURCE_EXHAUSTED", f"The job has written {MAX_JOB_BYTES >> 20} MiB of log entries already."
            )
        await to_thread.run_sync(self._store, job, found)
        if len(self._written) >= _MAX_JOBS:
            self._written.clear()
        self._written[job.id] = size
        return JSONResponse({})

    def _store(self, job: Job, entries: list[tuple[str, str]]) -> None:
        with self.database.write() as transaction:
            for severity, text in entries:
                transaction.jobs.log(job.id, text, severity)


def _entries(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield severity and text of each entry. Raises ApiError."""
    given = body.get("entries")
    if not isinstance(given, list) or not all(isinstance(entry, Mapping) for entry in given):
        raise ApiError("INVALID_ARGUMENT", "entries must be a list of LogEntry objects.")
    for entry in given:
        payload = next((entry[key] for key in ("textPayload", "jsonPayload", "protoPayload") if key in entry), None)
        if payload is None:
            raise ApiError("INVALID_ARGUMENT", "A log entry must have textPayload, jsonPayload or protoPayload.")
        severity = str(entry.get("severity", "DEFAULT"))
        if isinstance(payload, Mapping) and set(payload) == {"message"}:
            payload = payload["message"]
        text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
        yield severity if severity in SEVERITIES else "DEFAULT", text
