"""Jobs of several replicas, on real Docker: roles, names, averaging over the network, and restarts."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import Any

import docker
import pytest

from tests.blocks import taken
from tests.vertex_emulator.running import IMAGE, RunningEmulator, command, custom_job, pool, until
from vertex_api import jobspec

ROOT = Path(__file__).parents[2]
TRAINER = ROOT / "examples" / "gradients" / "trainer.py"
STOPS = "import signal, sys; signal.signal(15, lambda *_: sys.exit(0))\n"
ROLES = f"""{STOPS}
import json, os, socket, time
cluster = json.loads(os.environ["CLUSTER_SPEC"])
config = json.loads(os.environ["TF_CONFIG"])
message = {{"message": "me", "image": os.environ.get("ROLE", ""), "config": config, "spec": cluster["cluster"]}}
print(json.dumps(message | {{"task": cluster["task"], "rank": os.environ["RANK"]}}), flush=True)
chief = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if config["task"]["type"] == "chief":
    server = socket.create_server(("", chief[1]))
    for _ in range(int(os.environ["WORLD_SIZE"]) - 1): server.accept()
else:
    for _ in range(300):
        time.sleep(0.1)
        if socket.socket().connect_ex(chief) == 0: break
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def images() -> Iterator[dict[str, str]]:
    """An image per role, each of which says in ROLE whose it is."""
    client = docker.from_env()
    own = token_hex(4)  # other tests on this Docker may have images of these roles
    tags = {role: f"vertex-training-tests/{role}:{own}" for role in ("chief", "worker")}
    for role, tag in tags.items():
        client.images.build(
            fileobj=BytesIO(f"FROM {IMAGE}\nENV ROLE={role}\n".encode()), tag=tag, rm=True, nocache=True
        )
    yield tags
    for tag in tags.values():
        client.images.remove(tag, force=True)  # the last containers may be about to go
    client.close()


def averaged(replicas: int, steps: int, points: int = 999, rate: float = 0.5) -> list[float]:
    """What examples/gradients must find on every replica, in its own order of additions."""
    shares = [[i / points for i in range(points)][rank::replicas] for rank in range(replicas)]
    line = [0.0, 0.0]
    for _ in range(steps):
        gradients = []
        for xs in shares:
            errors = [line[0] * x + line[1] - (3 * x + 2) for x in xs]
            products = [error * x for error, x in zip(errors, xs, strict=True)]
            gradients.append((2 * sum(products) / len(xs), 2 * sum(errors) / len(xs)))
        mean = [sum(column) / replicas for column in zip(*gradients, strict=True)]
        line = [value - rate * change for value, change in zip(line, mean, strict=True)]
    return line


def said(emulator: RunningEmulator, name: str) -> dict[str, Any]:
    """The JSON line that each replica wrote, by its task."""
    entries = emulator.entries(name, 'resource.labels.task_name!="service"')
    assert all("jsonPayload" in entry for entry in entries), entries
    return {entry["resource"]["labels"]["task_name"]: entry["jsonPayload"] for entry in entries}


def containers(name: str, task: str) -> list[str]:
    """Names of the containers of a replica, running or not."""
    label = f"label=vertex-training.emulator.job={name.rpartition('/')[2]}"
    done = subprocess.run(
        ["docker", "ps", "-a", "--format", "{{.Names}}", "--filter", label], capture_output=True, text=True, check=True
    )
    return [container for container in done.stdout.split() if f"-{task}-" in container]


def test_replicas_average_gradients_exactly_over_network(shared: RunningEmulator) -> None:
    program = TRAINER.read_text()
    pools = [pool(program, args=["--steps=60"]), pool(program, 2, args=["--steps=60"])]
    name = shared.create(custom_job(*pools, baseOutputDirectory={"outputUriPrefix": "gs://gradients/run"}))
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    folder = shared.data / "gcs/gradients/run/model"
    found = [json.loads((folder / f"line-{rank}.json").read_text()) for rank in range(3)]
    assert found == [averaged(3, 60)] * 3
    lines = [line.partition(":")[0] for line in shared.lines(name)]
    assert sorted(lines) == [f"replica {rank} of 3" for rank in range(3)]


