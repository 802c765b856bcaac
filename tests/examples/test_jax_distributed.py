"""The distributed example: two replicas take the same steps, which are those of one with the whole batch."""

import subprocess

import pytest

from tests.blocks import taken
from tests.examples.running import Example, metrics
from tests.vertex_emulator.running import RunningEmulator

pytestmark = pytest.mark.large


@pytest.fixture(scope="module")
def example(emulator: RunningEmulator) -> Example:
    return Example("distributed", emulator)


def losses(lines: list[str]) -> list[float]:
    return [float(line.split()[-1]) for line in lines if line.startswith("replica")]


def test_two_replicas_train_as_one_does(example: Example) -> None:
    ended = example.run("distributed")
    assert ended.succeeded, ended.failure
    chief, worker = (example.lines(ended, f"workerpool{pool}-0") for pool in (0, 1))
    found = losses(chief)
    assert len(found) == 4 and found[-1] < found[0] / 2
    assert losses(worker) == found
    (shown,) = taken("examples/distributed/README.md", "output", "replica 0")
    assert {line.rpartition(" ")[0] for line in shown.splitlines()} <= {
        line.rpartition(" ")[0] for line in (*chief, *worker)
    }
    assert metrics(ended) == {"loss": pytest.approx(found[-1], abs=1e-6), "replicas": 2, "steps": 100}

    image = ended.submitted.job_spec["workerPoolSpecs"][0]["containerSpec"]["imageUri"]
    alone = subprocess.run(["docker", "run", "--rm", image], capture_output=True, text=True, check=True)
    assert losses(alone.stdout.splitlines()) == pytest.approx(found, abs=1e-4)
