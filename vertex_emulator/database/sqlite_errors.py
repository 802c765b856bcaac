"""SQLite's errors, explained to users."""

import sqlite3


def is_disk_full(error: sqlite3.Error) -> bool:
    """Return whether a change failed because the disk is full; the database is unchanged."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def describe_database_error(error: sqlite3.Error) -> str:
    """Describe why the database cannot be used."""
    if is_disk_full(error):
        return "The disk of the data folder is full: make room on it, and the emulator goes on by itself"
    return f"The emulator cannot use its database: {error}"
