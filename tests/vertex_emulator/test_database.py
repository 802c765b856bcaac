"""The database: which versions of its file are opened, and who hears of changed jobs."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.vertex_emulator.jobs import LOCATION, custom_job_spec
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database import SCHEMA_VERSION, SNAPSHOT_SCHEMA_VERSION, Database, Transaction, connection
from vertex_emulator.database.connection import Subscription
from vertex_emulator.database.records import RUNNING, Trial
from vertex_emulator.errors import StartError

SHORT = 0.01


OLDER, NEWER = r"an older emulator .*reset --data ", "a newer emulator .*: upgrade"


@pytest.mark.parametrize(("version", "remedy"), [(1, OLDER), (3, OLDER), (SCHEMA_VERSION + 1, NEWER)])
def test_other_versions_are_refused_with_a_remedy(tmp_path: Path, version: int, remedy: str) -> None:
    path = tmp_path / "emulator.db"
    with sqlite3.connect(path) as file:
        file.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StartError, match=remedy):
        Database(path)


def test_a_new_database_is_opened_again(tmp_path: Path) -> None:
    for _ in range(2):
        database = Database(tmp_path / "emulator.db")
        with database.write() as transaction:
            transaction.settings.set("port", "8080")
            assert transaction.settings.get("port") == "8080"
        database.close()


@pytest.mark.parametrize("version", range(SNAPSHOT_SCHEMA_VERSION, SCHEMA_VERSION))
def test_an_older_database_keeps_its_jobs(tmp_path: Path, version: int) -> None:
    """As a checkout has written it that had no schedules yet, or no tensorboards."""
    path = tmp_path / "emulator.db"
    with sqlite3.connect(path) as file:
        for added, script in connection.SCRIPTS.items():
            if added <= version:
                file.executescript(Path(connection.__file__).with_name(script).read_text())
        file.execute(f"PRAGMA user_version = {version}")
        file.execute("INSERT INTO settings VALUES ('port', '8080')")
    for _ in range(2):
        database = Database(path)
        with database.read() as transaction:
            assert transaction.settings.get("port") == "8080"
            assert transaction.schedules.all() == []
            assert transaction.tensorboards.of("projects/1/locations/r/tensorboards") == []
        database.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database with the custom job `1`, and the study `2` whose trial 1 is the job `3`."""
    database = Database(tmp_path / "emulator.db")
    with database.write() as transaction:
        transaction.jobs.add("1", CUSTOM_JOB, LOCATION, custom_job_spec())
        transaction.jobs.add("2", HYPERPARAMETER_TUNING_JOB, LOCATION, {"displayName": "a study"})
        transaction.jobs.add("3", CUSTOM_JOB, LOCATION, custom_job_spec(), study="2", trial=1)
        transaction.trials.add(Trial("2", 1, "REQUESTED", {}, "3"))
    yield database
    database.close()


def told(database: Database, act: Callable[[], object]) -> frozenset[str] | None:
    """What a watcher hears of an act."""

    async def watch() -> frozenset[str] | None:
        with database.changes.subscribe() as watcher:
            act()
            return await watcher.wait(SHORT)

    return asyncio.run(watch())


def within(database: Database, work: Callable[[Transaction], object]) -> Callable[[], None]:
    def act() -> None:
        with database.write() as transaction:
            work(transaction)

    return act


def moved(transaction: Transaction, job_id: str) -> None:
    job = transaction.jobs.get(job_id)
    assert job is not None
    transaction.jobs.update(job, state=RUNNING)


@pytest.mark.parametrize(
    ("work", "jobs"),
    [
        (lambda transaction: transaction.jobs.add("4", CUSTOM_JOB, LOCATION, custom_job_spec()), {"4"}),
        (lambda transaction: moved(transaction, "1"), {"1"}),
        (lambda transaction: moved(transaction, "3"), {"3", "2"}),
        (lambda transaction: transaction.trials.update(Trial("2", 1, "ACTIVE", {}, "3")), {"2"}),
        (lambda transaction: transaction.jobs.log("1", "Job is running."), {"1"}),
        (lambda transaction: transaction.jobs.log("3", "Job is running."), {"3", "2"}),
        (lambda transaction: transaction.jobs.delete("2"), {"2", "3"}),
        (lambda transaction: transaction.settings.set("ready", "1"), set()),
    ],
)
def test_changes_name_their_job_and_study(
    database: Database, work: Callable[[Transaction], object], jobs: set[str]
) -> None:
    assert told(database, within(database, work)) == jobs


def test_nothing_is_told_before_the_change_is_there(database: Database) -> None:
    async def watch() -> None:
        with database.changes.subscribe() as watcher:
            with database.write() as transaction:
                moved(transaction, "1")
                assert await watcher.wait(SHORT) == frozenset()
            assert await watcher.wait(SHORT) == {"1"}

    asyncio.run(watch())


def test_slow_watcher_gets_missed_changes_in_one_set(database: Database) -> None:
    def act() -> None:
        for _ in range(100):
            within(database, lambda transaction: transaction.jobs.log("1", "again"))()
        within(database, lambda transaction: transaction.jobs.log("3", "once"))()

    assert told(database, act) == {"1", "2", "3"}


def test_closing_releases_present_and_later_watchers(database: Database) -> None:
    assert told(database, database.changes.close) is None
    assert told(database, lambda: None) is None


def test_who_has_left_is_told_nothing_more(database: Database) -> None:
    left: list[Subscription] = []

    async def watch() -> None:
        with database.changes.subscribe() as watcher:
            left.append(watcher)

    asyncio.run(watch())
    within(database, lambda transaction: moved(transaction, "1"))()  # its event loop is closed: telling it would fail


def test_the_file_keeps_nothing_of_it(database: Database, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "emulator.db") as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (0,)
    connection.close()


def test_changes_within_a_millisecond_have_their_etags(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vertex_emulator.database.records.now_ns", lambda: 10**18)
    with database.write() as transaction:
        node = transaction.lineage.add("projects/1/locations/r/metadataStores/default", {})
        assert node is not None
        etags = [int(node.etag)]
        for count in range(3):
            node = transaction.lineage.set_spec(node, {"description": str(count)})
            etags.append(int(node.etag))
        assert transaction.lineage.get(node.name) == node
    assert etags == [10**12 + count for count in range(4)]
