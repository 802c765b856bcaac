"""The file with the secrets that the emulator serves."""

import json
from pathlib import Path

import pytest
from vertex_training.runtime.emulator_secrets_file import FILE_NAME, replace_project_secrets

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.secret_manager.secret_values import SecretValues


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in a data folder that does not exist yet."""
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / FILE_NAME


def test_the_file_is_for_its_owner_only(file: Path) -> None:
    for value in "ab":
        replace_project_secrets("p", {"token": value})
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700


def test_each_project_has_its_own_secrets(file: Path) -> None:
    replace_project_secrets("p", {})
    assert not file.parent.exists()
    replace_project_secrets("p", {"token": "a", "old": "b"})
    replace_project_secrets("q", {"token": "c"})
    replace_project_secrets("p", {"token": "d"})
    assert json.loads(file.read_text()) == {"p": {"token": "d"}, "q": {"token": "c"}}
    replace_project_secrets("p", {})
    replace_project_secrets("q", {})
    assert not file.exists()


def test_the_emulator_reads_what_is_stored(file: Path) -> None:
    replace_project_secrets("p", {"token": "a"})
    values = SecretValues(DataFolder(file.parent).secrets)
    assert values.access_secret_version("p", "token", "latest")["payload"]["data"] == "YQ=="
