"""Answers of Vertex AI that are captured, and those of the emulator.

Below `captured/` are files of `vertex-training parity --capture`, and one in their form from the recordings that
docs/fidelity.md names. A file more is a test more.
"""

import json
import re
from pathlib import Path

import pytest
from vertex_training.parity import command

from tests.components.parity.test_probes import OPTIONS

CAPTURED = Path(__file__).parent / "captured"
PAGE = Path(__file__).parents[3] / "docs" / "fidelity.md"


def test_captured_answers_differ_where_rows_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [file.stem for file in CAPTURED.glob("*.json")]
    options = {"project": "parity-emulator", "against": CAPTURED, "only": names, "json": tmp_path / "report.json"}
    command.parity(command.Options(**OPTIONS | options))
    asked = json.loads((tmp_path / "report.json").read_text())["probes"]
    assert sorted(probe["name"] for probe in asked) == sorted(names)
    assert names
    rows = dict(re.findall(r"^\| `([^`]+)` \| (same|approximated|refused)", PAGE.read_text(), re.MULTILINE))
    for probe in asked:
        assert "failure" not in probe, probe
        assert not probe["differences"] or "approximated" in {rows[row] for row in probe["rows"]}, probe
