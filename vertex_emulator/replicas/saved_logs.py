"""Saved logs of containers: one file of JSON lines per replica and attempt, in order of time.

Read in both directions from any moment without reading what lies before it, and without an open file between two
reads: a study has thousands of logs.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from vertex_emulator.database.records import Replica
from vertex_emulator.replicas.executor import LogLine

_BLOCK_BYTES = 64 << 10


def save_log(root: Path, job: str, replica: Replica, lines: Iterable[LogLine]) -> None:
    """Write a replica's whole log, all of it or nothing. Raises OSError."""
    path = _path(root, job, replica)
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            _write(file, lines)
    except BaseException:
        # On a full disk half a log would take the room that the next try needs.
        partial.unlink(missing_ok=True)
        raise
    partial.replace(path)


def is_saved(root: Path, job: str, replica: Replica) -> bool:
    """Whether a replica's log is here."""
    return _path(root, job, replica).exists()


def read_saved_log(root: Path, job: str, replica: Replica, since: int = 0) -> Iterator[LogLine] | None:
    """A saved log from `since` (nanoseconds since 1970) on; None when there is none."""
    path = _path(root, job, replica)
    return _forward(path, since) if path.exists() else None


def read_saved_log_backward(root: Path, job: str, replica: Replica, until: int) -> Iterator[LogLine] | None:
    """A saved log up to and with `until`, the newest line first; None when there is none."""
    path = _path(root, job, replica)
    return _backward(path, until) if path.exists() else None


def reverse_log(lines: Iterable[LogLine], until: int) -> Iterator[LogLine]:
    """Any lines up to and with `until`, the newest first; they wait in a file, not in memory. Raises OSError."""
    with tempfile.NamedTemporaryFile() as file:
        _write(file, lines)
        file.flush()
        yield from _backward(Path(file.name), until)


def _write(file: IO[bytes], lines: Iterable[LogLine]) -> None:
    latest = 0
    for line in lines:
        # The machine's clock may have been set back in between; looking for a moment needs an order.
        latest = max(latest, line.at)
        file.write(json.dumps([latest, line.stream, line.text]).encode() + b"\n")


def _forward(path: Path, since: int) -> Iterator[LogLine]:
    at = 0
    while True:
        try:
            with path.open("rb") as file:
                if at == 0 and since:
                    at = _position(file, since)
                file.seek(at)
                block = file.readlines(_BLOCK_BYTES)
        except FileNotFoundError:  # the job was deleted meanwhile
            return
        if not block:
            return
        at += sum(map(len, block))
        yield from map(_line, block)


def _backward(path: Path, until: int) -> Iterator[LogLine]:
    end: int | None = None
    while end != 0:
        try:
            with path.open("rb") as file:
                if end is None:
                    end = _position(file, until + 1)
                start = _line_start(file, max(end - _BLOCK_BYTES, 0))
                file.seek(start)
                block = file.read(end - start)
        except FileNotFoundError:  # the job was deleted meanwhile
            return
        yield from map(_line, reversed(block.splitlines()))
        end = start


def _position(file: IO[bytes], since: int) -> int:
    """The offset of the first line at or after `since`, found by halving."""
    low, high = 0, file.seek(0, 2)
    while low < high:
        middle = _line_start(file, (low + high) // 2)
        file.seek(middle)
        text = file.readline()
        if _line(text).at < since:
            low = middle + len(text)
        else:
            high = middle
    return low


def _line_start(file: IO[bytes], near: int) -> int:
    """The start of the line that holds offset `near`."""
    step = 256
    while near > 0:
        begin = max(near - step, 0)
        file.seek(begin)
        before = file.read(near - begin).rfind(b"\n")
        if before >= 0:
            return begin + before + 1
        near, step = begin, min(step * 2, _BLOCK_BYTES)
    return 0


def _line(text: bytes) -> LogLine:
    return LogLine(*json.loads(text))


def _path(root: Path, job: str, replica: Replica) -> Path:
    return root / job / f"{replica.task}.{replica.attempt}.jsonl"
