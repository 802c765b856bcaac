"""Paging through logs: every line once, in order, and no page pays for those before it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.fakes import Clock, Machine
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, tuning_job_spec
from tests.vertex_emulator.running import line_of
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.api import logging
from vertex_emulator.api.logging import LogService
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import SUCCEEDED, Ending, Replica
from vertex_emulator.errors import ApiError
from vertex_emulator.replicas import logs
from vertex_emulator.replicas.logs import LogLine
from vertex_emulator.replicas.spec import ReplicaSpec
from vertex_emulator.times import now_ns

CHIEF = Replica(0, 0)
SECOND = 10**9


class Daemon(Machine):
    """A machine whose containers wrote what the test says; `on_read` happens while a log is being read."""

    def __init__(self) -> None:
        super().__init__(Clock())
        self.written: dict[str, list[LogLine]] = {}
        self.on_read = lambda: None

    def read_log(self, job: str, replica: Replica, since_ns: int = 0) -> Iterator[LogLine]:
        lines = [line for line in self.written.get(job, []) if line.at >= since_ns]
        self.on_read()
        yield from lines if job in self.written else []

    def start(self, spec: ReplicaSpec) -> None:
        raise AssertionError("nothing runs here")


class Log:
    """A database with jobs, and pages of their entries."""

    def __init__(self, root: Path) -> None:
        self.data = DataFolder.open(root)
        self.database = Database(self.data.database)
        self.daemon = Daemon()
        self.entries = LogService(self.database, self.daemon, self.data)
        self.begin = now_ns()

    def add(self, job_id: str, lines: list[LogLine], saved: bool = True, **trial: Any) -> None:
        with self.database.write() as transaction:
            job = transaction.jobs.add(job_id, CUSTOM_JOB, LOCATION, custom_job_spec(), **trial)
            if saved:
                ending = Ending(SUCCEEDED, 0, "", now_ns())
                transaction.jobs.update(
                    job, state=SUCCEEDED, started=job.created, ended=self.begin + 10**15, ending=ending
                )
        if saved:
            logs.SavedLog(self.data.logs, job_id, CHIEF).save(lines)
        else:
            self.daemon.written[job_id] = lines

    def lines(self, count: int, same: int = 1) -> list[LogLine]:
        """So many lines, `same` of them at each moment."""
        return [LogLine(self.begin + SECOND * (1 + i // same), "o", f"line {i}") for i in range(count)]

    def pages(self, condition: str = "", job: str = "1", **body: Any) -> list[list[str]]:
        text = f'resource.labels.job_id="{job}"' + (f" AND {condition}" if condition else "")
        found, token = [], None
        while True:
            reply = self.entries.list_entries({"filter": text, "pageSize": 7, **body, "pageToken": token})
            found.append([line_of(entry) for entry in reply.get("entries", [])])
            token = reply.get("nextPageToken")
            if token is None:
                return found


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path)
    yield log
    log.database.close()


CONTAINERS = 'resource.labels.task_name!="service"'


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("same", [1, 5, 20])
def test_pages_contain_every_line_once_in_order(log: Log, saved: bool, same: int) -> None:
    log.add("1", log.lines(40, same), saved)
    wanted = [f"line {i}" for i in range(40)]
    for size in (1, 7, 39, 40, 41):
        pages = log.pages(CONTAINERS, pageSize=size)
        assert [line for page in pages for line in page] == wanted
        assert {len(page) for page in pages[:-1]} <= {size}
        backward = log.pages(CONTAINERS, pageSize=size, orderBy="timestamp desc")
        assert [line for page in backward for line in page] == wanted[::-1]


@pytest.mark.parametrize("order", ["timestamp asc", "timestamp desc"])
def test_paging_reads_each_line_few_times(log: Log, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    log.add("1", log.lines(5_000))
    read = 0
    parse = logs._decode

    def counting(text: bytes) -> LogLine:
        nonlocal read
        read += 1
        return parse(text)

    monkeypatch.setattr(logs, "_decode", counting)
    pages = log.pages(CONTAINERS, pageSize=100, orderBy=order)
    assert sum(map(len, pages)) == 5_000
    # Two per line, and the search for the place where a page begins.
    assert read <= 2 * 5_000 + len(pages) * 40


def test_simultaneous_lines_of_different_trials_stay_distinct(log: Log) -> None:
    with log.database.write() as transaction:
        transaction.jobs.add("1", HYPERPARAMETER_TUNING_JOB, LOCATION, tuning_job_spec())
    for trial in (1, 2, 3):
        log.add(f"1{trial}", log.lines(10), study="1", trial=trial)
    found = [line for page in log.pages(CONTAINERS) for line in page]
    assert found == [f"line {i}" for i in range(10) for _ in range(3)]
    body = {"filter": 'resource.labels.job_id="1"', "pageSize": 100}
    ids = [entry["insertId"] for entry in log.entries.list_entries(body)["entries"]]
    assert len(set(ids)) == len(ids) == 30


def test_filters_of_gcloud_find_each_line_once(log: Log) -> None:
    """As it asks (recorded from gcloud 528.0.0): from a time on, then from the last entry that it has shown."""
    log.add("1", log.lines(40, same=3))
    base = 'resource.type="ml_job" AND resource.labels.job_id="1" AND resource.labels.task_name="workerpool0-0"'
    bound = 'timestamp>="2020-01-01T00:00:00Z"'
    shown: list[str] = []
    while True:
        text = f'{base} AND {bound} AND timestamp<"2200-01-01T00:00:00.5Z"'
        body = {"filter": text, "orderBy": "timestamp asc", "pageSize": 10, "resourceNames": ["projects/my-project"]}
        found = log.entries.list_entries(body).get("entries", [])
        if not found:
            break
        shown += [line_of(entry) for entry in found]
        last = found[-1]
        time, insert_id = last["timestamp"], last["insertId"]
        bound = f'((timestamp="{time}" AND insertId>"{insert_id}") OR timestamp>"{time}")'
    assert shown == [f"line {i}" for i in range(40)]


def test_log_moved_while_read_is_complete(log: Log) -> None:
    lines = log.lines(20, same=4)
    log.add("1", lines[:11], saved=False)

    def end() -> None:
        logs.SavedLog(log.data.logs, "1", CHIEF).save(lines)

    log.daemon.on_read = end
    assert log.pages(CONTAINERS, pageSize=100) == [[f"line {i}" for i in range(20)]]


@pytest.mark.parametrize("order", ["timestamp asc", "timestamp desc"])
def test_log_moved_before_first_byte_is_complete(log: Log, order: str) -> None:
    lines = log.lines(20)
    log.add("1", [], saved=False)
    log.daemon.on_read = lambda: logs.SavedLog(log.data.logs, "1", CHIEF).save(lines)
    (page,) = log.pages(CONTAINERS, pageSize=100, orderBy=order)
    assert sorted(page) == sorted(f"line {i}" for i in range(20))


def test_timestamp_filters_bound_the_lines_found(log: Log) -> None:
    log.add("1", log.lines(40))
    everything = log.entries.list_entries({"filter": f'resource.labels.job_id="1" AND {CONTAINERS}'})["entries"]
    low, high = everything[10]["timestamp"], everything[20]["timestamp"]
    for order in ("timestamp asc", "timestamp desc"):
        found = log.pages(f'{CONTAINERS} AND timestamp>"{low}" AND timestamp<="{high}"', orderBy=order)
        assert sorted(line for page in found for line in page) == sorted(f"line {i}" for i in range(11, 21))


@pytest.mark.parametrize("order", ["timestamp asc", "timestamp desc"])
def test_a_search_without_time_goes_on_later(log: Log, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    monkeypatch.setattr(logging, "MAX_SEARCH_SECONDS", -1)
    log.add("1", log.lines(40, same=3))
    pages = log.pages(f'{CONTAINERS} AND jsonPayload.message="line 19"', orderBy=order)
    assert [line for page in pages for line in page] == ["line 19"]
    assert [] in pages


@pytest.mark.parametrize("order", ["timestamp asc", "timestamp desc"])
def test_pages_of_long_lines_are_short(log: Log, order: str) -> None:
    long = "x" * (256 << 10)
    log.add("1", [LogLine(line.at, "o", line.text + long) for line in log.lines(40)])
    pages = log.pages(CONTAINERS, orderBy=order, pageSize=1000)
    assert [line for page in pages for line in page] == sorted(
        (f"line {i}{long}" for i in range(40)), key=lambda line: int(line[5:7].strip("x")), reverse="desc" in order
    )
    assert max(len(line) * len(page) for page in pages for line in page) < 5 << 20


@pytest.mark.parametrize("payload", ['{"a":' * 400 + "1" + "}" * 400, '{"a":' + "[" * 600 + "]" * 600 + "}"])
def test_deep_json_lines_are_texts(log: Log, payload: str) -> None:
    log.add("1", [LogLine(log.begin + SECOND, "o", payload)])
    assert log.pages(CONTAINERS) == [[payload]]


def test_container_lines_have_a_tagged_message(log: Log) -> None:
    log.add("1", [LogLine(log.begin, "o", "epoch 1"), LogLine(log.begin, "e", "loss is nan")])
    entries = log.entries.list_entries({"filter": f'resource.labels.job_id="1" AND {CONTAINERS}'})["entries"]
    assert [(entry["severity"], entry["jsonPayload"]) for entry in entries] == [
        ("INFO", {"message": "epoch 1", "levelname": "INFO", "attrs": {"tag": "workerpool0-0"}}),
        ("ERROR", {"message": "loss is nan", "levelname": "ERROR", "attrs": {"tag": "workerpool0-0"}}),
    ]
    assert not any("textPayload" in entry for entry in entries)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ('jsonPayload.message=~"^line [12]$"', ["line 1", "line 2"]),
        (r'jsonPayload.message=~"line\s\d\d"', ["line 10", "line 11"]),
        (r'jsonPayload.message=~"line\\s1\\d"', ["line 10", "line 11"]),
        ('jsonPayload.message !~ "line [0-8]"', ["line 9"]),
        ('jsonPayload.message:"ne 1"', ["line 1", "line 10", "line 11"]),
        (
            'jsonPayload.attrs.tag="workerpool0-0" AND jsonPayload.levelname="INFO" AND json_payload.message="line 3"',
            ["line 3"],
        ),
        ("jsonPayload.attrs.tag.more:*", []),
        ('jsonPayload.other=~".*"', []),
        ('textPayload=~".*"', []),
        ('resource.labels.task_name=~"workerpool[0-9]+-0$" AND jsonPayload.message=~"(?i)LINE 5"', ["line 5"]),
    ],
)
def test_payloads_match_fields_and_patterns(log: Log, condition: str, found: list[str]) -> None:
    log.add("1", log.lines(12))
    assert log.pages(f"{CONTAINERS} AND {condition}", pageSize=100) == [found]


@pytest.mark.parametrize(
    "condition", ['jsonPayload.message=~"("', 'severity=~"E"', 'timestamp=~"20"', 'jsonPayload=~"x"']
)
def test_impossible_regular_expressions_are_rejected(log: Log, condition: str) -> None:
    with pytest.raises(ApiError) as error:
        log.pages(condition)
    assert error.value.status == "INVALID_ARGUMENT"


def test_tokens_of_other_requests_are_refused(log: Log) -> None:
    log.add("1", log.lines(10))
    text = 'resource.labels.job_id="1"'
    token = log.entries.list_entries({"filter": text, "pageSize": 2})["nextPageToken"]
    for body in (
        {"filter": text, "orderBy": "timestamp desc", "pageToken": token},
        {"filter": f"{text} AND {CONTAINERS}", "pageToken": token},
        {"filter": text, "pageToken": "WzEsMl0="},
        {"filter": text, "pageToken": "no token"},
        {"filter": text, "pageToken": 7},
    ):
        with pytest.raises(ApiError, match="page_token does not match"):
            log.entries.list_entries(body)
