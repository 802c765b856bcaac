"""The size of lines as Docker stores them, in the form in which Docker 20.10 writes them."""

import pytest

from vertex_emulator.replicas.docker_log_size_counter import DockerLogSizeCounter, compute_docker_log_bytes
from vertex_emulator.replicas.executor_protocol import LogLine

SUFFIX = '"stream":"stdout","time":"2026-11-22T14:00:00.123456789Z"}\n'


@pytest.mark.parametrize(
    ("text", "stored_text"),
    [
        ("", ""),
        ("epoch 1", "epoch 1"),
        ('say "hi"\\', 'say \\"hi\\"\\\\'),
        ("10%\r20%\t\x1b[0m", "10%\\r20%\\u0009\\u001b[0m"),
        ("a < b && c > d", "a \\u003c b \\u0026\\u0026 c \\u003e d"),
        ("Zürich 訓練", "Zürich 訓練"),
        ("\u2028", "\\u2028"),
        ("\ufffd", "\\ufffd"),
    ],
)
def test_stored_size_is_that_of_docker_s_line(text: str, stored_text: str) -> None:
    stored = f'{{"log":"{stored_text}\\n",{SUFFIX}'
    assert compute_docker_log_bytes(LogLine(0, "o", text)) == len(stored.encode())


def test_long_lines_count_each_of_their_parts() -> None:
    line = LogLine(0, "o", "x" * (40 << 10))
    assert compute_docker_log_bytes(line) > (40 << 10) + 3 * len(SUFFIX)


def test_counter_yields_lines_unchanged() -> None:
    lines = [LogLine(1, "o", "a"), LogLine(2, "e", "b")]
    counter = DockerLogSizeCounter()
    assert list(counter.iterate_and_count(lines)) == lines
    assert counter.counted_bytes == sum(map(compute_docker_log_bytes, lines))
