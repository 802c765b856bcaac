"""Which state backend `make env` chooses."""

import json
from pathlib import Path

import pytest

from tools.setup.state_backend import build_local_backend_and_default_passphrase_variables, has_state_backend


def test_a_backend_is_recognised_where_pulumi_itself_looks(tmp_path: Path) -> None:
    project, home = tmp_path / "Pulumi.yaml", {"PULUMI_HOME": str(tmp_path)}
    assert not has_state_backend(home, project)
    assert has_state_backend(home | {"PULUMI_BACKEND_URL": "s3://ours"}, project)
    assert has_state_backend(home | {"PULUMI_ACCESS_TOKEN": "pul-1"}, project)
    project.write_text("name: x\nbackend:\n  url: gs://ours\n")
    assert has_state_backend(home, project)
    project.write_text("name: x\ndescription: a backend: of sorts\n")
    assert not has_state_backend(home, project)
    (tmp_path / "credentials.json").write_text(json.dumps({"current": "gs://ours"}))
    assert has_state_backend(home, project)


@pytest.mark.parametrize("content", ["", "{}", '{"current": ""}', "[]", "not JSON"])
def test_without_a_login_there_is_no_backend(tmp_path: Path, content: str) -> None:
    (tmp_path / "credentials.json").write_text(content)
    assert not has_state_backend({"PULUMI_CREDENTIALS_PATH": str(tmp_path)}, tmp_path / "Pulumi.yaml")


@pytest.mark.parametrize("name", ["PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"])
def test_a_passphrase_of_the_users_is_kept(name: str) -> None:
    assert build_local_backend_and_default_passphrase_variables({name: "x"}, Path("/state")) == {
        "PULUMI_BACKEND_URL": "file:///state?metadata=skip"
    }
