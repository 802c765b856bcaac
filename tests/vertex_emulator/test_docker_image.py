"""emulator_image/Dockerfile: built and run as docs/testing.md says, with the daemon's socket."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.ports import reserve_port
from tests.vertex_emulator.running import IMAGE, PARENT, command, custom_job, pool, until

ROOT = Path(__file__).parents[2]
TAG = "vertex-training-tests/emulator"  # stays, so that the next run finds its layers
BUILD, RUN, PUBLISH = (
    block
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL)
    if "docker " in block
)


def shell(script: str, folder: Path, container: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a block of the page with names that are nobody else's."""
    script = re.sub(r"(--tag|^ +)(\s?)vertex-emulator\b", rf"\1\2{TAG}", script, flags=re.MULTILINE)
    script = script.replace("--name vertex-emulator", f"--name {container}").replace(
        "exec vertex-emulator", f"exec {container}"
    )
    environment = {**os.environ, **variables}
    return subprocess.run(
        ["sh", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=True
    )


@pytest.fixture(scope="module")
def image() -> str:
    for attempt in range(3):
        try:
            shell(BUILD, ROOT, "")
            break
        except subprocess.CalledProcessError as error:
            # The classic builder fails where another test removes an image while it looks for layers (docs/gotchas.md).
            assert attempt < 2 and "unable to find image" in error.stderr, error.stderr
    return TAG


@pytest.fixture
def container(image: str, tmp_path: Path) -> Iterator[str]:
    """The name of a container that the test starts on `tmp_path/.emulator`."""
    name = f"vertex-training-tests-emulator-{os.getpid()}"
    yield name
    subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=True)
    assert command("reset", "--yes", data=tmp_path / ".emulator").returncode == 0


def test_a_job_writes_to_the_machine_s_bucket_folder(container: str, tmp_path: Path) -> None:
    """The page's commands, and a client on the machine; `vertex-emulator stop` from outside ends the container."""
    shell(RUN, tmp_path, container)
    data = tmp_path / ".emulator"
    url = json.loads(command("env", "--json", data=data).stdout)["STORAGE_EMULATOR_HOST"]
    job = custom_job(pool("open('/gcs/outside/model.txt', 'w').write('42')"))
    (data / "gcs" / "outside").mkdir(mode=0o777)
    name = requests.post(f"{url}/v1/{PARENT}/customJobs", json=job, timeout=30).json()["name"]
    until(lambda: requests.get(f"{url}/v1/{name}", timeout=30).json()["state"] == "JOB_STATE_SUCCEEDED", "the job")
    assert (data / "gcs" / "outside" / "model.txt").read_text() == "42"
    assert command("stop", data=data).stdout == "stopped\n"
    waited = subprocess.run(["docker", "wait", container], capture_output=True, text=True, check=True, timeout=60)
    assert waited.stdout == "0\n"


def test_a_published_port_needs_the_token_that_env_sets(container: str, tmp_path: Path) -> None:
    data = tmp_path / ".emulator"
    data.mkdir(mode=0o700)
    with reserve_port() as port:
        shell(PUBLISH.replace("8600", str(port)), tmp_path, container, VERTEX_EMULATOR_DATA=str(data))
    until((data / "endpoint.json").exists, "the start")
    printed = subprocess.run(
        ["docker", "exec", container, "vertex-emulator", "env", "--json"], capture_output=True, text=True, check=True
    ).stdout
    variables = json.loads(printed)
    assert variables["STORAGE_EMULATOR_HOST"] == f"http://127.0.0.1:{port}"
    jobs = f"http://127.0.0.1:{port}/v1/{PARENT}/customJobs"
    assert requests.get(jobs, timeout=30).status_code == 401
    token = Path(variables["CLOUDSDK_AUTH_ACCESS_TOKEN_FILE"]).read_text().strip()
    assert requests.get(jobs, headers={"Authorization": f"Bearer {token}"}, timeout=30).json() == {}


def test_a_data_folder_of_the_container_is_rejected(image: str) -> None:
    done = subprocess.run(["docker", "run", "--rm", image], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "set VERTEX_EMULATOR_DATA" in done.stderr
    assert IMAGE in (ROOT / "emulator_image" / "Dockerfile").read_text()
