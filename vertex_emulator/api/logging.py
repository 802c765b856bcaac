"""Cloud Logging's `entries:list`, for the logs of training jobs."""

import base64
import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from time import monotonic
from typing import Any

from pydantic_core import to_json

from vertex_api.names import SERVICE_TASK
from vertex_emulator import filters
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import SEVERITIES, Job, Replica, ServiceMessage
from vertex_emulator.errors import ApiError, ExecutorUnavailable, InvalidFilter
from vertex_emulator.filters import PATTERN_OPERATORS, And, Comparison, Filter, Or
from vertex_emulator.replicas import logs
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.replicas.logs import LogLine, SavedLog
from vertex_emulator.times import format_time, parse_time

MAX_PAGE_SIZE = 1000
MAX_PAGE_BYTES = 4 << 20
MAX_SEARCH_SECONDS = 2.0
_JOB_ID = "resource.labels.job_id"
_END_OF_TIME = 2**63 - 2

Entry = dict[str, Any]
Key = tuple[int, str]  # time in nanoseconds and insertId: the order of entries, in Cloud Logging too
Keyed = tuple[Key, Entry]
_key = itemgetter(0)


@dataclass(frozen=True)
class LogService:
    """Log entries of jobs: service messages from the database, lines of containers from Docker or the saved logs.

    A page starts after the time and insertId of the previous page's last entry, so that earlier entries are not read
    again and at most one page is in memory.
    """

    database: Database
    executor: Executor
    data: DataFolder

    def list_entries(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a page of entries in the order of `orderBy`. Raises ApiError."""
        text = str(body.get("filter", ""))
        condition = _parse_filter(text)
        order = str(body.get("orderBy") or "timestamp asc")
        if order not in ("timestamp asc", "timestamp desc", "timestamp"):
            raise ApiError("INVALID_ARGUMENT", f'orderBy is "{order}"; known: "timestamp asc", "timestamp desc"')
        size = body.get("pageSize") or 50
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ApiError("INVALID_ARGUMENT", f"pageSize is {size!r}; it must be a positive number")
        job_id = condition.required(_JOB_ID)
        if job_id is None:
            raise ApiError("INVALID_ARGUMENT", f'the filter must name a job: {_JOB_ID}="ID" (the emulator needs that)')
        after = _decode_token(body.get("pageToken"), text, order)
        entries = self._entries(job_id, condition, order == "timestamp desc", after)
        page, last = _take_page(entries, condition, min(size, MAX_PAGE_SIZE))
        reply: dict[str, Any] = {"entries": page} if page else {}
        if last is not None:
            reply["nextPageToken"] = base64.urlsafe_b64encode(json.dumps([*last, text, order]).encode()).decode()
        return reply

    def _entries(self, job_id: str, condition: Filter, is_newest_first: bool, after: Key | None) -> Iterator[Keyed]:
        """Yield in order the entries within the filter's times that come after the entry with the key `after`."""
        since = _time_bound(condition, (">=", ">", "="), min) or 0
        until = _time_bound(condition, ("<=", "<", "="), max) or _END_OF_TIME
        if after is not None:
            since, until = (since, min(until, after[0])) if is_newest_first else (max(since, after[0]), until)
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
            if job is None or job.study is not None:
                return
            jobs = [job, *transaction.jobs.of_study(job_id)]
            # Lines of containers come before the end of their job, so the logs of most trials need not be opened.
            jobs = [job for job in jobs if job.created <= until and (job.ended is None or job.ended >= since)]
            messages = [(job, message) for job in jobs for message in transaction.jobs.messages(job.id)]
        service = sorted((_service_entry(job, message) for job, message in messages), key=_key, reverse=is_newest_first)
        read, bound = (self._newest_first, until) if is_newest_first else (self._oldest_first, since)
        replicas = (read(job, replica, bound) for job in jobs for replica in job.all_replicas)
        for key, entry in heapq.merge(service, *replicas, key=_key, reverse=is_newest_first):
            if key[0] > until if not is_newest_first else key[0] < since:
                return
            if after is None or (key < after if is_newest_first else key > after):
                yield key, entry

    def _oldest_first(self, job: Job, replica: Replica, since: int) -> Iterator[Keyed]:
        log = SavedLog(self.data.logs, job.id, replica)
        saved = log.read(since)
        if saved is not None:
            yield from _replica_entries(job, replica, saved)
            return
        last: Key = (0, "")
        for last, entry in _replica_entries(job, replica, self._container_lines(job, replica, since)):
            yield last, entry
        # Its container may have been removed meanwhile; its log was saved before.
        saved = log.read(max(since, last[0]))
        yield from (keyed for keyed in _replica_entries(job, replica, saved or ()) if keyed[0] > last)

    def _newest_first(self, job: Job, replica: Replica, until: int) -> Iterator[Keyed]:
        log = SavedLog(self.data.logs, job.id, replica)
        lines = log.read_back(until)
        if lines is None:
            live = self._container_lines(job, replica, 0)
            first = next(live, None)
            # Without a line, its container may have been removed meanwhile; its log was saved before.
            lines = logs.reverse(chain([first], live), until) if first else log.read_back(until) or iter(())
        for _, simultaneous in groupby(lines, lambda line: line.at):
            # Lines of one time are numbered in the order in which they were written.
            yield from reversed(list(_replica_entries(job, replica, [*simultaneous][::-1])))

    def _container_lines(self, job: Job, replica: Replica, since: int) -> Iterator[LogLine]:
        try:
            yield from self.executor.read_log(job.id, replica, since)
        except ExecutorUnavailable:
            return


def _take_page(entries: Iterator[Keyed], condition: Filter, size: int) -> tuple[list[Entry], Key | None]:
    """Return the matching entries of a page, and the key after which the next one begins; None if there is none.

    A page ends early if its entries are long or matches are rare, as Cloud Logging's do: it may be empty.
    """
    page, page_bytes, last = list[Entry](), 0, None
    deadline = monotonic() + MAX_SEARCH_SECONDS
    for key, entry in entries:
        if last is not None and (page_bytes > MAX_PAGE_BYTES or monotonic() > deadline):
            return page, last
        if condition.matches(partial(_field, entry)):
            if len(page) == size:
                return page, last
            page.append(entry)
            page_bytes += len(to_json(entry))
        last = key
    return page, None


def _decode_token(token: object, text: str, order: str) -> Key | None:
    """Return the key of the previous page's last entry, None without a token. Raises ApiError."""
    if not token:
        return None
    try:
        at, insert_id, *query = json.loads(base64.urlsafe_b64decode(str(token).encode()))
    except (ValueError, TypeError, RecursionError):
        at, insert_id, query = None, None, []
    is_key = type(at) is int and 0 <= at <= _END_OF_TIME and isinstance(insert_id, str)
    if not is_key or query != [text, order]:
        raise ApiError("INVALID_ARGUMENT", "page_token does not match the request's filter and order")
    return at, insert_id


def _service_entry(job: Job, message: ServiceMessage) -> Keyed:
    key = (message.at, f"{message.at}-service-{message.sequence:012d}")
    return key, _entry(job, SERVICE_TASK, key, message.severity, message.text)


def _replica_entries(job: Job, replica: Replica, lines: Iterable[LogLine]) -> Iterator[Keyed]:
    """Yield the entries of a container's lines; lines of the same time are numbered, to tell them apart."""
    source = f"{replica.task_name}-{job.trial or 0:06d}-{replica.attempt:03d}"
    for _, simultaneous in groupby(lines, lambda line: line.at):
        for number, line in enumerate(simultaneous):
            key = (line.at, f"{line.at}-{source}-{number:06d}{line.stream}")
            severity = "ERROR" if line.stream == "e" else "INFO"
            yield key, _entry(job, replica.task_name, key, severity, line.text)


def _entry(job: Job, task: str, key: Key, severity: str, text: str) -> Entry:
    """Return an entry: a line of a container has a jsonPayload, one of the service a textPayload, as in real jobs.

    A line that is a JSON object is the payload itself, and sets the severity.
    """
    at, insert_id = key
    labels = {"ml.googleapis.com/job_id/log_area": "root"}
    if job.trial is not None:
        labels["ml.googleapis.com/trial_id"] = str(job.trial)
        labels["ml.googleapis.com/trial_type"] = "HYPERPARAMETER_TUNING"
    project = job.location.project
    entry: Entry = {
        "insertId": insert_id,
        "logName": f"projects/{project}/logs/{'ml.googleapis.com%2F' if task == SERVICE_TASK else ''}{task}",
        "resource": {
            "type": "ml_job",
            "labels": {"job_id": job.owner[1], "task_name": task, "project_id": project},
        },
        "timestamp": f"{format_time(at)[:19]}.{at % 10**9:09d}Z",
        "severity": severity,
        "labels": labels,
    }
    if task == SERVICE_TASK:
        return {**entry, "textPayload": text}
    payload = _parse_payload(text)
    if payload is None:
        payload = {"message": text, "levelname": severity, "attrs": {"tag": task}}
    elif payload.get("severity") in SEVERITIES:
        entry["severity"] = payload.pop("severity")
    return {**entry, "jsonPayload": payload}


def _parse_payload(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a line, None for what no reply can contain: NaN, lone surrogates, endless nesting."""
    if not text.startswith("{"):
        return None
    try:
        payload = json.loads(text)
        json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
        to_json(payload)  # as replies are written
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


_ENTRY_FIELDS: Mapping[str, Callable[[Entry], str | None]] = {
    "resource.type": lambda entry: str(entry["resource"]["type"]),
    "logName": lambda entry: entry["logName"],
    "timestamp": lambda entry: entry["timestamp"],
    "severity": lambda entry: str(SEVERITIES.index(entry["severity"])),  # ranks, which compare in their order
    "insertId": lambda entry: entry["insertId"],
    "textPayload": lambda entry: entry.get("textPayload"),
}
"""The fields that a filter can name, and how their texts are read."""
_MAPS: Mapping[str, Callable[[Entry], Any]] = {
    "resource.labels.": lambda entry: entry["resource"]["labels"],
    "labels.": lambda entry: entry["labels"],
    "jsonPayload.": lambda entry: entry.get("jsonPayload"),
}
"""The same for fields of maps, by what comes before the key."""
_CAMEL = {"log_name": "logName", "insert_id": "insertId", "text_payload": "textPayload"}


def _parse_filter(text: str) -> Filter:
    """Return the filter in a text, with severities as ranks. Raises ApiError."""
    try:
        condition = filters.parse(text)
        for comparison in condition.comparisons():
            _check(comparison)
    except InvalidFilter as error:
        raise ApiError("INVALID_ARGUMENT", f"Unparseable filter: {error}") from error
    return condition.replace(_normalize)


def _check(comparison: Comparison) -> None:
    field = _camel(comparison.field)
    if field not in _ENTRY_FIELDS and not field.startswith(tuple(_MAPS)):
        raise ApiError("INVALID_ARGUMENT", f"Field not found: '{comparison.field}'.")
    if comparison.operator in PATTERN_OPERATORS:
        if field in ("severity", "timestamp"):
            message = f"{field} is not a text; it cannot be compared with a regular expression"
            raise ApiError("INVALID_ARGUMENT", message)
        filters.compile_pattern(comparison.value)
    elif field == "severity" and comparison.value not in SEVERITIES:
        message = f"'{comparison.value}' is not a severity; known: {', '.join(SEVERITIES)}"
        raise ApiError("INVALID_ARGUMENT", message)


def _normalize(comparison: Comparison) -> Comparison:
    """Return a comparison in camelCase, with a severity as its rank, and with a part of a payload as a wildcard."""
    field, value = _camel(comparison.field), comparison.value
    if field == "severity":
        value = str(SEVERITIES.index(value))
    elif comparison.operator == ":" and (field == "textPayload" or field.startswith("jsonPayload.")):
        value = f"*{value}*"
    return Comparison(field, comparison.operator, value)


def _camel(field: str) -> str:
    head, dot, rest = field.partition(".")
    return f"jsonPayload.{rest}" if (head, dot) == ("json_payload", ".") else _CAMEL.get(field, field)


def _field(entry: Entry, field: str) -> str | None:
    """Return the text of a field that a filter names, None if it is absent."""
    if field in _ENTRY_FIELDS:
        return _ENTRY_FIELDS[field](entry)
    prefix = next(prefix for prefix in _MAPS if field.startswith(prefix))
    value: Any = _MAPS[prefix](entry)
    if prefix != "jsonPayload.":
        return value.get(field.removeprefix(prefix))  # type: ignore[no-any-return]
    for key in field.split(".")[1:]:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _time_bound(condition: Filter, operators: tuple[str, ...], choose: Any) -> int | None:
    """Return the earliest (or latest) time that can match, None if none is set; `choose` is min (or max)."""
    match condition:
        case And(terms):
            times = [_time_bound(term, operators, choose) for term in terms]
            return (max if choose is min else min)((time for time in times if time is not None), default=None)
        case Or(terms):
            alternatives = [_time_bound(term, operators, choose) for term in terms]
            return None if None in alternatives else choose(alternatives)
        case Comparison("timestamp", operator, value) if operator in operators:
            return parse_time(value)
    return None
