"""The line that says how far an export or an import is, for whoever waits at a terminal."""

from collections.abc import Callable
from typing import Any

import pytest

from vertex_emulator.cli import output
from vertex_emulator.cli.output import ProgressLine


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ProgressLine]:
    """A line on a terminal or not, with a clock that `show.now` sets."""

    def shown(is_terminal: bool) -> ProgressLine:
        monkeypatch.setattr(output.os, "isatty", lambda descriptor: is_terminal and descriptor == 2)
        monkeypatch.setattr(output.time, "monotonic", lambda: shown.now)
        return ProgressLine()

    shown.now = 100.0
    return shown


def test_the_line_appears_and_goes(show: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with show(is_terminal=True) as progress:
        progress.show("listing buckets", 1234, 0)
        assert capsys.readouterr().err == ""
        show.now += 1.1
        progress.show("listing buckets", 12345, 0)
        progress.show("listing buckets", 12346, 0)
        show.now += 0.3
        progress.show("unpacking", 599, 1000)
        shown = capsys.readouterr().err.split("\r")
    assert shown == [
        "",
        "vertex-emulator: listing buckets: 12,345",
        "vertex-emulator: unpacking: 59%".ljust(len(shown[1])),
    ]
    assert capsys.readouterr().err == f"\r{' ' * len(shown[2].rstrip())}\r"


def test_a_line_a_minute_without_a_terminal(show: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with show(is_terminal=False) as progress:
        for done in range(131):
            progress.show("unpacking", done, 200)
            show.now += 1
    assert capsys.readouterr().err == "vertex-emulator: unpacking: 30%\nvertex-emulator: unpacking: 60%\n"