def test_the_page_shows_what_its_command_runs(shared: RunningEmulator) -> None:
    (block,) = taken("examples/gradients/README.md", "sh")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "VERTEX_EMULATOR_DATA": str(shared.data), "NO_PROXY": "*"}
    done = subprocess.run(["sh", "-euc", block], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    name = json.loads(done.stdout)["name"]
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    printed = command("logs", "gradients", data=shared.data).stdout
    (shown,) = taken("examples/gradients/README.md", "output")
    # The page leaves out the times before the lines.
    assert sorted(line.partition(" ")[2] for line in printed.splitlines() if " of 3: " in line) == shown.splitlines()


def test_tf_config_gives_each_role_its_place(shared: RunningEmulator, images: dict[str, str]) -> None:
    pools = [pool(ROLES, imageUri=images["chief"]), *(pool(ROLES, imageUri=images["worker"]) for _ in range(3))]
    name = shared.create(custom_job(*pools))
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    found = said(shared, name)
    assert {task: each["config"]["task"]["type"] for task, each in found.items()} == {
        "workerpool0-0": "chief",
        "workerpool1-0": "worker",
        "workerpool2-0": "ps",
        "workerpool3-0": "evaluator",
    }
    assert [found[task]["image"] for task in sorted(found)] == ["chief", "worker", "worker", "worker"]
    assert all(set(each["config"]["cluster"]) == {"chief", "worker", "ps"} for each in found.values())
    assert all(len(each["spec"]) == 4 for each in found.values())


def test_reduction_server_pool_is_omitted_with_log_note(shared: RunningEmulator) -> None:
    image = {"imageUri": jobspec.reduction_server_image("europe-west4")}
    reducers = {**pool(""), "replicaCount": 2, "containerSpec": image}
    name = shared.create(custom_job(pool("import os; print(os.environ['WORLD_SIZE'])"), {}, reducers))
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert shared.lines(name) == ["1"]
    assert job["jobSpec"]["workerPoolSpecs"][2]["replicaCount"] == "2"
    left_out = "workerPoolSpecs[2]: on this machine Reduction Server is not started, and the workers reduce among"
    assert any(line.startswith(left_out) for line in shared.lines(name, 'severity="WARNING"'))


def test_segmentation_fault_restarts_job_that_then_succeeds(
    shared: RunningEmulator,
) -> None:
    crash = (
        "import ctypes, os, pathlib; state = pathlib.Path('/gcs/crashes/state'); been = state.exists();"
        "print('attempt', 1 + been, flush=True); state.touch(); been or ctypes.string_at(0);"
        "state.with_name('second').touch()"
    )
    wait = f"{STOPS}import os, time\nwhile not os.path.exists('/gcs/crashes/second'): time.sleep(0.1)"
    (shared.data / "gcs" / "crashes").mkdir()
    name = shared.create(custom_job(pool(wait), pool(crash)))
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert shared.lines(name) == ["attempt 1", "attempt 2"]
    service = shared.lines(name, "resource.labels.task_name=service")
    (crashed,) = [line for line in service if "139" in line]
    assert "workerpool1-0 exited with a non-zero status of 139" in crashed
    assert "retry 1 of 3" in crashed
    assert service.count("Job is running.") == 2


def test_removed_container_returns_with_its_name_and_address(
    shared: RunningEmulator,
) -> None:
    program = f"""{STOPS}
import os, pathlib, socket, time
starts = pathlib.Path("/gcs/removals")
role = os.environ["RANK"]
name = socket.gethostname()
start = starts / ("." + role)
start.write_text(name + " " + socket.gethostbyname(name))
start.rename(starts / (role + "-" + str(time.time_ns())))
print("started", flush=True)
while role == "0" and len(list(starts.glob("1-*"))) < 2: time.sleep(0.1)
time.sleep(0 if role == "0" else 600)
"""
    starts = shared.data / "gcs" / "removals"
    starts.mkdir()
    starts.chmod(0o777)
    name = shared.create(custom_job(pool(program), pool(program, 2)))
    until(lambda: len(list(starts.glob("?-*"))) == 3, "three replicas")
    shared.in_state(name, "JOB_STATE_RUNNING")
    (container,) = containers(name, "workerpool1-0")
    subprocess.run(["docker", "rm", "-f", container], check=True, capture_output=True)
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    first, second = (start.read_text() for start in sorted(starts.glob("1-*")))
    assert first == second
    assert len(list(starts.glob("0-*"))) == len(list(starts.glob("2-*"))) == 1
    service = shared.lines(name, "resource.labels.task_name=service")
    assert [line for line in service if "workerpool1-0" in line and "restart 1 of 5" in line]


def test_preemption_restarts_spot_job_and_fails_standard_job(
    shared: RunningEmulator,
) -> None:
    for pattern in ("spot", "standard"):
        done = command("inject", "preempt", "--name", f"{pattern}-*", data=shared.data)
        assert done.returncode == 0, done.stderr
    script = "import time; print('up', flush=True); time.sleep(1)"
    spot = shared.create(custom_job(pool(script), name="spot-1", scheduling={"strategy": "SPOT"}))
    standard = shared.create(custom_job(pool(script), name="standard-1"))
    assert shared.ended(spot)["state"] == "JOB_STATE_SUCCEEDED"
    assert [line for line in shared.lines(spot, "resource.labels.task_name=service") if line.startswith("STOCKOUT:")]
    assert shared.ended(standard)["error"] == {
        "code": 8,
        "message": "Resources are insufficient in region: us-central1. Try a different region or use a different "
        "accelerator.",
    }
