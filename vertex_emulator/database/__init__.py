"""The SQLite file that holds every job, trial, service line and operation."""

from emulator.store.store import SCHEMA_VERSION, Store
from emulator.store.transaction import Transaction

__all__ = ["SCHEMA_VERSION", "Store", "Transaction"]
