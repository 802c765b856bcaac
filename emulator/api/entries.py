"""Cloud Logging's `entries:list`, for the logs of training jobs."""

from __future__ import annotations

import base64
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from emulator import logs
from emulator.api import filters
from emulator.containers.executor import Executor, LogLine
from emulator.data import DataFolder
from emulator.errors import ApiError, ExecutorUnavailable
from emulator.records import Job, Replica
from emulator.store import Store
from emulator.times import format_time, parse_time

MAX_PAGE = 1000
_JOB_ID = "resource.labels.job_id"
_SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
_FIELDS = frozenset(
    {
        "resource.type",
        "logName",
        "log_name",
        "timestamp",
        "severity",
        "insertId",
        "insert_id",
        "textPayload",
        "text_payload",
    }
)
_MAP_FIELDS = ("resource.labels.", "labels.")

Entry = dict[str, Any]


@dataclass(frozen=True)
class Entries:
    """Log entries of jobs: service lines from the store, containers' lines from Docker or the saved logs."""

    store: Store
    executor: Executor
    data: DataFolder

    def page(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A page of entries in the order of `orderBy`. Raises ApiError."""
        text = str(body.get("filter", ""))
        condition = _condition(text)
        order = str(body.get("orderBy") or "timestamp asc")
        if order not in ("timestamp asc", "timestamp desc", "timestamp"):
            raise ApiError("INVALID_ARGUMENT", f'orderBy is "{order}"; known: "timestamp asc", "timestamp desc"')
        size = body.get("pageSize") or 50
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ApiError("INVALID_ARGUMENT", f"pageSize is {size!r}; it must be a positive number")
        job_id = filters.required(condition, _JOB_ID)
        if job_id is None:
            raise ApiError("INVALID_ARGUMENT", f'the filter must name a job: {_JOB_ID}="ID" (the emulator needs that)')
        skip = _skip(body.get("pageToken"), text, order)
        found = self._found(job_id, condition)
        if order == "timestamp desc":
            found = iter(list(found)[::-1])
        page = list(islice(found, skip, skip + min(size, MAX_PAGE)))
        reply: dict[str, Any] = {"entries": page} if page else {}
        if next(found, None) is not None:
            reply["nextPageToken"] = _token(skip + len(page), text, order)
        return reply

    def last(self, job_id: str, count: int) -> list[Entry]:
        """The last entries of a job, oldest first."""
        return list(self._found(job_id, None))[-count:] if count else []

    def _found(self, job_id: str, condition: filters.Filter | None) -> Iterator[Entry]:
        with self.store.reading() as look:
            job = look.job(job_id)
            if job is None or job.study is not None:
                return
            jobs = [job, *look.trial_jobs(job_id).values()]
        since = _since(condition)
        sources: list[Iterable[tuple[int, Entry]]] = [self._service_lines(each) for each in jobs]
        for each in jobs:
            sources += [self._replica_lines(each, replica, since) for replica in each.attempts]
        for _, entry in heapq.merge(*sources, key=lambda found: found[0]):
            if filters.matches(condition, partial(_field, entry)):
                yield entry

    def _service_lines(self, job: Job) -> list[tuple[int, Entry]]:
        with self.store.reading() as look:
            lines = look.service_lines(job.id)
        return [
            (line.at, _entry(job, "service", line.at, f"s{line.sequence:010d}", line.severity, line.text))
            for line in lines
        ]

    def _replica_lines(self, job: Job, replica: Replica, since: int) -> Iterator[tuple[int, Entry]]:
        previous, same = 0, 0
        for line in self._lines(job, replica, since):
            # Docker's times tell lines apart; where two are equal, their order does.
            previous, same = line.at, same + 1 if line.at == previous else 0
            insert_id = f"{line.at}-{replica.task}-{line.stream}{same:04d}"
            severity = "ERROR" if line.stream == "e" else "INFO"
            yield line.at, _entry(job, replica.task, line.at, insert_id, severity, line.text)

    def _lines(self, job: Job, replica: Replica, since: int) -> Iterator[LogLine]:
        lines = logs.saved(self.data.logs, job.id, replica, since)
        if lines is None:
            try:
                yield from self.executor.log(job.id, replica, since)
            except ExecutorUnavailable:
                return
        else:
            yield from lines


def _entry(job: Job, task: str, at: int, insert_id: str, severity: str, text: str) -> Entry:
    """An entry as Vertex writes it: a line that is a JSON object becomes jsonPayload, its `severity` is lifted."""
    _, job_id = job.shown_as
    labels = {"ml.googleapis.com/job_id/log_area": "root"}
    if job.trial is not None:
        labels["ml.googleapis.com/trial_id"] = str(job.trial)
        labels["ml.googleapis.com/trial_type"] = "HYPERPARAMETER_TUNING"
    entry: Entry = {
        "insertId": insert_id,
        "logName": f"projects/{job.location.project}/logs/{'ml.googleapis.com%2F' if task == 'service' else ''}{task}",
        "resource": {
            "type": "ml_job",
            "labels": {"job_id": job_id, "task_name": task, "project_id": job.location.project},
        },
        "timestamp": _nanosecond_time(at),
        "severity": severity,
        "labels": labels,
    }
    payload = _json_object(text)
    if payload is None:
        entry["textPayload"] = text
    else:
        if payload.get("severity") in _SEVERITIES:
            entry["severity"] = payload.pop("severity")
        entry["jsonPayload"] = payload
    return entry


def _nanosecond_time(at: int) -> str:
    return f"{format_time(at)[:19]}.{at % 10**9:09d}Z"


def _json_object(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        payload = json.loads(text)
    except ValueError:
        return None
    return payload if isinstance(payload, dict) else None


def _condition(text: str) -> filters.Filter | None:
    try:
        condition = filters.parse(text)
    except filters.FilterError as error:
        raise ApiError("INVALID_ARGUMENT", f"Unparseable filter: {error}") from error
    for comparison in filters.comparisons(condition):
        if comparison.field not in _FIELDS and not comparison.field.startswith(_MAP_FIELDS):
            raise ApiError("INVALID_ARGUMENT", f"Field not found: '{comparison.field}'.")
        if comparison.field == "severity" and comparison.value not in _SEVERITIES:
            raise ApiError("INVALID_ARGUMENT", f"'{comparison.value}' is no severity; known: {', '.join(_SEVERITIES)}")
    return _ranked(condition)


def _ranked(node: filters.Filter | None) -> filters.Filter | None:
    """The filter with severities as ranks, which compare in their order."""
    match node:
        case filters.Comparison("severity", operator, value):
            return filters.Comparison("severity", operator, str(_SEVERITIES.index(value)))
        case filters.Not(term):
            return filters.Not(_ranked(term) or term)
        case filters.And(terms):
            return filters.And(tuple(_ranked(term) or term for term in terms))
        case filters.Or(terms):
            return filters.Or(tuple(_ranked(term) or term for term in terms))
    return node


def _field(entry: Entry, field: str) -> str | None:
    match field:
        case "severity":
            return str(_SEVERITIES.index(entry["severity"]))
        case "resource.type":
            return str(entry["resource"]["type"])
        case "insert_id":
            return str(entry["insertId"])
        case "log_name":
            return str(entry["logName"])
        case "text_payload":
            return entry.get("textPayload")
    if field.startswith("resource.labels."):
        return entry["resource"]["labels"].get(field.removeprefix("resource.labels."))  # type: ignore[no-any-return]
    if field.startswith("labels."):
        return entry["labels"].get(field.removeprefix("labels."))  # type: ignore[no-any-return]
    return entry.get(field)


def _since(condition: filters.Filter | None) -> int:
    """The earliest time that can pass, so that a follower need not read a long log from its start."""
    bounds = [parse_time(filters.required(condition, "timestamp", operator) or "") for operator in (">=", ">", "=")]
    return max((bound for bound in bounds if bound is not None), default=0)


def _token(skip: int, text: str, order: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([skip, text, order]).encode()).decode()


def _skip(token: object, text: str, order: str) -> int:
    if not token:
        return 0
    try:
        skip, *made_for = json.loads(base64.urlsafe_b64decode(str(token).encode()))
    except (ValueError, TypeError):
        skip, made_for = None, []
    if not isinstance(skip, int) or made_for != [text, order]:
        raise ApiError("INVALID_ARGUMENT", "page_token does not match the request's filter and order")
    return skip
