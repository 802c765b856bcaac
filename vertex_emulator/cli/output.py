"""What commands write beside their result: notes, the progress of long work, and nothing once nobody reads it."""

import contextlib
import os
import sys
import time

_SECONDS_BEFORE_FIRST = 1.0
_SECONDS_BETWEEN = 0.2
_SECONDS_BETWEEN_LINES = 60.0  # where nobody can overwrite a line


def note(text: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"vertex-emulator: {text}\n")


def discard() -> None:
    """Send what is still written to stdout nowhere, as behind `| head`: Python would fail when it flushes at exit."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class ProgressLine:
    """A line on a terminal, for work that takes longer than a second; removed when the block ends.

    Elsewhere, as in the log of a CI job, it is a further line each minute.
    """

    def __init__(self) -> None:
        self._is_terminal = os.isatty(2)
        self._next = time.monotonic() + (_SECONDS_BEFORE_FIRST if self._is_terminal else _SECONDS_BETWEEN_LINES)
        self._width = 0

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._overwrite("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def show(self, action: str, done: int, total: int) -> None:
        """Say what is done, with the share of `total`, or with the number if `total` is 0 because nobody knows it."""
        now = time.monotonic()
        if now < self._next:
            return
        text = f"{action}: {f'{done * 100 // total}%' if total else f'{done:,}'}"
        self._next = now + (_SECONDS_BETWEEN if self._is_terminal else _SECONDS_BETWEEN_LINES)
        if self._is_terminal:
            self._overwrite(f"vertex-emulator: {text}")
        else:
            note(text)

    def _overwrite(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)
