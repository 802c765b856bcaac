"""A store that an earlier version wrote is used on, with all that is in it."""

import sqlite3
from pathlib import Path

from emulator.records import Restarts
from emulator.store import SCHEMA_VERSION, Store
from tests.emulator.jobs import LOCATION, custom_job_spec
from vertex.kinds import CUSTOM_JOB

VERSION_1 = Path(__file__).with_name("version1.sql")


def test_a_store_of_version_1_keeps_its_jobs_and_takes_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "emulator.db"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1.read_text())
    connection.close()
    store = Store(path)
    with store.transaction() as change:
        job = change.job("3078149118468099168")
        assert job is not None
        assert (job.state, job.restarts, job.fault) == ("JOB_STATE_QUEUED", Restarts(), None)
        assert [waiting.id for waiting in change.queue.heads(4)] == [job.id]
        assert change.injections.waiting() == []
        change.add_job("1", CUSTOM_JOB, LOCATION, custom_job_spec(), 1)
        assert [waiting.id for waiting in change.queue.heads(4)] == [job.id, "1"]
    store.close()


def test_a_store_that_was_brought_up_to_date_is_like_one_made_now(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript(VERSION_1.read_text())
    connection.close()
    shapes = []
    for name in ("old.db", "new.db"):
        Store(tmp_path / name).close()
        connection = sqlite3.connect(tmp_path / name)
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        tables = connection.execute("SELECT name FROM sqlite_schema ORDER BY name").fetchall()
        shapes.append([(table, connection.execute(f"PRAGMA table_info({table[0]})").fetchall()) for table in tables])
        connection.close()
    assert shapes[0] == shapes[1]
