"""How far an export or import is."""

import io
from collections.abc import Callable
from typing import IO

ReportProgress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much it is in all, 0 if that is unknown."""
_BYTES_PER_MEMBER = 6 << 10  # which take as long as the smallest member, so that many small files count too
_BUFFER_BYTES = 1 << 16


class Progress:
    """Counts the members and bytes of an archive of a known number and size, and reports them."""

    def __init__(self, report: ReportProgress, action: str, members: int, size: int) -> None:
        self._report, self._action = report, action
        self._done, self._total = 0, members * _BYTES_PER_MEMBER + size

    def add_member_and_report(self) -> None:
        """Count one more member, and report."""
        self._add_bytes_and_report(_BYTES_PER_MEMBER)

    def wrap_to_count_reads(self, file: IO[bytes]) -> IO[bytes]:
        """Return a file to be read in place of another one, which counts and reports what is read."""
        return io.BufferedReader(_CountedFile(file, self._add_bytes_and_report), _BUFFER_BYTES)

    def _add_bytes_and_report(self, size: int) -> None:
        self._done += size
        self._report(self._action, self._done, self._total)


class _CountedFile(io.RawIOBase):
    def __init__(self, file: IO[bytes], report_read_bytes: Callable[[int], None]) -> None:
        self._file, self._report_read_bytes = file, report_read_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader calls it with
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._report_read_bytes(len(data))
        return len(data)
