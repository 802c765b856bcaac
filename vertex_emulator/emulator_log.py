"""The emulator's own log, of limited size: other users, containers and clients can make it write lines without end."""

import logging
import os
import sys
import time
from pathlib import Path

MAX_BYTES = 10 << 20
"""Of `emulator.log`, and of the one before it, `emulator.log.1`."""
MAX_REPEATS = 100
"""How many lines of one form are written within a minute."""
_MINUTE = 60.0
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def configure(file: Path) -> None:
    """Log to stderr, which is `file` if the emulator was started in the background: then the file is replaced."""
    logging.basicConfig(level=logging.INFO, format=_FORMAT, handlers=[EmulatorLog(file)])


class EmulatorLog(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes log lines to stderr; of those of one form, which differ in their arguments only, no more than a few."""

    def __init__(self, file: Path, max_bytes: int = MAX_BYTES, max_repeats: int = MAX_REPEATS) -> None:
        super().__init__(sys.stderr)
        self._file, self._max_bytes, self._max_repeats = file, max_bytes, max_repeats
        self._begin = time.monotonic()
        self._written: dict[tuple[str, str], int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless there have been too many like it."""
        if time.monotonic() - self._begin > _MINUTE:
            self._begin = time.monotonic()
            self._end_minute()
        form = record.name, str(record.msg)
        count = self._written[form] = self._written.get(form, 0) + 1
        if count <= self._max_repeats:
            super().emit(record)
            self._rotate()

    def _end_minute(self) -> None:
        written, self._written = self._written, {}
        for (name, form), count in written.items():
            if count > self._max_repeats:
                text = "%s more lines are left out like this one: %s"
                arguments = (count - self._max_repeats, form)
                super().emit(logging.LogRecord(name, logging.WARNING, __file__, 0, text, arguments, None))

    def _rotate(self) -> None:
        """Go on in a new file if this one is full. What else this process writes to stderr goes there, too."""
        try:
            status = os.fstat(self.stream.fileno())
            if status.st_size <= self._max_bytes or not os.path.samestat(status, self._file.stat()):
                return
            self._file.replace(self._file.with_name(f"{self._file.name}.1"))
            with self._file.open("ab") as file:
                os.dup2(file.fileno(), self.stream.fileno())
        except (OSError, ValueError):  # a stream without a descriptor, a full disk: the next line tries again
            return
