"""What SQLite says goes wrong, in words for a user."""

import sqlite3


def is_disk_full(error: sqlite3.Error) -> bool:
    """Whether a change failed because its disk has no room; the database is as it was before."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def describe_database_error(error: sqlite3.Error) -> str:
    """Why the database cannot be used."""
    if is_disk_full(error):
        return "The disk of the data folder is full: make room on it, and the emulator goes on by itself"
    return f"The emulator cannot use its database: {error}"
