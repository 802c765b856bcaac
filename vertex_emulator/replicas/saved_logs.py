"""Saved logs of containers: one file of JSON lines per replica and attempt, in order of time.

They are read in both directions from any time by binary search, and no file stays open between two reads, because a
study has thousands of logs.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from vertex_emulator.database.records import Replica
from vertex_emulator.replicas.executor_protocol import LogLine

_BLOCK_BYTES = 64 << 10


def save_log(logs_folder: Path, job_id: str, replica: Replica, lines: Iterable[LogLine]) -> None:
    """Write a replica's whole log atomically. Raises OSError."""
    path = _build_log_path(logs_folder, job_id, replica)
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            _write_lines(file, lines)
    except BaseException:
        # On a full disk a partial log would take the space that the next attempt needs.
        partial.unlink(missing_ok=True)
        raise
    partial.replace(path)


def is_log_saved(logs_folder: Path, job_id: str, replica: Replica) -> bool:
    """Return whether a replica's log is saved."""
    return _build_log_path(logs_folder, job_id, replica).exists()


def get_saved_log(logs_folder: Path, job_id: str, replica: Replica, since: int = 0) -> Iterator[LogLine] | None:
    """Read a saved log from `since` (ns since 1970) on; None if there is none."""
    path = _build_log_path(logs_folder, job_id, replica)
    return _read_forward(path, since) if path.exists() else None


def get_saved_log_backward(logs_folder: Path, job_id: str, replica: Replica, until: int) -> Iterator[LogLine] | None:
    """Read a saved log up to and including `until` (ns), the newest line first; None if there is none."""
    path = _build_log_path(logs_folder, job_id, replica)
    return _read_backward(path, until) if path.exists() else None


def reverse_log(lines: Iterable[LogLine], until: int) -> Iterator[LogLine]:
    """Reverse lines up to and including `until` (ns), through a temporary file. Raises OSError."""
    with tempfile.NamedTemporaryFile() as file:
        _write_lines(file, lines)
        file.flush()
        yield from _read_backward(Path(file.name), until)


def _write_lines(file: IO[bytes], lines: Iterable[LogLine]) -> None:
    latest = 0
    for line in lines:
        # The clock may have been set back in between, and binary search needs an order.
        latest = max(latest, line.at)
        file.write(json.dumps([latest, line.stream, line.text]).encode() + b"\n")


def _read_forward(path: Path, since: int) -> Iterator[LogLine]:
    at = 0
    while True:
        try:
            with path.open("rb") as file:
                if at == 0 and since:
                    at = _find_offset(file, since)
                file.seek(at)
                block = file.readlines(_BLOCK_BYTES)
        except FileNotFoundError:  # the job was deleted meanwhile
            return
        if not block:
            return
        at += sum(map(len, block))
        yield from map(_parse_line, block)


def _read_backward(path: Path, until: int) -> Iterator[LogLine]:
    end: int | None = None
    while end != 0:
        try:
            with path.open("rb") as file:
                if end is None:
                    end = _find_offset(file, until + 1)
                start = _find_line_start(file, max(end - _BLOCK_BYTES, 0))
                file.seek(start)
                block = file.read(end - start)
        except FileNotFoundError:  # the job was deleted meanwhile
            return
        yield from map(_parse_line, reversed(block.splitlines()))
        end = start


def _find_offset(file: IO[bytes], since: int) -> int:
    """Find the offset of the first line at or after `since` by binary search."""
    low, high = 0, file.seek(0, 2)
    while low < high:
        middle = _find_line_start(file, (low + high) // 2)
        file.seek(middle)
        text = file.readline()
        if _parse_line(text).at < since:
            low = middle + len(text)
        else:
            high = middle
    return low


def _find_line_start(file: IO[bytes], offset: int) -> int:
    """Find the start of the line that contains an offset."""
    step = 256
    while offset > 0:
        begin = max(offset - step, 0)
        file.seek(begin)
        before = file.read(offset - begin).rfind(b"\n")
        if before >= 0:
            return begin + before + 1
        offset, step = begin, min(step * 2, _BLOCK_BYTES)
    return 0


def _parse_line(text: bytes) -> LogLine:
    return LogLine(*json.loads(text))


def _build_log_path(logs_folder: Path, job_id: str, replica: Replica) -> Path:
    return logs_folder / job_id / f"{replica.task}.{replica.attempt}.jsonl"
