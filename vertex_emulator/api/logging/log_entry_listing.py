"""Cloud Logging's `entries:list`, for the logs of training jobs."""

import base64
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from time import monotonic
from typing import Any

from pydantic_core import to_json

from vertex_emulator.api.logging.log_entry import (
    Entry,
    EntryKey,
    KeyAndEntry,
    build_key_and_replica_entry,
    build_key_and_service_entry,
)
from vertex_emulator.api.logging.log_entry_filter import (
    find_earliest_or_latest_matching_time,
    get_field_text_or_severity_rank,
    parse_log_filter_with_severity_ranks,
)
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.errors import ApiError, ExecutorUnavailable
from vertex_emulator.filters import expression_tree
from vertex_emulator.replicas import saved_logs
from vertex_emulator.replicas.executor_protocol import Executor, LogLine

MAX_PAGE_SIZE = 1000
MAX_PAGE_BYTES = 4 << 20
MAX_SEARCH_SECONDS = 2.0
_JOB_ID = "resource.labels.job_id"
_END_OF_TIME = 2**63 - 2
_get_key = itemgetter(0)


@dataclass(frozen=True)
class LogEntryListingService:
    """Log entries of jobs: service messages from the database, lines of containers from Docker or the saved logs.

    A page starts after the time and insertId of the previous page's last entry, so that earlier entries are not read
    again and at most one page is in memory.
    """

    database: Database
    executor: Executor
    data: DataFolder

    def list_entries(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a page of entries in the order of `orderBy`. Raises ApiError."""
        filter_text = str(body.get("filter", ""))
        condition = parse_log_filter_with_severity_ranks(filter_text)
        order = str(body.get("orderBy") or "timestamp asc")
        if order not in ("timestamp asc", "timestamp desc", "timestamp"):
            raise ApiError("INVALID_ARGUMENT", f'orderBy is "{order}"; known: "timestamp asc", "timestamp desc"')
        size = body.get("pageSize") or 50
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ApiError("INVALID_ARGUMENT", f"pageSize is {size!r}; it must be a positive number")
        job_id = expression_tree.find_required_value(condition, _JOB_ID)
        if job_id is None:
            raise ApiError("INVALID_ARGUMENT", f'the filter must name a job: {_JOB_ID}="ID" (the emulator needs that)')
        after = _decode_page_token_or_none(body.get("pageToken"), filter_text, order)
        entries = self._iterate_keys_and_entries_within_filter_times(
            job_id, condition, order == "timestamp desc", after
        )
        page, last_key = _take_matching_page_and_continuation_key(entries, condition, min(size, MAX_PAGE_SIZE))
        reply: dict[str, Any] = {"entries": page} if page else {}
        if last_key is not None:
            reply["nextPageToken"] = _encode_page_token(last_key, filter_text, order)
        return reply

    def _iterate_keys_and_entries_within_filter_times(
        self, job_id: str, condition: expression_tree.Filter | None, is_newest_first: bool, after_key: EntryKey | None
    ) -> Iterator[KeyAndEntry]:
        """Yield in order the entries within the filter's times that come after the entry with the key `after_key`."""
        since = find_earliest_or_latest_matching_time(condition, (">=", ">", "="), min) or 0
        until = find_earliest_or_latest_matching_time(condition, ("<=", "<", "="), max) or _END_OF_TIME
        if after_key is not None:
            since, until = (since, min(until, after_key[0])) if is_newest_first else (max(since, after_key[0]), until)
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
            if job is None or job.study is not None:
                return
            jobs = [job, *transaction.jobs.of_study(job_id)]
            # Lines of containers come before the end of their job, so the logs of most trials need not be opened.
            jobs = [job for job in jobs if job.created <= until and (job.ended is None or job.ended >= since)]
            messages = [(job, message) for job in jobs for message in transaction.jobs.messages(job.id)]
        service_entries = (build_key_and_service_entry(job, message) for job, message in messages)
        sources: list[Iterable[KeyAndEntry]] = [sorted(service_entries, key=_get_key, reverse=is_newest_first)]
        read = (
            self._iterate_keys_and_entries_newest_first
            if is_newest_first
            else self._iterate_keys_and_entries_oldest_first
        )
        bound = until if is_newest_first else since
        sources += [read(job, replica, bound) for job in jobs for replica in job.all_replicas]
        for key, entry in heapq.merge(*sources, key=_get_key, reverse=is_newest_first):
            if key[0] > until if not is_newest_first else key[0] < since:
                return
            if after_key is None or (key < after_key if is_newest_first else key > after_key):
                yield key, entry

    def _iterate_keys_and_entries_oldest_first(self, job: Job, replica: Replica, since: int) -> Iterator[KeyAndEntry]:
        saved = saved_logs.iterate_saved_log_or_none(self.data.logs, job.id, replica, since)
        if saved is not None:
            yield from _iterate_keys_and_entries_of_lines(job, replica, saved)
            return
        last: EntryKey = (0, "")
        live = self._iterate_container_lines_if_available(job, replica, since)
        for last, entry in _iterate_keys_and_entries_of_lines(job, replica, live):
            yield last, entry
        # Its container may have been removed meanwhile; its log was saved before.
        saved = saved_logs.iterate_saved_log_or_none(self.data.logs, job.id, replica, max(since, last[0]))
        yield from (keyed for keyed in _iterate_keys_and_entries_of_lines(job, replica, saved or ()) if keyed[0] > last)

    def _iterate_keys_and_entries_newest_first(self, job: Job, replica: Replica, until: int) -> Iterator[KeyAndEntry]:
        read_saved = partial(saved_logs.iterate_saved_log_reversed_or_none, self.data.logs, job.id, replica, until)
        lines = read_saved()
        if lines is None:
            live = self._iterate_container_lines_if_available(job, replica, 0)
            first = next(live, None)
            # Without a line, its container may have been removed meanwhile; its log was saved before.
            lines = (
                saved_logs.iterate_reversed_log_up_to(chain([first], live), until)
                if first
                else read_saved() or iter(())
            )
        for _, simultaneous in groupby(lines, lambda line: line.at):
            # Lines of one time are numbered in the order in which they were written.
            yield from reversed(list(_iterate_keys_and_entries_of_lines(job, replica, [*simultaneous][::-1])))

    def _iterate_container_lines_if_available(self, job: Job, replica: Replica, since: int) -> Iterator[LogLine]:
        try:
            yield from self.executor.iterate_log_lines_so_far(job.id, replica, since)
        except ExecutorUnavailable:
            return


def _take_matching_page_and_continuation_key(
    entries: Iterator[KeyAndEntry], condition: expression_tree.Filter | None, size: int
) -> tuple[list[Entry], EntryKey | None]:
    """Return the matching entries of a page, and the key after which the next one begins; None if there is none.

    A page ends early if its entries are long or matches are rare, as Cloud Logging's do: it may be empty.
    """
    page, page_bytes, last_key = list[Entry](), 0, None
    deadline = monotonic() + MAX_SEARCH_SECONDS
    for key, entry in entries:
        if last_key is not None and (page_bytes > MAX_PAGE_BYTES or monotonic() > deadline):
            return page, last_key
        if expression_tree.matches(condition, partial(get_field_text_or_severity_rank, entry)):
            if len(page) == size:
                return page, last_key
            page.append(entry)
            page_bytes += len(to_json(entry))
        last_key = key
    return page, None


def _iterate_keys_and_entries_of_lines(job: Job, replica: Replica, lines: Iterable[LogLine]) -> Iterator[KeyAndEntry]:
    """Yield the entries of a container's lines; lines of the same time are numbered, to tell them apart."""
    for _, simultaneous in groupby(lines, lambda line: line.at):
        for number, line in enumerate(simultaneous):
            yield build_key_and_replica_entry(job, replica, line, number)


def _encode_page_token(last_key: EntryKey, filter_text: str, order: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([*last_key, filter_text, order]).encode()).decode()


def _decode_page_token_or_none(token: object, filter_text: str, order: str) -> EntryKey | None:
    """Return the key of the previous page's last entry, None without a token. Raises ApiError."""
    if not token:
        return None
    try:
        at, insert_id, *token_query = json.loads(base64.urlsafe_b64decode(str(token).encode()))
    except (ValueError, TypeError, RecursionError):
        at, insert_id, token_query = None, None, []
    is_key = type(at) is int and 0 <= at <= _END_OF_TIME and isinstance(insert_id, str)
    if not is_key or token_query != [filter_text, order]:
        raise ApiError("INVALID_ARGUMENT", "page_token does not match the request's filter and order")
    return at, insert_id
