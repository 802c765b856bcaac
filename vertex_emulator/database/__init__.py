"""The SQLite file that holds every job, trial, service line and operation."""

from vertex_emulator.database.store import SCHEMA_VERSION, Store
from vertex_emulator.database.transaction import Transaction

__all__ = ["SCHEMA_VERSION", "Store", "Transaction"]
