"""The database tells which jobs have changed."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.vertex_emulator.jobs import LOCATION, custom_job_spec
from vertex_api.job_kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.job_change_notifier import Subscription
from vertex_emulator.database.records import RUNNING, Trial

SHORT = 0.01


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database with the custom job `1`, and the study `2` whose trial 1 is the job `3`."""
    database = Database(tmp_path / "emulator.db")
    with database.write_transaction() as transaction:
        transaction.add_job_and_consume_fault("1", CUSTOM_JOB, LOCATION, custom_job_spec())
        transaction.add_job_and_consume_fault("2", HYPERPARAMETER_TUNING_JOB, LOCATION, {"displayName": "a study"})
        transaction.add_job_and_consume_fault("3", CUSTOM_JOB, LOCATION, custom_job_spec(), study="2", trial=1)
        transaction.add_trial(Trial("2", 1, "REQUESTED", {}, "3"))
    yield database
    database.close()


def told(database: Database, act: Callable[[], object]) -> frozenset[str] | None:
    """What a watcher hears of an act."""

    async def watch() -> frozenset[str] | None:
        with database.changes.open_subscription() as watcher:
            act()
            return await watcher.wait_for_changed_ids_or_close(SHORT)

    return asyncio.run(watch())


def within(database: Database, work: Callable[[Transaction], object]) -> Callable[[], None]:
    def act() -> None:
        with database.write_transaction() as transaction:
            work(transaction)

    return act


def moved(transaction: Transaction, job_id: str) -> None:
    job = transaction.get_job(job_id)
    assert job is not None
    transaction.update_and_get_job(job, state=RUNNING)


def removed(transaction: Transaction, job_id: str) -> None:
    job = transaction.get_job(job_id)
    assert job is not None
    transaction.delete_job_with_trials(job)


@pytest.mark.parametrize(
    ("work", "jobs"),
    [
        (
            lambda transaction: transaction.add_job_and_consume_fault("4", CUSTOM_JOB, LOCATION, custom_job_spec()),
            {"4"},
        ),
        (lambda transaction: moved(transaction, "1"), {"1"}),
        (lambda transaction: moved(transaction, "3"), {"3", "2"}),
        (lambda transaction: transaction.update_trial(Trial("2", 1, "ACTIVE", {}, "3")), {"2"}),
        (lambda transaction: transaction.log_service_message("1", "Job is running."), {"1"}),
        (lambda transaction: transaction.log_service_message("3", "Job is running."), {"3", "2"}),
        (lambda transaction: removed(transaction, "2"), {"2", "3"}),
        (lambda transaction: transaction.set_setting("ready", "1"), set()),
    ],
)
def test_changes_name_their_job_and_study(
    database: Database, work: Callable[[Transaction], object], jobs: set[str]
) -> None:
    assert told(database, within(database, work)) == jobs


def test_nothing_is_told_before_the_change_is_there(database: Database) -> None:
    async def watch() -> None:
        with database.changes.open_subscription() as watcher:
            with database.write_transaction() as transaction:
                moved(transaction, "1")
                assert await watcher.wait_for_changed_ids_or_close(SHORT) == frozenset()
            assert await watcher.wait_for_changed_ids_or_close(SHORT) == {"1"}

    asyncio.run(watch())


def test_slow_watcher_gets_missed_changes_in_one_set(database: Database) -> None:
    def act() -> None:
        for _ in range(100):
            within(database, lambda transaction: transaction.log_service_message("1", "again"))()
        within(database, lambda transaction: transaction.log_service_message("3", "once"))()

    assert told(database, act) == {"1", "2", "3"}


def test_closing_releases_present_and_later_watchers(database: Database) -> None:
    assert told(database, database.changes.close) is None
    assert told(database, lambda: None) is None


def test_who_has_left_is_told_nothing_more(database: Database) -> None:
    left: list[Subscription] = []

    async def watch() -> None:
        with database.changes.open_subscription() as watcher:
            left.append(watcher)

    asyncio.run(watch())
    within(database, lambda transaction: moved(transaction, "1"))()  # its event loop is closed: telling it would fail


def test_the_file_keeps_nothing_of_it(database: Database, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "emulator.db") as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (0,)
    connection.close()
