"""What programs in the tests of this folder build from."""

from pathlib import Path

import pytest


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with a context and a script."""
    for name, text in {"Dockerfile": "FROM scratch\n", "train.py": ""}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
