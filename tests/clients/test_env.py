"""`vertex-emulator env`: what the clients' own tests do not show of it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.clients.environment import variables
from tests.vertex_emulator.running import RunningEmulator, command


def test_without_an_emulator_an_eval_fails(tmp_path: Path) -> None:
    done = command("env", data=tmp_path)
    assert (done.returncode, done.stdout) == (1, "false\n")
    assert "vertex-emulator start" in done.stderr
    assert done.stderr.count("\n") == 1


def test_project_and_region_are_those_asked_for(emulator: RunningEmulator) -> None:
    found = variables(emulator.data, {}, "--project", "a project", "--region", "europe-west4")
    assert found["CLOUDSDK_CORE_PROJECT"] == found["GOOGLE_CLOUD_PROJECT"] == "a project"
    assert found["CLOUDSDK_AI_REGION"] == found["GOOGLE_CLOUD_REGION"] == "europe-west4"


def test_gcloud_s_own_configuration_is_left_alone(emulator: RunningEmulator, environment: Mapping[str, str]) -> None:
    assert Path(environment["CLOUDSDK_CONFIG"]) == emulator.data / "gcloud"


def test_no_proxy_is_extended_only_with_a_proxy(emulator: RunningEmulator) -> None:
    proxy = {"http_proxy": "http://proxy.example:3128", "no_proxy": "intranet.example"}
    assert variables(emulator.data, proxy)["no_proxy"] == "intranet.example,127.0.0.1"
    assert "no_proxy" not in variables(emulator.data, {})


def test_help_shows_how_to_use_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vertex_emulator", "env", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert 'eval "$(vertex-emulator env)"' in done.stdout
