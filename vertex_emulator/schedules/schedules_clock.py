"""The clock of schedules: that of the machine, or one that a test has set, which stands until it is moved."""

from vertex_emulator.database import Transaction
from vertex_emulator.timestamps import now_ns

_SETTING = "schedules_clock"


def read_clock(transaction: Transaction) -> int:
    """Return the time for schedules, in ns since 1970."""
    text = transaction.find_setting(_SETTING)
    return now_ns() if text is None else int(text)


def is_clock_set(transaction: Transaction) -> bool:
    """Return whether the clock stands at a time that was set."""
    return transaction.find_setting(_SETTING) is not None


def set_clock(transaction: Transaction, time: int) -> None:
    """Let the clock stand at a time (ns since 1970)."""
    transaction.set_setting(_SETTING, str(time))


def unset_clock(transaction: Transaction) -> None:
    """Use the machine's clock again."""
    transaction.remove_setting(_SETTING)
