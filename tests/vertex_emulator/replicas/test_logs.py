"""The size of lines as Docker stores them, in the form in which Docker 20.10 writes them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from docker.errors import APIError

from vertex_emulator.database.records import Replica
from vertex_emulator.replicas import logs
from vertex_emulator.replicas.logs import LogLine, SavedLog

REPLICA = Replica(0, 0)
# Times come in groups of three, one line is longer than a block, and one holds all kinds of line ends.
LINES = [LogLine(100 + i // 3, "o" if i % 2 else "e", f"line {i}") for i in range(3000)]
LINES[700] = LogLine(100 + 700 // 3, "o", "x" * 200_000)
LINES[701] = LogLine(100 + 701 // 3, "o", 'a\rb\u2028c\x85"\\ä')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    SavedLog(tmp_path, "1", REPLICA).save(LINES)
    return tmp_path


@pytest.mark.parametrize("moment", [0, 99, 100, 101, 333, 334, 700, 1098, 1099, 1100, 9999])
def test_log_reads_both_ways_from_any_moment(root: Path, moment: int) -> None:
    assert list(SavedLog(root, "1", REPLICA).read(moment) or ()) == [line for line in LINES if line.at >= moment]
    assert list(SavedLog(root, "1", REPLICA).read_back(moment) or ()) == [
        line for line in reversed(LINES) if line.at <= moment
    ]
    assert list(logs.reverse(LINES, moment)) == [line for line in reversed(LINES) if line.at <= moment]


def test_empty_log_differs_from_unsaved_one(tmp_path: Path) -> None:
    assert SavedLog(tmp_path, "1", REPLICA).read() is None
    assert SavedLog(tmp_path, "1", REPLICA).read_back(1) is None
    SavedLog(tmp_path, "1", REPLICA).save([])
    assert list(SavedLog(tmp_path, "1", REPLICA).read() or ["none"]) == []
    assert list(SavedLog(tmp_path, "1", REPLICA).read_back(1) or ["none"]) == []


def test_incomplete_log_write_leaves_nothing(tmp_path: Path) -> None:
    def torn() -> Iterator[LogLine]:
        yield from LINES
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        SavedLog(tmp_path, "1", REPLICA).save(torn())
    assert not SavedLog(tmp_path, "1", REPLICA).exists
    assert list((tmp_path / "1").iterdir()) == []


def test_lines_keep_their_order_when_clocks_go_back(tmp_path: Path) -> None:
    SavedLog(tmp_path, "1", REPLICA).save(
        [LogLine(50, "o", "first"), LogLine(20, "o", "second"), LogLine(60, "o", "third")]
    )
    assert [line.text for line in SavedLog(tmp_path, "1", REPLICA).read(50) or ()] == [
        "first",
        "second",
        "third",
    ]


def test_removing_log_ends_its_reading(root: Path) -> None:
    lines = SavedLog(root, "1", REPLICA).read()
    assert lines is not None
    next(lines)
    (root / "1" / "workerpool0-0.0.jsonl").unlink()
    assert 0 < len(list(lines)) < len(LINES)


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
def test_stored_size_is_that_of_docker_line(text: str, stored_text: str) -> None:
    stored = f'{{"log":"{stored_text}\\n",{SUFFIX}'
    assert logs.stored_bytes(LogLine(0, "o", text)) == len(stored.encode())


def test_long_lines_count_each_of_their_parts() -> None:
    line = LogLine(0, "o", "x" * (40 << 10))
    assert logs.stored_bytes(line) > (40 << 10) + 3 * len(SUFFIX)


def test_counter_yields_lines_unchanged() -> None:
    lines = [LogLine(1, "o", "a"), LogLine(2, "e", "b")]
    counter = logs.SizeCounter()
    assert list(counter.count(lines)) == lines
    assert counter.bytes == sum(map(logs.stored_bytes, lines))


def daemon(status: int) -> Callable[[Callable[[Any], Any]], Any]:
    """A daemon that answers every call with an error."""

    def call(_: Callable[[Any], Any]) -> Any:
        response = requests.Response()
        response.status_code = status
        raise APIError("no log", response=response)

    return call


@pytest.mark.parametrize("status", [404, 409])
def test_missing_container_has_no_log(status: int) -> None:
    assert list(logs.read_container(daemon(status), "name", 0)) == []


def test_error_is_not_empty_log() -> None:
    with pytest.raises(APIError):
        list(logs.read_container(daemon(500), "name", 0))


def test_line_without_end_is_split() -> None:
    frame = b"2026-11-22T00:00:00.000000001Z " + b"x" * (16 << 10)
    frames = [frame] * 1000 + [frame + b"\n"]

    def call(answer: Callable[[Any], Any]) -> Any:
        class Client:
            def logs(self, _name: str, stdout: bool, **_options: Any) -> list[bytes]:
                return frames if stdout else []

        return iter(answer(Client()))

    lines = list(logs.read_container(call, "name", 0))
    assert sum(len(line.text) for line in lines) == 1001 * (16 << 10)
    assert max(len(line.text) for line in lines) == logs.MAX_LINE_BYTES
