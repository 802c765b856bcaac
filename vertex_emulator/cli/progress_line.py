"""A line on stderr that says how far long work is."""

import os
import sys
import time

_SECONDS_BEFORE_FIRST = 1.0
_SECONDS_BETWEEN = 0.2


class ProgressLine:
    """Shown on a terminal only, for work that takes longer than a second; removed when the block ends."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _SECONDS_BEFORE_FIRST if os.isatty(2) else float("inf")
        self._width = 0

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._overwrite_line("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def show_if_due(self, action: str, done: int, total: int) -> None:
        """Say what is done, with the share of `total`, or with the number if `total` is 0 because nobody knows it."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _SECONDS_BETWEEN
        self._overwrite_line(f"vertex-emulator: {action}: {f'{done * 100 // total}%' if total else f'{done:,}'}")

    def _overwrite_line(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)
