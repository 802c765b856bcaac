"""The adapter example: a model is trained, then an adapter for it, saved alone; both keep checkpoints."""

import json
import re
from zipfile import ZipFile

import pytest
from vertex_training.rehearsal.runner import Ended

from tests.blocks import taken
from tests.examples.running import Example, metrics
from tests.vertex_emulator.running import RunningEmulator

pytestmark = pytest.mark.large
(LINES,) = taken("examples/adapter/README.md", "output", "step 25/100")
(METRICS,) = taken("examples/adapter/README.md", "json")


@pytest.fixture(scope="module")
def example(emulator: RunningEmulator) -> Example:
    return Example("adapter", emulator)


@pytest.fixture(scope="module")
def base(example: Example) -> Ended:
    ended = example.run("adapter-base")
    assert ended.succeeded, ended.failure
    return ended


@pytest.fixture(scope="module")
def begun(example: Example, base: Ended) -> float:
    """The loss after 25 steps, whose checkpoint is where the next run of the job goes on."""
    ended = example.run("adapter-tune --set vars.adapterSteps=25")
    assert ended.succeeded, ended.failure
    return metrics(ended)["loss"]


def test_the_adapter_is_small_and_lowers_the_loss(example: Example, base: Ended, begun: float) -> None:
    before = (base.outputs / "model/base.npz").read_bytes()
    ended = example.run("adapter-tune")
    assert ended.succeeded, ended.failure
    assert (base.outputs / "model/base.npz").read_bytes() == before
    lines = example.lines(ended)
    assert lines[0] == "goes on after step 25"
    assert [re.sub(r"\d\.\d+", "N", line) for line in lines[1:]] == [
        re.sub(r"\d\.\d+", "N", line) for line in LINES.splitlines()[1:]
    ]
    found = metrics(ended)
    assert found["loss"] < begun < found["lossWithout"] - 0.1
    assert found == pytest.approx(json.loads(METRICS), abs=0.05)

    assert sorted(path.name for path in (ended.outputs / "model").iterdir()) == ["adapter.npz", "metrics.json"]
    names = [name.removesuffix(".npy") for name in ZipFile(ended.outputs / "model/adapter.npz").namelist()]
    assert {name.rpartition(".")[2] for name in names} == {"in", "out"}
    checkpoint = ZipFile(ended.outputs / "checkpoints/checkpoint.npz").namelist()
    assert len(checkpoint) == 3 * len(names) + 1
