"""A transaction, which has all statements: those on jobs, trials and settings itself, and other ones as its parts."""

import sqlite3

from vertex_emulator.database.injected_fault_statements import InjectedFaults
from vertex_emulator.database.job_queue_statements import JobQueue
from vertex_emulator.database.job_statements import JobStatements
from vertex_emulator.database.model_statements import Models
from vertex_emulator.database.operation_statements import Operations
from vertex_emulator.database.pipeline_progress_statements import Pipelines
from vertex_emulator.database.pruning_statements import Pruning
from vertex_emulator.database.schedule_statements import Schedules
from vertex_emulator.database.setting_statements import SettingStatements
from vertex_emulator.database.snapshot_table_statements import TableRows
from vertex_emulator.database.trial_statements import TrialStatements


class Transaction(JobStatements, TrialStatements, SettingStatements):
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
