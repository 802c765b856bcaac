import sqlite3
from pathlib import Path

import pytest

from vertex_emulator.database import SCHEMA_VERSION, SNAPSHOT_SCHEMA_VERSION, Database, database
from vertex_emulator.errors import StartError

OLDER, NEWER = r"an older emulator .*reset --data ", "a newer emulator .*: upgrade"


@pytest.mark.parametrize(("version", "remedy"), [(1, OLDER), (3, OLDER), (SCHEMA_VERSION + 1, NEWER)])
def test_other_schema_versions_are_rejected_with_the_remedy(tmp_path: Path, version: int, remedy: str) -> None:
    path = tmp_path / "emulator.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StartError, match=remedy):
        Database(path)


def test_a_new_database_is_opened_again(tmp_path: Path) -> None:
    for _ in range(2):
        database = Database(tmp_path / "emulator.db")
        with database.write_transaction() as transaction:
            transaction.set_setting("port", "8080")
            assert transaction.find_setting("port") == "8080"
        database.close()


def test_a_database_without_schedules_keeps_its_jobs(tmp_path: Path) -> None:
    """As a checkout has written it that had no schedules yet."""
    path = tmp_path / "emulator.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(Path(database.__file__).with_name("schema.sql").read_text())
        connection.execute(f"PRAGMA user_version = {SNAPSHOT_SCHEMA_VERSION}")
        connection.execute("INSERT INTO settings VALUES ('port', '8080')")
    for _ in range(2):
        opened = Database(path)
        with opened.read_transaction() as transaction:
            assert transaction.find_setting("port") == "8080"
            assert transaction.schedules.list_schedules() == []
        opened.close()
