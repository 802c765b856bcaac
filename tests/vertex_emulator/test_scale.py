"""What many jobs and long studies cost, in rows and in instructions of SQLite: the same on every machine."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from tests.vertex_emulator.fakes import Clock, Container, Emulator, Machine, use_clock
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, tuning_job_spec
from tests.vertex_emulator.scheduling.steps import reports, submit_study
from vertex_api.names import CUSTOM_JOB
from vertex_emulator.api.jobs import JobService
from vertex_emulator.api.lists import ListRequest
from vertex_emulator.database import Database, jobs
from vertex_emulator.database import jobs as job_table
from vertex_emulator.database.records import SUCCEEDED
from vertex_emulator.page import jobs as page_jobs
from vertex_emulator.scheduling import study as study_module
from vertex_emulator.scheduling import trials as study_trials

FEW, MANY = 300, 3000


def filled(path: Path, count: int) -> Database:
    database = Database(path)
    with database.write() as transaction:
        for number in range(count):
            spec = custom_job_spec() | {"labels": {"number": f"n{number}"}}
            job = transaction.jobs.add(str(number), CUSTOM_JOB, LOCATION, spec)
            transaction.jobs.update(job, state=SUCCEEDED)
    return database


@pytest.fixture(scope="module")
def few_and_many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, Database]]:
    folder = tmp_path_factory.mktemp("databases")
    few, many = filled(folder / "few.db", FEW), filled(folder / "many.db", MANY)
    yield few, many
    few.close()
    many.close()


def instructions(database: Database, work: Callable[[Database], object]) -> int:
    count = 0

    def add_one() -> None:
        nonlocal count
        count += 1

    connection = database._connection  # SQLite counts for one connection
    connection.set_progress_handler(add_one, 1)
    try:
        work(database)
    finally:
        connection.set_progress_handler(None, 1)
    return count


def api_page(database: Database, **query: str) -> list[str]:
    request = ListRequest.parse(query)
    jobs = JobService(database, Path("unused"), 4, Machine(Clock()), lambda _: None, "http://here")
    return [job["labels"]["number"] for job in jobs.list(CUSTOM_JOB, LOCATION, request).get("customJobs", [])]


def listed_page(database: Database) -> int:
    return len(page_jobs.search(database, page_jobs.Query.parse(QueryParams()))["jobs"])


@pytest.mark.parametrize("work", [api_page, listed_page, lambda database: api_page(database, filter="displayName:*")])
def test_pages_cost_the_same_among_many(
    few_and_many: tuple[Database, Database], work: Callable[[Database], object]
) -> None:
    few, many = (instructions(database, work) for database in few_and_many)
    assert many < 1.1 * few


@pytest.mark.parametrize("text", ['labels.number="n5"', 'state="JOB_STATE_FAILED"'])
def test_searches_parse_only_possible_matches(
    few_and_many: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    parsed = count_calls(monkeypatch, "_parse")
    assert api_page(few_and_many[1], filter=text) == (["n5"] if "n5" in text else [])
    assert len(parsed) < 10


def test_counts_and_leftovers_parse_no_job(
    few_and_many: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = count_calls(monkeypatch, "_parse")
    with few_and_many[1].read() as transaction:
        assert transaction.jobs.count_by_state() == {SUCCEEDED: MANY}
        assert transaction.jobs.missing(["1", "gone"]) == {"gone"}
    assert parsed == []


class SlowFirstTrial(Machine):
    """The container that has run longest ends last."""

    def _running(self) -> list[Container]:
        return super()._running()[::-1]


@pytest.mark.parametrize("rule", [{}, {"medianAutomatedStoppingSpec": {}}])
@pytest.mark.parametrize("machine", [Machine, SlowFirstTrial])
def test_studies_read_each_trial_rarely(
    machine: type[Machine], rule: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    for trials in (20, 60):
        clock = Clock()
        use_clock(clock, monkeypatch)
        emulator = Emulator(tmp_path / str(trials), machine(clock, program=reports))
        with monkeypatch.context() as patch:
            parsed = count_calls(patch, "_parse_trial", job_table)
            curves = count_calls(patch, "_curves", study_module)
            updates = count_calls(patch, "update", study_trials)
            study = submit_study(emulator, trials=trials, parallel=2, studySpec=tuning_job_spec()["studySpec"] | rule)
            emulator.run()
        assert emulator.job(study).state == SUCCEEDED
        assert parsed == []  # the steps of one process know what they have written
        reads.append((len(updates) + len(curves)) / trials)
        assert bool(curves) == bool(rule)
    assert reads[1] < 1.2 * reads[0] < 12


@pytest.mark.parametrize("rule", [{}, {"medianAutomatedStoppingSpec": {}}])
def test_a_step_costs_the_same_after_many_trials(
    rule: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step in which nothing has changed: it reads the jobs of running trials, and no trial."""
    costs = []
    for trials in (10, 60):
        clock = Clock()
        use_clock(clock, monkeypatch)
        emulator = Emulator(tmp_path / str(trials), Machine(clock, program=reports))
        study = submit_study(emulator, trials=100, parallel=2, studySpec=tuning_job_spec()["studySpec"] | rule)
        emulator.run(until=partial(has_ended, study, trials))
        emulator.run_ready_steps()
        step = partial(emulator.scheduler._studies.advance, emulator.job(study))
        with monkeypatch.context() as patch:
            updates = count_calls(patch, "update", study_trials)
            costs.append(instructions(emulator.database, lambda _, step=step: step()))  # type: ignore[misc]
        assert updates == []  # their metric files are as they were
    assert costs[0] == costs[1]


def has_ended(study: str, trials: int, emulator: Emulator) -> bool:
    with emulator.database.read() as transaction:
        return transaction.trials.count_ended(study) >= trials


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str, module: ModuleType = jobs) -> list[object]:
    """The arguments with which a function of a module is called from now on."""
    calls: list[object] = []
    function = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *arguments: calls.append(arguments) or function(*arguments))
    return calls
