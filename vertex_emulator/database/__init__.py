"""The SQLite file that holds every job, trial, service line and operation."""

from vertex_emulator.database.connection import SCHEMA_VERSION, SNAPSHOT_SCHEMA_VERSION, Database, Transaction

__all__ = ["SCHEMA_VERSION", "SNAPSHOT_SCHEMA_VERSION", "Database", "Transaction"]
