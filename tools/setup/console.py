"""What a set-up says: one line for every step, and signs of life in between."""

import shutil
from collections.abc import Callable
from typing import TextIO

FIRST_SIGN_SECONDS = 3
SIGN_EVERY_SECONDS = 30


class Console:
    """Writes lines to a stream; on a terminal the sign of life is one line that overwrites itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()

    def line(self, text: str) -> None:
        """Write one line that stays."""
        print(("\r\033[K" if self._terminal else "") + text, file=self._stream, flush=True)

    def progress(self, label: str) -> Callable[[float], None]:
        """A function to call again and again with the seconds passed, while `label` is going on.

        On a terminal it shows every second. Elsewhere (a CI log) it writes a line after 3 s, then every 30 s.
        """
        due = float(FIRST_SIGN_SECONDS)

        def sign(seconds: float) -> None:
            nonlocal due
            text = f"{label} ... {seconds:.0f} s"
            if self._terminal:
                width = shutil.get_terminal_size().columns - 1
                print(f"\r\033[K{text[:width]}", end="", file=self._stream, flush=True)
            elif seconds >= due:
                due = (seconds // SIGN_EVERY_SECONDS + 1) * SIGN_EVERY_SECONDS
                print(text, file=self._stream, flush=True)

        return sign
