"""The wheel of the template: built with what is installed, or with what pip gets."""

import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from tools import template


@pytest.mark.parametrize(("installed", "is_alone"), [("65.5.0", False), ("77.0.3", True), ("80", True), (None, False)])
def test_an_old_setuptools_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installed: str | None, is_alone: bool
) -> None:
    asked: list[str] = []

    def version(name: str) -> str:
        if installed is None:
            raise metadata.PackageNotFoundError(name)
        return installed

    def run(command: list[str], **_: object) -> None:
        asked.extend(command)
        (tmp_path / "x.whl").touch()

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(template, "copy_checkout", lambda folder: None)
    monkeypatch.setattr(subprocess, "run", run)
    assert template.build_wheel(tmp_path).name == "x.whl"
    assert ("--no-build-isolation" in asked) == ("--no-index" in asked) == is_alone
