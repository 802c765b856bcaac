"""Running programs: output, failure, time limit."""

import io
import os
from pathlib import Path

import pytest

from tests.vertex_emulator.running import until
from tools.setup.programs import CommandFailed, Output, run


def test_run_returns_only_standard_output() -> None:
    assert run("sh", "-c", "echo noise >&2; echo ' 1.2 '", limit=10) == "1.2"


def test_a_failure_quotes_both_streams() -> None:
    with pytest.raises(CommandFailed) as failure:
        run("sh", "-c", "for i in $(seq 20); do echo line$i; done; echo reason >&2; exit 3", limit=10)
    message = str(failure.value)
    assert "`sh -c` ended with exit code 3" in message
    assert message.endswith("\n    line20\n    reason")
    assert "line5\n" not in message


def test_a_missing_program_is_named() -> None:
    with pytest.raises(CommandFailed, match="no-such-program: No such file"):
        run("no-such-program", limit=10)


def test_the_time_limit_also_ends_child_processes(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with pytest.raises(CommandFailed, match=r"was stopped after 0\.5 s\n    started"):
        run(
            *("sh", "-c", f"echo started; sleep 60 & echo $! > '{pid_file}'; wait"),
            limit=0.5,
            # At the limit, however long the shell takes to start.
            progress=lambda *_: until(lambda: _read_or_empty(pid_file).endswith("\n"), "the child's number"),
        )
    child = int(pid_file.read_text())
    until(lambda: not _runs(child), "the end of the child")


def test_progress_is_called_with_the_seconds_passed() -> None:
    heard: list[float] = []
    run("sleep", "1.2", limit=10, progress=lambda seconds, _: heard.append(seconds))
    assert heard
    assert heard == sorted(heard)
    assert heard[0] > 0


def test_progress_counts_the_lines_of_standard_error() -> None:
    counts: list[int] = []
    run("sh", "-c", "echo a >&2; echo b >&2; sleep 1.2", limit=10, progress=lambda _, lines: counts.append(lines))
    assert counts[-1] == 2
    stream = io.StringIO()
    Output(stream).progress("building", "{} of 3 packages")(30, 2)
    assert stream.getvalue() == "building ... 30 s, 2 of 3 packages\n"


def _read_or_empty(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it has just ended, or this is macOS
        return True


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_shows_progress_every_30_seconds() -> None:
    stream = io.StringIO()
    show_progress = Output(stream).progress("building")
    for tenths in range(0, 650, 5):
        show_progress(tenths / 10)
    assert stream.getvalue().splitlines() == ["building ... 3 s", "building ... 30 s", "building ... 60 s"]


def test_the_result_overwrites_progress_on_a_terminal() -> None:
    stream = Terminal()
    output = Output(stream)
    show_progress = output.progress("building")
    show_progress(1.0)
    show_progress(2.0)
    output.say("built")
    assert stream.getvalue() == "\r\033[Kbuilding ... 1 s\r\033[Kbuilding ... 2 s\r\033[Kbuilt\n"


def test_progress_never_wraps_on_a_terminal() -> None:
    stream = Terminal()
    Output(stream).progress("x" * 500)(1.0)
    assert len(stream.getvalue().removeprefix("\r\033[K")) < 500
