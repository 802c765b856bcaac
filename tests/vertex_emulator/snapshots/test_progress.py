"""How far an export and an import are, for whoever waits at a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vertex_emulator.cli import output
from vertex_emulator.cli.output import ProgressLine
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.snapshots.export import export
from vertex_emulator.snapshots.restore import restore

SIZE = 5 << 20


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ProgressLine]:
    """A line on a terminal or not, with a clock that `show.now` sets."""

    def shown(is_terminal: bool) -> ProgressLine:
        monkeypatch.setattr(output.os, "isatty", lambda descriptor: is_terminal and descriptor == 2)
        monkeypatch.setattr(output.time, "monotonic", lambda: shown.now)
        return ProgressLine()

    shown.now = 100.0
    return shown


def test_progress_grows_up_to_all(tmp_path: Path) -> None:
    bucket = DataFolder.open(tmp_path / "data").buckets / "models"
    bucket.mkdir()
    (bucket / "weights").write_bytes(bytes(SIZE))
    (bucket / "empty").mkdir()
    reports: list[tuple[str, int, int]] = []
    list(export(tmp_path / "data", tmp_path / "x.tar.gz", True, lambda *report: reports.append(report)))
    restore(tmp_path / "other", tmp_path / "x.tar.gz", None, lambda *report: reports.append(report))
    for action in ("writing the archive", "unpacking the archive"):
        shares = [done / total for text, done, total in reports if text == action]
        assert shares == sorted(shares) and shares[-1] == 1
        assert any(0.4 < share < 0.6 for share in shares)
    assert ("listing buckets", 3, 0) in reports


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


def test_no_line_appears_without_a_terminal(show: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with show(is_terminal=False) as progress:
        show.now += 10
        progress.show("unpacking", 1, 2)
    assert capsys.readouterr().err == ""
