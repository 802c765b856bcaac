"""The output of a set-up: one line for every step, and progress while a step runs."""

import shutil
from collections.abc import Callable
from typing import TextIO

FIRST_PROGRESS_SECONDS = 3
PROGRESS_INTERVAL_SECONDS = 30


class ProgressOutput:
    """Writes lines to a stream; on a terminal, progress is one line that is overwritten."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()

    def write_line(self, text: str) -> None:
        """Write one line that stays, over the progress on a terminal."""
        print(("\r\033[K" if self._is_terminal else "") + text, file=self._stream, flush=True)

    def create_seconds_callback(self, label: str) -> Callable[[float], None]:
        """Return a function to call again and again, with the seconds passed, while the work that `label` names runs.

        On a terminal it shows every call. Elsewhere (a CI log) it writes a line after 3 s, then every 30 s.
        """
        next_seconds = float(FIRST_PROGRESS_SECONDS)

        def show_progress(seconds: float) -> None:
            nonlocal next_seconds
            text = f"{label} ... {seconds:.0f} s"
            if self._is_terminal:
                width = shutil.get_terminal_size().columns - 1
                print(f"\r\033[K{text[:width]}", end="", file=self._stream, flush=True)
            elif seconds >= next_seconds:
                next_seconds = (seconds // PROGRESS_INTERVAL_SECONDS + 1) * PROGRESS_INTERVAL_SECONDS
                print(text, file=self._stream, flush=True)

        return show_progress
