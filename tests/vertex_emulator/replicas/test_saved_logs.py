from collections.abc import Iterator
from pathlib import Path

import pytest

from vertex_emulator.database.records import Replica
from vertex_emulator.replicas import saved_logs as logs
from vertex_emulator.replicas.executor_protocol import LogLine

REPLICA = Replica(0, 0)
# Times come in groups of three, one line is longer than a block, and one holds all kinds of line ends.
LINES = [LogLine(100 + i // 3, "o" if i % 2 else "e", f"line {i}") for i in range(3000)]
LINES[700] = LogLine(100 + 700 // 3, "o", "x" * 200_000)
LINES[701] = LogLine(100 + 701 // 3, "o", 'a\rb\u2028c\x85"\\ä')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    logs.save_log(tmp_path, "1", REPLICA, LINES)
    return tmp_path


@pytest.mark.parametrize("moment", [0, 99, 100, 101, 333, 334, 700, 1098, 1099, 1100, 9999])
def test_a_log_reads_both_ways_from_any_moment(root: Path, moment: int) -> None:
    assert list(logs.iterate_saved_log_or_none(root, "1", REPLICA, moment) or ()) == [
        line for line in LINES if line.at >= moment
    ]
    assert list(logs.iterate_saved_log_reversed_or_none(root, "1", REPLICA, moment) or ()) == [
        line for line in reversed(LINES) if line.at <= moment
    ]
    assert list(logs.iterate_reversed_log_up_to(LINES, moment)) == [
        line for line in reversed(LINES) if line.at <= moment
    ]


def test_an_empty_log_differs_from_an_unsaved_one(tmp_path: Path) -> None:
    assert logs.iterate_saved_log_or_none(tmp_path, "1", REPLICA) is None
    assert logs.iterate_saved_log_reversed_or_none(tmp_path, "1", REPLICA, 1) is None
    logs.save_log(tmp_path, "1", REPLICA, [])
    assert list(logs.iterate_saved_log_or_none(tmp_path, "1", REPLICA) or ["none"]) == []
    assert list(logs.iterate_saved_log_reversed_or_none(tmp_path, "1", REPLICA, 1) or ["none"]) == []


def test_an_incomplete_log_write_leaves_nothing(tmp_path: Path) -> None:
    def torn() -> Iterator[LogLine]:
        yield from LINES
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        logs.save_log(tmp_path, "1", REPLICA, torn())
    assert not logs.is_log_saved(tmp_path, "1", REPLICA)
    assert list((tmp_path / "1").iterdir()) == []


def test_lines_keep_their_order_when_clocks_go_back(tmp_path: Path) -> None:
    logs.save_log(
        tmp_path, "1", REPLICA, [LogLine(50, "o", "first"), LogLine(20, "o", "second"), LogLine(60, "o", "third")]
    )
    assert [line.text for line in logs.iterate_saved_log_or_none(tmp_path, "1", REPLICA, 50) or ()] == [
        "first",
        "second",
        "third",
    ]


def test_removing_a_log_ends_its_reading(root: Path) -> None:
    lines = logs.iterate_saved_log_or_none(root, "1", REPLICA)
    assert lines is not None
    next(lines)
    (root / "1" / "workerpool0-0.0.jsonl").unlink()
    assert 0 < len(list(lines)) < len(LINES)
