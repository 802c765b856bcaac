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
            _write_lines_with_ascending_times(file, lines)
    except BaseException:
        # On a full disk a partial log would take the space that the next attempt needs.
        partial.unlink(missing_ok=True)
        raise
    partial.replace(path)


def is_log_saved(logs_folder: Path, job_id: str, replica: Replica) -> bool:
    """Return whether a replica's log is saved."""
    return _build_log_path(logs_folder, job_id, replica).exists()


def iterate_saved_log_or_none(
    logs_folder: Path, job_id: str, replica: Replica, since_ns: int = 0
) -> Iterator[LogLine] | None:
    """Read a saved log from `since_ns` (since 1970) on; None if there is none."""
    path = _build_log_path(logs_folder, job_id, replica)
    return _iterate_lines_oldest_first(path, since_ns) if path.exists() else None


def iterate_saved_log_reversed_or_none(
    logs_folder: Path, job_id: str, replica: Replica, last_ns: int
) -> Iterator[LogLine] | None:
    """Read a saved log up to and including `last_ns`, the newest line first; None if there is none."""
    path = _build_log_path(logs_folder, job_id, replica)
    return _iterate_lines_newest_first(path, last_ns) if path.exists() else None


def iterate_reversed_log_up_to(lines: Iterable[LogLine], last_ns: int) -> Iterator[LogLine]:
    """Reverse lines up to and including `last_ns`, through a temporary file. Raises OSError."""
    with tempfile.NamedTemporaryFile() as file:
        _write_lines_with_ascending_times(file, lines)
        file.flush()
        yield from _iterate_lines_newest_first(Path(file.name), last_ns)


def _write_lines_with_ascending_times(file: IO[bytes], lines: Iterable[LogLine]) -> None:
    latest = 0
    for line in lines:
        # The clock may have been set back in between, and binary search needs an order.
        latest = max(latest, line.at)
        file.write(json.dumps([latest, line.stream, line.text]).encode() + b"\n")


def _iterate_lines_oldest_first(path: Path, since_ns: int) -> Iterator[LogLine]:
    at = 0
    while True:
        try:
            with path.open("rb") as file:
                if at == 0 and since_ns:
                    at = _find_offset_of_time(file, since_ns)
                file.seek(at)
                block = file.readlines(_BLOCK_BYTES)
        except FileNotFoundError:  # the job was deleted meanwhile
            return
        if not block:
            return
        at += sum(map(len, block))
        yield from map(_decode_line, block)


def _iterate_lines_newest_first(path: Path, last_ns: int) -> Iterator[LogLine]:
    end: int | None = None
    while end != 0:
        try:
            with path.open("rb") as file:
                if end is None:
                    end = _find_offset_of_time(file, last_ns + 1)
                start = _find_line_start(file, max(end - _BLOCK_BYTES, 0))
                file.seek(start)
                block = file.read(end - start)
        except FileNotFoundError:  # the job was deleted meanwhile
            return
        yield from map(_decode_line, reversed(block.splitlines()))
        end = start


def _find_offset_of_time(file: IO[bytes], since_ns: int) -> int:
    """Find the offset of the first line at or after `since_ns` by binary search."""
    low, high = 0, file.seek(0, 2)
    while low < high:
        middle = _find_line_start(file, (low + high) // 2)
        file.seek(middle)
        raw_line = file.readline()
        if _decode_line(raw_line).at < since_ns:
            low = middle + len(raw_line)
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


def _decode_line(raw_line: bytes) -> LogLine:
    return LogLine(*json.loads(raw_line))


def _build_log_path(logs_folder: Path, job_id: str, replica: Replica) -> Path:
    return logs_folder / job_id / f"{replica.task_name}.{replica.attempt}.jsonl"
