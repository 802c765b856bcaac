"""Cloud Logging's `entries:list`, for the logs of training jobs."""

import base64
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

from vertex_emulator import filters
from vertex_emulator.api.logging.entry import (
    FIELDS,
    MAP_FIELDS,
    SEVERITIES,
    Entry,
    Key,
    field,
    replica_entry,
    service_entry,
)
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.errors import ApiError, ExecutorUnavailable, InvalidFilter
from vertex_emulator.replicas import saved_logs as logs
from vertex_emulator.replicas.executor import Executor, LogLine
from vertex_emulator.times import parse_time

MAX_PAGE = 1000
_JOB_ID = "resource.labels.job_id"
_END_OF_TIME = 2**63 - 2

Found = tuple[Key, Entry]


@dataclass(frozen=True)
class LoggingService:
    """Log entries of jobs: service lines from the database, containers' lines from Docker or the saved logs.

    A page starts where the one before it ended, by the time and insertId of its last entry: what lies before is not
    read again, and at most a page is held in memory.
    """

    database: Database
    executor: Executor
    data: DataFolder

    def list_entries(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A page of entries in the order of `orderBy`. Raises ApiError."""
        text = str(body.get("filter", ""))
        condition = _condition(text)
        order = str(body.get("orderBy") or "timestamp asc")
        if order not in ("timestamp asc", "timestamp desc", "timestamp"):
            raise ApiError("INVALID_ARGUMENT", f'orderBy is "{order}"; known: "timestamp asc", "timestamp desc"')
        size = body.get("pageSize") or 50
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ApiError("INVALID_ARGUMENT", f"pageSize is {size!r}; it must be a positive number")
        job_id = filters.find_required_value(condition, _JOB_ID)
        if job_id is None:
            raise ApiError("INVALID_ARGUMENT", f'the filter must name a job: {_JOB_ID}="ID" (the emulator needs that)')
        after = _key(body.get("pageToken"), text, order)
        found = self._found(job_id, condition, order == "timestamp desc", after)
        page = list(islice(found, min(size, MAX_PAGE)))
        reply: dict[str, Any] = {"entries": [entry for _, entry in page]} if page else {}
        if next(found, None) is not None:
            reply["nextPageToken"] = _token(page[-1][0], text, order)
        return reply

    def last(self, job_id: str, count: int) -> list[Entry]:
        """The last entries of a job, oldest first."""
        return [entry for _, entry in islice(self._found(job_id, None, True, None), count)][::-1]

    def _found(
        self, job_id: str, condition: filters.Filter | None, newest_first: bool, after: Key | None
    ) -> Iterator[Found]:
        """What passes the filter and comes after the entry `after`, in order."""
        since = _bound(condition, (">=", ">", "="), min) or 0
        until = _bound(condition, ("<=", "<", "="), max) or _END_OF_TIME
        if after is not None:
            since, until = (since, min(until, after[0])) if newest_first else (max(since, after[0]), until)
        with self.database.read_transaction() as transaction:
            job = transaction.get_job(job_id)
            if job is None or job.study is not None:
                return
            jobs = [job, *transaction.get_trial_jobs(job_id).values()]
            # Lines of containers come before the end of their job, so those of most trials need not be opened.
            jobs = [each for each in jobs if each.created <= until and (each.ended is None or each.ended >= since)]
            lines = [(each, line) for each in jobs for line in transaction.list_service_messages(each.id)]
        sources: list[Iterable[Found]] = [
            sorted((service_entry(each, line) for each, line in lines), key=_by_key, reverse=newest_first)
        ]
        for each in jobs:
            if newest_first:
                sources += [self._newest_first(each, replica, until) for replica in each.all_attempts]
            else:
                sources += [self._oldest_first(each, replica, since) for replica in each.all_attempts]
        for key, entry in heapq.merge(*sources, key=_by_key, reverse=newest_first):
            if key[0] > until if not newest_first else key[0] < since:
                return
            is_next = after is None or (key < after if newest_first else key > after)
            if is_next and filters.matches(condition, partial(field, entry)):
                yield key, entry

    def _oldest_first(self, job: Job, replica: Replica, since: int) -> Iterator[Found]:
        saved = logs.read_saved_log(self.data.logs, job.id, replica, since)
        if saved is not None:
            yield from _counted(job, replica, saved)
            return
        last: Key = (0, "")
        for key, entry in _counted(job, replica, self._live(job, replica, since)):
            last = key
            yield key, entry
        # Meanwhile its container may have gone; its log was saved before.
        saved = logs.read_saved_log(self.data.logs, job.id, replica, max(since, last[0]))
        yield from (found for found in _counted(job, replica, saved or ()) if found[0] > last)

    def _newest_first(self, job: Job, replica: Replica, until: int) -> Iterator[Found]:
        saved = logs.read_saved_log_backward(self.data.logs, job.id, replica, until)
        if saved is None:
            lines = self._live(job, replica, 0)
            first = next(lines, None)
            # Nothing: its container may have gone meanwhile; its log was saved before.
            saved = logs.reverse_log(chain([first], lines), until) if first else self._saved_by_now(job, replica, until)
        for same in _groups(saved):
            yield from reversed(list(_counted(job, replica, same)))

    def _saved_by_now(self, job: Job, replica: Replica, until: int) -> Iterator[LogLine]:
        return logs.read_saved_log_backward(self.data.logs, job.id, replica, until) or iter(())

    def _live(self, job: Job, replica: Replica, since: int) -> Iterator[LogLine]:
        try:
            yield from self.executor.read_log(job.id, replica, since)
        except ExecutorUnavailable:
            return


def _counted(job: Job, replica: Replica, lines: Iterable[LogLine]) -> Iterator[Found]:
    """Entries of a container's lines. Docker's times tell lines apart; where two are equal, their order does."""
    previous, same = 0, 0
    for line in lines:
        previous, same = line.at, same + 1 if line.at == previous else 0
        yield replica_entry(job, replica, line, same)


def _groups(lines: Iterable[LogLine]) -> Iterator[list[LogLine]]:
    """Lines that come newest first, in groups of one time, each group in the order in which it was written."""
    group: list[LogLine] = []
    for line in lines:
        if group and line.at != group[-1].at:
            yield group[::-1]
            group = []
        group.append(line)
    if group:
        yield group[::-1]


def _by_key(found: Found) -> Key:
    return found[0]


def _condition(text: str) -> filters.Filter | None:
    try:
        condition = filters.parse_filter(text)
    except InvalidFilter as error:
        raise ApiError("INVALID_ARGUMENT", f"Unparseable filter: {error}") from error
    for comparison in filters.iterate_comparisons(condition):
        if comparison.field not in FIELDS and not comparison.field.startswith(MAP_FIELDS):
            raise ApiError("INVALID_ARGUMENT", f"Field not found: '{comparison.field}'.")
        if comparison.field == "severity" and comparison.value not in SEVERITIES:
            raise ApiError("INVALID_ARGUMENT", f"'{comparison.value}' is no severity; known: {', '.join(SEVERITIES)}")
    return _ranked(condition)


def _ranked(node: filters.Filter | None) -> filters.Filter | None:
    """The filter with severities as ranks, which compare in their order."""
    match node:
        case filters.Comparison("severity", operator, value):
            return filters.Comparison("severity", operator, str(SEVERITIES.index(value)))
        case filters.Not(term):
            return filters.Not(_ranked(term) or term)
        case filters.And(terms):
            return filters.And(tuple(_ranked(term) or term for term in terms))
        case filters.Or(terms):
            return filters.Or(tuple(_ranked(term) or term for term in terms))
    return node


def _bound(node: filters.Filter | None, operators: tuple[str, ...], widest: Any) -> int | None:
    """The time before (or after) which nothing can pass, if the filter sets one; `widest` is min (or max)."""
    match node:
        case filters.And(terms):
            bounds = [bound for term in terms if (bound := _bound(term, operators, widest)) is not None]
            return (max if widest is min else min)(bounds, default=None)
        case filters.Or(terms):
            found = [_bound(term, operators, widest) for term in terms]
            return None if None in found else widest(found)
        case filters.Comparison("timestamp", operator, value) if operator in operators:
            return parse_time(value)
    return None


def _token(last: Key, text: str, order: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([*last, text, order]).encode()).decode()


def _key(token: object, text: str, order: str) -> Key | None:
    if not token:
        return None
    try:
        at, insert_id, *made_for = json.loads(base64.urlsafe_b64decode(str(token).encode()))
    except (ValueError, TypeError):
        at, insert_id, made_for = None, None, []
    if not isinstance(at, int) or not isinstance(insert_id, str) or made_for != [text, order]:
        raise ApiError("INVALID_ARGUMENT", "page_token does not match the request's filter and order")
    return at, insert_id
