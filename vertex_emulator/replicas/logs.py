"""Logs of replicas: what the daemon has of a container, what it may have dropped, and what is saved once a job ends."""

import heapq
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from vertex_emulator.database.records import Replica
from vertex_emulator.replicas import daemon
from vertex_emulator.times import parse_time

MAX_LINE_BYTES = 256 << 10
"""The size of an entry that Cloud Logging takes (its page on quotas). A longer line becomes several."""
MIN_LIMIT_BYTES = 1 << 20
_BLOCK_BYTES = 64 << 10
_FRAME_BYTES = 16 << 10  # Docker stores a longer line in several parts
_OVERHEAD_BYTES = len('{"log":"\\n","stream":"stdout","time":"2026-11-22T14:00:00.123456789Z"}\n')
_LONGER_IN_DOCKER = (("<", 5), (">", 5), ("&", 5), ("\t", 4), ("\u2028", 3), ("\u2029", 3), ("\ufffd", 3))


@dataclass(frozen=True)
class LogLine:
    """One line that a container wrote: `at` in nanoseconds since 1970, `stream` is `o` (stdout) or `e` (stderr)."""

    at: int
    stream: str
    text: str


def read_container(call: daemon.Call, container: str, since_ns: int) -> Iterator[LogLine]:
    """Read what a container wrote at or after `since_ns`, both streams in order of time; nothing if it is removed."""
    streams = [_read_stream(call, container, stream, since_ns) for stream in ("o", "e")]
    return heapq.merge(*streams, key=lambda line: line.at)


def _read_stream(call: daemon.Call, container: str, stream: str, since_ns: int) -> Iterator[LogLine]:
    options = {"stdout": stream == "o", "stderr": stream == "e", "since": since_ns // 10**9 or None}
    with daemon.translate_errors():
        frames: Iterator[bytes] = iter(())
        with daemon.ignore(404, 409):  # 409: it is being removed
            frames = call(lambda client: client.logs(container, timestamps=True, stream=True, follow=False, **options))
        yield from (line for line in _join(frames, stream) if line.at >= since_ns)


def _join(frames: Iterator[bytes], stream: str) -> Iterator[LogLine]:
    """Join log frames to lines: Docker splits a long line, each frame has a time, only the last one a newline."""
    at, text = 0, b""
    for frame in frames:
        stamp, _, piece = frame.partition(b" ")
        if len(text) + len(piece) > MAX_LINE_BYTES:
            yield LogLine(at, stream, text.decode(errors="replace"))
            text = b""
        if not text:
            at = parse_time(stamp.decode()) or 0
        text += piece
        if text.endswith(b"\n"):
            yield LogLine(at, stream, text[:-1].decode(errors="replace").rstrip("\r"))
            text = b""
    if text:
        yield LogLine(at, stream, text.decode(errors="replace"))


class SizeCounter:
    """Counts the size of lines as Docker stores them, in a file of which it drops the oldest beyond a limit."""

    def __init__(self) -> None:
        self.bytes = 0

    def count(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        """Yield the lines, and add their stored size."""
        for line in lines:
            self.bytes += stored_bytes(line)
            yield line


def stored_bytes(line: LogLine) -> int:
    """The size of a line in Docker's file, which has JSON lines; too high by a few bytes at most."""
    text = line.text
    escaped = len(json.dumps(text, ensure_ascii=False).encode(errors="replace")) - len('""')
    # Docker writes these as six characters, a tab among them; bytes that are not UTF-8 are read as "\ufffd".
    escaped += sum(more * text.count(character) for character, more in _LONGER_IN_DOCKER)
    return escaped + _OVERHEAD_BYTES * (1 + escaped // _FRAME_BYTES)


def limit_warning(task_name: str, limit: int) -> str:
    """The service's line for a log that may have lost lines; `limit` in bytes."""
    return (
        f"The log of {task_name} reached its limit of {limit >> 20} MB, beyond which Docker drops the oldest "
        "lines. To keep more, start the emulator with a higher --log-limit-mb."
    )


class SavedLog:
    """The saved log of one replica and attempt: a file of JSON lines, in order of time.

    It is read in both directions from any time by binary search, and no file stays open between two reads, because a
    study has thousands of logs.
    """

    def __init__(self, folder: Path, job_id: str, replica: Replica) -> None:
        self.path = folder / job_id / f"{replica.task_name}.{replica.attempt}.jsonl"

    @property
    def exists(self) -> bool:
        """Whether the log is saved."""
        return self.path.exists()

    def save(self, lines: Iterable[LogLine]) -> None:
        """Write the whole log atomically. Raises OSError."""
        self.path.parent.mkdir(exist_ok=True)
        partial = self.path.with_suffix(".partial")
        try:
            with partial.open("wb") as file:
                _write(file, lines)
        except BaseException:
            # On a full disk a partial log would take the space that the next attempt needs.
            partial.unlink(missing_ok=True)
            raise
        partial.replace(self.path)

    def read(self, since_ns: int = 0) -> Iterator[LogLine] | None:
        """Read from `since_ns` (since 1970) on; None if the log is not saved."""
        return _read_forward(self.path, since_ns) if self.exists else None

    def read_back(self, last_ns: int) -> Iterator[LogLine] | None:
        """Read up to and including `last_ns`, the newest line first; None if the log is not saved."""
        return _read_backward(self.path, last_ns) if self.exists else None


def reverse(lines: Iterable[LogLine], last_ns: int) -> Iterator[LogLine]:
    """Reverse lines up to and including `last_ns`, through a temporary file. Raises OSError."""
    with tempfile.NamedTemporaryFile() as file:
        _write(file, lines)
        file.flush()
        yield from _read_backward(Path(file.name), last_ns)


def _write(file: IO[bytes], lines: Iterable[LogLine]) -> None:
    latest = 0
    for line in lines:
        # The clock may have been set back in between, and binary search needs an order.
        latest = max(latest, line.at)
        file.write(json.dumps([latest, line.stream, line.text]).encode() + b"\n")


def _read_forward(path: Path, since_ns: int) -> Iterator[LogLine]:
    at = 0
    while True:
        try:
            with path.open("rb") as file:
                if at == 0 and since_ns:
                    at = _find_time(file, since_ns)
                file.seek(at)
                block = file.readlines(_BLOCK_BYTES)
        except FileNotFoundError:  # the job was deleted meanwhile
            return
        if not block:
            return
        at += sum(map(len, block))
        yield from map(_decode, block)


def _read_backward(path: Path, last_ns: int) -> Iterator[LogLine]:
    end: int | None = None
    while end != 0:
        try:
            with path.open("rb") as file:
                if end is None:
                    end = _find_time(file, last_ns + 1)
                start = _line_start(file, max(end - _BLOCK_BYTES, 0))
                file.seek(start)
                block = file.read(end - start)
        except FileNotFoundError:  # the job was deleted meanwhile
            return
        yield from map(_decode, reversed(block.splitlines()))
        end = start


def _find_time(file: IO[bytes], since_ns: int) -> int:
    """Find the offset of the first line at or after `since_ns` by binary search."""
    low, high = 0, file.seek(0, 2)
    while low < high:
        middle = _line_start(file, (low + high) // 2)
        file.seek(middle)
        raw_line = file.readline()
        if _decode(raw_line).at < since_ns:
            low = middle + len(raw_line)
        else:
            high = middle
    return low


def _line_start(file: IO[bytes], offset: int) -> int:
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


def _decode(raw_line: bytes) -> LogLine:
    return LogLine(*json.loads(raw_line))
