import sqlite3
from pathlib import Path

import pytest

from tests.vertex_emulator.jobs import LOCATION, custom_job_spec
from vertex_api.kinds import CUSTOM_JOB, TRAINING_PIPELINE
from vertex_emulator.database import SCHEMA_VERSION, Store
from vertex_emulator.database import store as module
from vertex_emulator.database.records import Restarts
from vertex_emulator.errors import StartError

VERSION_1 = Path(__file__).with_name("version1.sql")


def schema(path: Path) -> list[tuple[str, str]]:
    """Names and columns of tables and indices."""
    with sqlite3.connect(path) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")]
        return sorted((name, str(connection.execute(f"PRAGMA table_info({name})").fetchall())) for name in names)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store that version 1 wrote, with a job and an operation."""
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(VERSION_1.read_text())
        connection.execute(
            "INSERT INTO jobs (id, collection, project, number, region, spec, state, created, updated, slots)"
            " VALUES ('1', 'customJobs', 'p', '123', 'r', '{\"displayName\": \"x\"}', 'JOB_STATE_SUCCEEDED', 5, 6, 1)"
        )
        connection.execute("INSERT INTO operations VALUES ('projects/123/locations/r/customJobs/0/operations/9', 7)")
    return path


def test_a_store_of_version_1_is_brought_up_to_date_and_loses_nothing(old: Path, tmp_path: Path) -> None:
    store = Store(old)
    with store.transaction() as change:
        job = change.job("1")
        operation = change.operations.get("projects/123/locations/r/customJobs/0/operations/9")
        change.add_job("2", TRAINING_PIPELINE, LOCATION, {"displayName": "p"}, 0)
        change.add_job("3", CUSTOM_JOB, LOCATION, custom_job_spec(), 1)
        change.pipelines.start("2", "3")
        change.models.add("m", LOCATION, {"displayName": "m"})
    store.close()
    assert job is not None
    assert (job.spec["displayName"], job.state) == ("x", "JOB_STATE_SUCCEEDED")
    assert operation is not None
    assert (operation.created, operation.metadata_type) == (7, "DeleteOperationMetadata")
    assert operation.response == {"@type": "type.googleapis.com/google.protobuf.Empty"}
    Store(tmp_path / "new.db").close()
    assert schema(old) == schema(tmp_path / "new.db")
    Store(old).close()


def test_a_job_that_waited_in_a_store_of_version_1_waits_on(old: Path) -> None:
    store = Store(old)
    with store.transaction() as change:
        job = change.job("3078149118468099168")
        assert job is not None
        assert (job.state, job.restarts, job.fault) == ("JOB_STATE_QUEUED", Restarts(), None)
        assert [waiting.id for waiting in change.queue.heads(4)] == [job.id]
        assert change.injections.waiting() == []
        change.add_job("4", CUSTOM_JOB, LOCATION, custom_job_spec(), 1)
        assert [waiting.id for waiting in change.queue.heads(4)] == [job.id, "4"]
    store.close()


def test_a_migration_that_breaks_leaves_the_store_as_it_was(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = schema(old)
    monkeypatch.setattr(module, "_FROM_1_TO_2", ["CREATE TABLE more (a);", "NO SUCH STATEMENT;"])
    with pytest.raises(StartError):
        Store(old)
    assert schema(old) == before


def test_a_store_of_a_newer_emulator_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StartError, match="newer emulator"):
        Store(path)
