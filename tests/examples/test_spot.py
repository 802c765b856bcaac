"""The spot example, by its stand-in for PyTorch: a preempted training goes on, and ends with the same model."""

import re
import shutil

import pytest
from vertex_training.rehearsal.runner import Ended

from tests.blocks import taken
from tests.examples.running import Example, metrics
from tests.vertex_emulator.running import RunningEmulator, command

RUN = "spot --set vars.spotFramework=numpy"


@pytest.fixture(scope="module")
def example(emulator: RunningEmulator) -> Example:
    return Example("spot", emulator)


def shape(line: str) -> str:
    """A line without its numbers."""
    return re.sub(r"\d[\d.]*", "N", line)


def preempted(example: Example, after: str = "1") -> Ended:
    """The job, whose machine is taken away as the page says; sooner, as numpy is loaded before PyTorch would be."""
    (commands,) = taken("examples/spot/README.md", "console", "$ vertex-emulator inject")
    line = commands.splitlines()[0]
    *arguments, option, _ = line.split()[2:]
    done = command(*arguments, option, after, data=example.emulator.data)
    assert done.returncode == 0, done.stderr
    return example.run(RUN)


def test_a_preempted_training_ends_with_the_same_model(example: Example) -> None:
    ended = preempted(example)
    assert ended.succeeded, ended.failure
    lines = example.lines(ended)
    service = example.emulator.lines(ended.job["name"], "resource.labels.task_name=service")
    assert [line for line in service if line.startswith("STOCKOUT:")]
    (start,) = [index for index, line in enumerate(lines) if line.startswith("goes on")]
    first = int(lines[start].split()[4])
    assert 0 < first < 4000
    assert lines[start - 1] == f"is stopped, and has saved step {first}"
    (shown,) = taken("examples/spot/README.md", "output", "step 200")
    assert {shape(line) for line in shown.splitlines()} <= {shape(line) for line in lines}
    assert [int(line.split()[1].partition("/")[0]) for line in lines if line.startswith("step")] == [
        *range(200, 4001, 200)
    ]
    found = metrics(ended)
    assert found["stepsOfThisStart"] == 4000 - first

    model = (ended.outputs / "model/model.npz").read_bytes()
    shutil.rmtree(ended.outputs)  # where `pulumi up` has another folder for each run
    whole = example.run(RUN)
    assert whole.succeeded, whole.failure
    assert metrics(whole) == {**found, "stepsOfThisStart": 4000}
    assert (whole.outputs / "model/model.npz").read_bytes() == model
