"""emulator_image/: built and run as docs/suites.md and docs/testing.md say, by shells and by test suites."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import requests

from tests.blocks import taken
from tests.go_program import QUICK_BUILD
from tests.ports import reserve_port
from tests.vertex_emulator.running import IMAGE, PARENT, command, custom_job, pool, until
from tests.vertex_emulator.suites import SUITES, copied

ROOT = Path(__file__).parents[2]
TAG = "vertex-training-tests/emulator"  # stays, so that the next run finds its layers
(BUILD,) = taken("docs/suites.md", "sh", "docker build ")
(RUN,) = taken("docs/suites.md", "sh", "docker run ")
(USE,) = taken("docs/suites.md", "sh", "TOKEN=")
(OWN_FOLDER,) = taken("docs/testing.md", "sh", "export VERTEX_EMULATOR_DATA=")
SOCKET = "/var/run/docker.sock"
TESTCONTAINERS = {**os.environ, "TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_HOST_OVERRIDE": "localhost"}
"""What the page names: no image of the reaper is pulled, and this machine may be a container itself."""


def shell(script: str, folder: Path, container: str) -> str:
    """What a block of a page prints with names that are nobody else's."""
    script = re.sub(r"(--tag|^ +|docker.sock)(\s)vertex-emulator\b", rf"\1\2{TAG}", script, flags=re.MULTILINE)
    script = re.sub(r"(--name|exec|stop) vertex-emulator\b", rf"\1 {container}", script)
    script = script.replace("timeout 30 ", "")  # which a busy machine may miss
    return subprocess.run(
        ["sh", "-euc", script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def containers(**labels: str) -> list[str]:
    """The ids of containers."""
    filters = [f"--filter=label={name}={value}" for name, value in labels.items()]
    listed = subprocess.run(["docker", "ps", "--all", "--quiet", *filters], capture_output=True, text=True, check=True)
    return listed.stdout.split()


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
def container(image: str) -> Iterator[str]:
    """The name of a container that the test starts."""
    name = f"vertex-training-tests-emulator-{os.getpid()}"
    yield name
    subprocess.run(["docker", "rm", "--force", "--volumes", name], capture_output=True)


def test_one_line_starts_an_emulator_that_leaves_nothing(container: str, tmp_path: Path) -> None:
    with reserve_port() as port:
        shell(RUN.replace("127.0.0.1:8600:", f"127.0.0.1:{port}:"), tmp_path, container)
    url = f"http://127.0.0.1:{port}"
    until(lambda: _status(f"{url}/healthz") == 401, "the start")
    use, stop = USE.replace(":8600", f":{port}").split("docker stop")
    printed = shell(use, tmp_path, container)
    assert printed.startswith("{}running ") and "data       /var/lib/docker/" in printed

    token = shell(use.partition("\n")[0] + "; echo $TOKEN", tmp_path, container).strip()
    headers = {"Authorization": f"Bearer {token}"}
    bucket = f"{url}/storage/v1/b?project=local"
    requests.post(bucket, json={"name": "inside"}, headers=headers).raise_for_status()
    short, endless = (
        requests.post(f"{url}/v1/{PARENT}/customJobs", json=custom_job(pool(script)), headers=headers).json()["name"]
        for script in ("open('/gcs/inside/model.txt', 'w').write('42')", "import time; time.sleep(1000)")
    )

    def state(job: str) -> str:
        return str(requests.get(f"{url}/v1/{job}", headers=headers).json()["state"])

    until(lambda: state(short) == "JOB_STATE_SUCCEEDED" and state(endless) == "JOB_STATE_RUNNING", "the jobs")
    model = f"{url}/storage/v1/b/inside/o/model.txt?alt=media"
    assert requests.get(model, headers=headers).text == "42"
    label = {"vertex-training.emulator.job": endless.rpartition("/")[2]}
    assert len(containers(**label)) == 1
    volume = _inspect(container)["Mounts"]
    shell(f"docker stop{stop}", tmp_path, container)
    assert containers(**label) == []
    names = [mount["Name"] for mount in volume if mount["Type"] == "volume"]
    until(
        lambda: subprocess.run(["docker", "volume", "inspect", *names], capture_output=True).returncode, "the removal"
    )


def _status(url: str) -> int:
    try:
        return requests.get(url).status_code
    except requests.ConnectionError:
        return 0


def _inspect(container: str) -> Mapping[str, list[dict[str, str]]]:
    done = subprocess.run(["docker", "inspect", container], capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)
    return dict(found)


def test_a_job_writes_to_the_machine_s_bucket_folder(container: str, tmp_path: Path) -> None:
    """The commands for a folder of one's own, and a client on the machine; `stop` from outside ends the container."""
    shell(OWN_FOLDER, tmp_path, container)
    data = tmp_path / ".emulator"
    url = json.loads(command("env", "--json", data=data).stdout)["STORAGE_EMULATOR_HOST"]
    job = custom_job(pool("open('/gcs/outside/model.txt', 'w').write('42')"))
    (data / "gcs" / "outside").mkdir(mode=0o777)
    name = requests.post(f"{url}/v1/{PARENT}/customJobs", json=job).json()["name"]
    until(lambda: requests.get(f"{url}/v1/{name}").json()["state"] == "JOB_STATE_SUCCEEDED", "the job")
    assert (data / "gcs" / "outside" / "model.txt").read_text() == "42"
    assert command("stop", data=data).stdout == "stopped\n"
    waited = subprocess.run(["docker", "wait", container], capture_output=True, text=True, check=True)
    assert waited.stdout == "0\n"
    assert command("reset", "--yes", data=data).returncode == 0


def test_what_cannot_work_is_one_line(image: str) -> None:
    mounted = f"--volume={SOCKET}:{SOCKET}"
    for options, remedy in (
        ([], mounted.replace("=", " ")),
        ([mounted, "--network=host"], "set VERTEX_EMULATOR_DATA"),
        ([mounted, f"--user=65534:{Path(SOCKET).stat().st_gid}"], "set VERTEX_EMULATOR_DATA"),
    ):
        done = subprocess.run(["docker", "run", "--rm", *options, image], capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert remedy in done.stderr


def test_the_image_has_the_base_of_the_tests() -> None:
    assert IMAGE in (ROOT / "emulator_image" / "Dockerfile").read_text()


@pytest.mark.parametrize(
    ("shown", "file"),
    [
        (taken("docs/suites.md", "go"), "go/training_test.go"),
        (taken("docs/suites.md", "java"), "java/src/test/java/TrainingTest.java"),
    ],
    ids=["go", "java"],
)
def test_the_page_shows_the_suites(shown: list[str], file: str) -> None:
    assert shown == [(SUITES / file).read_text()]


@pytest.mark.large
def test_a_suite_in_go_passes(image: str) -> None:
    """Compiled once, in some minutes: Google's library is large."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        pytest.skip("needs Go")
    with copied("go", TAG) as suite:
        if not (suite / "training.test").exists():
            had = subprocess.run([go, "mod", "download"], cwd=suite, capture_output=True, text=True)
            if had.returncode:
                pytest.skip(f"its modules cannot be had here: {had.stderr.strip().splitlines()[-1]}")
            subprocess.run([go, "test", *QUICK_BUILD, "-c", "-o", "training.test"], cwd=suite, check=True)
        tested = subprocess.run(
            ["./training.test", "-test.v"], cwd=suite, env=TESTCONTAINERS, capture_output=True, text=True
        )
    assert re.findall("^ *--- PASS: (.*) ", tested.stdout, re.MULTILINE) == [
        "TestTraining",
        "TestTraining/succeeds",
        "TestTraining/fails",
        "TestTraining/searches",
        "TestTraining/is_a_pipeline",
        "TestTraining/is_refused",
    ], tested.stdout + tested.stderr


@pytest.mark.large
def test_a_suite_in_java_passes(image: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("needs Maven")
    # Compiling itself, Java takes three times as long.
    environment = {**TESTCONTAINERS, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    with copied("java", TAG) as suite:
        tested = subprocess.run([maven, "-B", "test"], cwd=suite, env=environment, capture_output=True, text=True)
    if missing := re.search("Could not resolve dependencies.*|could not be resolved.*", tested.stdout):
        pytest.skip(f"its packages cannot be had here: {missing[0]}")
    assert "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0" in tested.stdout, tested.stdout + tested.stderr
