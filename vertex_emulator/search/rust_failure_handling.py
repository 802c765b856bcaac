"""The handling of failures in Rust code (egobox's): errors and panics give no result, and panics print nothing."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_STDERR = 2
_stderr_lock = threading.Lock()
Result = TypeVar("Result")


def get_result_unless_rust_fails(work: Callable[[], Result]) -> Result | None:
    """Return the result of `work`; None if its Rust code fails or panics."""
    try:
        with _suppress_panic_output():
            return work()
    except RuntimeError:
        return None
    except BaseException as failure:
        # A Rust panic is no `Exception`, and its class cannot be imported.
        if type(failure).__name__ != "PanicException":
            raise
        return None


@contextmanager
def _suppress_panic_output() -> Iterator[None]:
    """Keep Rust's panic message, which goes straight to file descriptor 2, off standard error.

    The descriptor belongs to the whole process: what other threads write to it meanwhile is captured and passed on.
    """
    with _stderr_lock, tempfile.TemporaryFile() as captured:
        stderr = os.dup(_STDERR)
        os.dup2(captured.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(stderr, _STDERR)
            os.close(stderr)
        captured.seek(0)
        os.write(_STDERR, captured.read())
