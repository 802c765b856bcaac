"""A transaction: the statements on jobs and settings, and those on other things as its parts."""

import sqlite3

from vertex_emulator.database.injected_fault_statements import InjectedFaults
from vertex_emulator.database.job_and_trial_statements import JobAndTrialStatements
from vertex_emulator.database.job_queue_statements import JobQueue
from vertex_emulator.database.model_statements import Models
from vertex_emulator.database.operation_statements import Operations
from vertex_emulator.database.pipeline_progress_statements import Pipelines
from vertex_emulator.database.pruning_statements import Pruning
from vertex_emulator.database.schedule_statements import Schedules
from vertex_emulator.database.snapshot_table_statements import TableRows


class Transaction(JobAndTrialStatements):
    """All statements of a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.injected_faults = InjectedFaults(connection)
        self.queue = JobQueue(connection)
        self.models = Models(connection)
        self.operations = Operations(connection)
        self.pipelines = Pipelines(connection)
        self.pruning = Pruning(connection)
        self.rows = TableRows(connection)
        self.schedules = Schedules(connection)

    def find_setting(self, key: str) -> str | None:
        """Return a setting of the data folder; None if it was never set."""
        row = self._select_first("SELECT value FROM settings WHERE key = ?", key)
        return row["value"] if row else None

    def set_setting(self, key: str, value: str) -> None:
        """Store a setting of the data folder."""
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, value))

    def remove_setting(self, key: str) -> None:
        """Remove a setting of the data folder, as if it had never been set."""
        self._connection.execute("DELETE FROM settings WHERE key = ?", (key,))
