"""The store tells which jobs have changed."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.vertex_emulator.jobs import LOCATION, custom_job_spec
from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database import Store, Transaction
from vertex_emulator.database.changes import Watcher
from vertex_emulator.database.records import RUNNING, Trial

SHORT = 0.01


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with the custom job `1`, and the study `2` whose trial 1 is the job `3`."""
    store = Store(tmp_path / "emulator.db")
    with store.transaction() as change:
        change.add_job("1", CUSTOM_JOB, LOCATION, custom_job_spec(), slots=1)
        change.add_job("2", HYPERPARAMETER_TUNING_JOB, LOCATION, {"displayName": "a study"}, slots=0)
        change.add_job("3", CUSTOM_JOB, LOCATION, custom_job_spec(), slots=1, study="2", trial=1)
        change.add_trial(Trial("2", 1, "REQUESTED", {}, "3"))
    yield store
    store.close()


def told(store: Store, act: Callable[[], object]) -> frozenset[str] | None:
    """What a watcher hears of an act."""

    async def watch() -> frozenset[str] | None:
        with store.changes.watch() as watcher:
            act()
            return await watcher.changed(SHORT)

    return asyncio.run(watch())


def within(store: Store, work: Callable[[Transaction], object]) -> Callable[[], None]:
    def act() -> None:
        with store.transaction() as change:
            work(change)

    return act


def moved(change: Transaction, job_id: str) -> None:
    job = change.job(job_id)
    assert job is not None
    change.change_job(job, state=RUNNING)


def removed(change: Transaction, job_id: str) -> None:
    job = change.job(job_id)
    assert job is not None
    change.remove_job(job)


@pytest.mark.parametrize(
    ("work", "jobs"),
    [
        (lambda change: change.add_job("4", CUSTOM_JOB, LOCATION, custom_job_spec(), slots=1), {"4"}),
        (lambda change: moved(change, "1"), {"1"}),
        (lambda change: moved(change, "3"), {"3", "2"}),
        (lambda change: change.change_trial(Trial("2", 1, "ACTIVE", {}, "3")), {"2"}),
        (lambda change: change.say("1", "Job is running."), {"1"}),
        (lambda change: change.say("3", "Job is running."), {"3", "2"}),
        (lambda change: removed(change, "2"), {"2", "3"}),
        (lambda change: change.set_setting("ready", "1"), set()),
    ],
)
def test_every_kind_of_change_is_told_with_its_job_and_a_trial_s_with_its_study(
    store: Store, work: Callable[[Transaction], object], jobs: set[str]
) -> None:
    assert told(store, within(store, work)) == jobs


def test_nothing_is_told_before_the_change_is_there(store: Store) -> None:
    async def watch() -> None:
        with store.changes.watch() as watcher:
            with store.transaction() as change:
                moved(change, "1")
                assert await watcher.changed(SHORT) == frozenset()
            assert await watcher.changed(SHORT) == {"1"}

    asyncio.run(watch())


def test_a_slow_watcher_finds_all_that_it_missed_in_one_set(store: Store) -> None:
    def act() -> None:
        for _ in range(100):
            within(store, lambda change: change.say("1", "again"))()
        within(store, lambda change: change.say("3", "once"))()

    assert told(store, act) == {"1", "2", "3"}


def test_every_watcher_is_let_go_at_the_end_and_those_that_come_later_at_once(store: Store) -> None:
    assert told(store, store.changes.close) is None
    assert told(store, lambda: None) is None


def test_who_has_left_is_told_nothing_more(store: Store) -> None:
    left: list[Watcher] = []

    async def watch() -> None:
        with store.changes.watch() as watcher:
            left.append(watcher)

    asyncio.run(watch())
    within(store, lambda change: moved(change, "1"))()  # its event loop is closed: telling it would fail


def test_the_file_keeps_nothing_of_it(store: Store, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "emulator.db") as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (0,)
    connection.close()
