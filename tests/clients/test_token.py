"""Clients of an emulator whose kernel does not tell who its clients are, as on macOS: they send the token."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from vertex_training.runtime.emulator import find

from tests.clients.environment import snippet, variables
from tests.vertex_emulator.running import PARENT, RunningEmulator, absent, command
from vertex_api.client import Client
from vertex_api.names import CUSTOM_JOB
from vertex_emulator.testing.project import trusting

BLIND = """
import sys
import vertex_emulator.http.connection
vertex_emulator.http.connection.peer_user = lambda connection: None
from vertex_emulator.cli.main import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """An emulator that cannot tell users apart."""
    emulator = RunningEmulator(tmp_path_factory.mktemp("blind") / "data", program=("-c", BLIND))
    with trusting(emulator.data):
        yield emulator
    emulator.http.headers["Authorization"] = f"Bearer {read_token(emulator)}"
    emulator.close()


def read_token(emulator: RunningEmulator) -> str:
    return (emulator.data / "token").read_text().strip()


def test_request_without_token_names_the_remedy(blind: RunningEmulator) -> None:
    for headers in ({}, {"Authorization": "Bearer x"}, {"Cookie": "vertex-emulator-1=x"}):
        reply = requests.post(f"{blind.url}/v1/{PARENT}/customJobs", json=absent("x"), headers=headers)
        assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
        error = reply.json()["error"]
        assert (error["status"], error["message"].count("Authorization: Bearer TOKEN")) == ("UNAUTHENTICATED", 1)


def test_gcloud_sends_the_token_that_env_names(blind: RunningEmulator, tmp_path: Path) -> None:
    program = shutil.which("gcloud")
    if program is None:
        pytest.skip("gcloud is not installed")
    environment = variables(blind.data, {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"})
    (tmp_path / "file").write_text("content")
    (blind.data / "gcs/with-token").mkdir()
    for arguments in (
        ["ai", "custom-jobs", "list"],
        ["storage", "cp", str(tmp_path / "file"), "gs://with-token/file"],
    ):
        done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (blind.data / "gcs/with-token/file").read_text() == "content"


def test_sdk_sends_the_token_of_the_printed_lines(blind: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ.keys() & {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}:
        monkeypatch.delenv(name)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(blind.data / "trusted.pem"))  # whatever an earlier `init` has chosen
    names: dict[str, Any] = {}
    exec(snippet(blind.data), names)
    assert names["aiplatform"].CustomJob.list() == []


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_exec_sends_the_token_for_unmodified_programs(blind: RunningEmulator, transport: str) -> None:
    (blind.data / "secrets.json").write_text('{"local": {"hf-token": "of-mine"}}')
    program = f"""
from google.cloud import aiplatform, secretmanager, storage
name = "projects/local/secrets/hf-token/versions/latest"
for options in (dict(), dict(transport={transport!r}, client_options=dict(api_endpoint=None, api_key=None))):
    client = secretmanager.SecretManagerServiceClient(**options)
    print(client.access_secret_version(name=name).payload.data.decode())
aiplatform.init(project="local", location="us-central1", api_transport={transport!r})
print(aiplatform.CustomJob.list(), storage.Client().create_bucket("by-exec-{transport}").exists())
"""
    done = command("exec", data=blind.data, after=["--", sys.executable, "-c", program])
    assert (done.returncode, done.stdout) == (0, "of-mine\n" * 2 + "[] True\n"), done.stderr


def test_module_and_command_line_read_the_token(blind: RunningEmulator) -> None:
    endpoint = find(blind.data)
    assert endpoint is not None
    assert Client(endpoint).find(CUSTOM_JOB, PARENT, "") == []
    status = command("status", data=blind.data)
    assert (status.returncode, status.stderr) == (0, "")


def test_link_of_env_keeps_token_in_a_cookie(blind: RunningEmulator) -> None:
    printed = command("env", data=blind.data).stdout
    (link,) = [line.rpartition(" ")[2] for line in printed.splitlines() if line.startswith("# The page")]
    assert link == f"{blind.url}/?token={read_token(blind)}"
    with requests.Session() as browser:
        assert browser.get(f"{blind.url}/?token=wrong").status_code == 401
        first = browser.get(link, allow_redirects=False)
        assert (first.status_code, first.headers["location"]) == (303, "/")
        cookie = first.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")[1:]}
        assert browser.get(f"{blind.url}/vertex_emulator/page/jobs").status_code == 200
        evil = {"Origin": "http://127.0.0.1:1"}
        jobs = f"{blind.url}/v1/{PARENT}/customJobs"
        assert browser.post(jobs, json=absent("evil"), headers=evil).status_code == 403


def test_other_emulators_get_no_such_variables(emulator: RunningEmulator) -> None:
    printed = command("env", data=emulator.data).stdout
    assert read_token(emulator) not in printed
    assert "TOKEN" not in printed
    assert sys.platform == "linux"
