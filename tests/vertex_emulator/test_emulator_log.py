"""The emulator's log stays small, whatever is logged and however often."""

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vertex_emulator.emulator_log import EmulatorLog


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "emulator.log"


@pytest.fixture
def log(file: Path) -> Iterator[EmulatorLog]:
    """The log of an emulator whose stderr is the file."""
    handler = EmulatorLog(file, max_bytes=1000, max_repeats=5)
    with file.open("a") as stderr:
        handler.setStream(stderr)
        yield handler


def write(log: EmulatorLog, form: str, *arguments: object) -> None:
    log.handle(logging.LogRecord("x", logging.WARNING, "", 0, form, arguments, None))


def test_a_full_file_is_replaced(log: EmulatorLog, file: Path) -> None:
    for number in range(1000):
        write(log, f"line {number} " + "x" * 100)
    os.write(log.stream.fileno(), b"a traceback\n")
    assert file.read_text().endswith("a traceback\n")
    before = file.with_name("emulator.log.1")
    assert sorted(file.parent.iterdir()) == [file, before]
    assert file.stat().st_size < 1200
    assert 1000 < before.stat().st_size < 1200


def test_another_stderr_is_never_replaced(log: EmulatorLog, file: Path) -> None:
    with file.with_name("mine").open("a") as stderr:
        log.setStream(stderr)
        for number in range(100):
            write(log, f"line {number} " + "x" * 100)
    assert file.read_text() == ""
    assert file.with_name("mine").stat().st_size > 10_000


def test_lines_of_one_form_are_few(log: EmulatorLog, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1000):
        write(log, "from port %s", number)
    write(log, "another")
    assert file.read_text().splitlines() == [*(f"from port {number}" for number in range(5)), "another"]
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    write(log, "from port %s", 1000)
    assert file.read_text().splitlines()[6:] == [
        "995 more lines are left out like this one: from port %s",
        "from port 1000",
    ]
