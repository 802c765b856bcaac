"""A live set of the ids of changed jobs, which SQLite triggers fill."""

import sqlite3

# Temporary triggers belong to the connection; the file does not change.
_TRIGGERS = """
CREATE TEMP TRIGGER job_added AFTER INSERT ON jobs BEGIN SELECT job_changed(NEW.id), job_changed(NEW.study); END;
CREATE TEMP TRIGGER job_moved AFTER UPDATE ON jobs BEGIN SELECT job_changed(NEW.id), job_changed(NEW.study); END;
CREATE TEMP TRIGGER job_removed AFTER DELETE ON jobs BEGIN SELECT job_changed(OLD.id), job_changed(OLD.study); END;
CREATE TEMP TRIGGER trial_added AFTER INSERT ON trials BEGIN SELECT job_changed(NEW.study); END;
CREATE TEMP TRIGGER trial_moved AFTER UPDATE ON trials BEGIN SELECT job_changed(NEW.study); END;
CREATE TEMP TRIGGER message_added AFTER INSERT ON service_messages
BEGIN SELECT job_changed(id), job_changed(study) FROM jobs WHERE id = NEW.job; END;
"""


def create_live_set_of_changed_job_ids(connection: sqlite3.Connection) -> set[str]:
    """Return a set to which every statement on the connection adds the ids of the jobs that it changes."""
    changed_ids: set[str] = set()

    def add_id(job_id: str | None) -> None:
        if job_id is not None:
            changed_ids.add(job_id)

    connection.create_function("job_changed", 1, add_id)
    connection.executescript(_TRIGGERS)
    return changed_ids
