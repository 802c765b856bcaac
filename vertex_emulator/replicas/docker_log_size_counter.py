"""The size of a log as Docker stores it: a file of JSON lines, of which it drops the oldest beyond a limit."""

import json
from collections.abc import Iterable, Iterator

from vertex_emulator.replicas.executor_protocol import LogLine

MIN_LOG_LIMIT_BYTES = 1 << 20
_FRAME_BYTES = 16 << 10  # Docker stores a longer line in several parts
_OVERHEAD_BYTES = len('{"log":"\\n","stream":"stdout","time":"2026-11-22T14:00:00.123456789Z"}\n')
_LONGER_IN_DOCKER = (("<", 5), (">", 5), ("&", 5), ("\t", 4), ("\u2028", 3), ("\u2029", 3), ("\ufffd", 3))


class DockerLogSizeCounter:
    """Counts the stored size of lines as they are read."""

    def __init__(self) -> None:
        self.counted_bytes = 0

    def iterate_and_count(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        """Yield the lines, and add their stored size."""
        for line in lines:
            self.counted_bytes += compute_docker_log_bytes(line)
            yield line


def render_log_limit_warning(task_name: str, limit_bytes: int) -> str:
    """Render the service's line for a log that may have lost lines."""
    return (
        f"The log of {task_name} reached its limit of {limit_bytes >> 20} MB, beyond which Docker drops the oldest "
        "lines. To keep more, start the emulator with a higher --log-limit-mb."
    )


def compute_docker_log_bytes(line: LogLine) -> int:
    """Compute the size of a line in Docker's file; too high by a few bytes at most."""
    text = line.text
    escaped_bytes = len(json.dumps(text, ensure_ascii=False).encode(errors="replace")) - len('""')
    # Docker writes these as six characters, a tab among them; bytes that are not UTF-8 are read as "\ufffd".
    escaped_bytes += sum(more * text.count(character) for character, more in _LONGER_IN_DOCKER)
    return escaped_bytes + _OVERHEAD_BYTES * (1 + escaped_bytes // _FRAME_BYTES)
