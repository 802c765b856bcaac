"""A container's log, line by line, from the daemon."""

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from vertex_emulator.replicas.docker.docker_error_handling import ignore_api_errors, translate_connection_errors
from vertex_emulator.replicas.executor_protocol import LogLine
from vertex_emulator.times import parse_time

Call = Callable[[Callable[[Any], Any]], Any]
MAX_LINE_BYTES = 256 << 10
"""The size of an entry that Cloud Logging takes (its page on quotas). A longer line becomes several."""


def iterate_container_log_lines(call_docker: Call, container_name: str, since_ns: int) -> Iterator[LogLine]:
    """Read what a container wrote at or after `since_ns`, both streams in order of time; nothing if it is removed."""
    streams = [
        _iterate_stream_lines(call_docker, container_name, stream_letter, since_ns) for stream_letter in ("o", "e")
    ]
    return heapq.merge(*streams, key=lambda line: line.at)


def _iterate_stream_lines(
    call_docker: Call, container_name: str, stream_letter: str, since_ns: int
) -> Iterator[LogLine]:
    options = {"stdout": stream_letter == "o", "stderr": stream_letter == "e", "since": since_ns // 10**9 or None}
    with translate_connection_errors():
        frames: Iterator[bytes] = iter(())
        with ignore_api_errors(404, 409):  # 409: it is being removed
            frames = call_docker(
                lambda client: client.logs(container_name, timestamps=True, stream=True, follow=False, **options)
            )
        yield from (line for line in _join_frames_to_lines(frames, stream_letter) if line.at >= since_ns)


def _join_frames_to_lines(frames: Iterator[bytes], stream_letter: str) -> Iterator[LogLine]:
    """Join log frames to lines: Docker splits a long line, each frame has a time, only the last one a newline."""
    at, text = 0, b""
    for frame in frames:
        stamp, _, piece = frame.partition(b" ")
        if len(text) + len(piece) > MAX_LINE_BYTES:
            yield LogLine(at, stream_letter, text.decode(errors="replace"))
            text = b""
        if not text:
            at = parse_time(stamp.decode()) or 0
        text += piece
        if text.endswith(b"\n"):
            yield LogLine(at, stream_letter, text[:-1].decode(errors="replace").rstrip("\r"))
            text = b""
    if text:
        yield LogLine(at, stream_letter, text.decode(errors="replace"))
