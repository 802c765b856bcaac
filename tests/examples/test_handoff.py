"""The hand-off example: the second job reads what the first one has saved, and judges it."""

import pytest
from vertex_training.rehearsal.runner import Ended

from tests.blocks import taken
from tests.examples.running import Example, metrics
from tests.vertex_emulator.running import RunningEmulator

(ACCURACY,) = taken("examples/handoff/README.md", "output", "accuracy")
(USED,) = taken("examples/handoff/README.md", "output", "handoff-fit: uses")
(REFUSED,) = taken("examples/handoff/README.md", "output", "check.py")


@pytest.fixture(scope="module")
def example(emulator: RunningEmulator) -> Example:
    return Example("handoff", emulator)


@pytest.fixture(scope="module")
def fitted(example: Example) -> Ended:
    ended = example.run("handoff-fit")
    assert ended.succeeded, ended.failure
    return ended


def test_the_check_measures_the_fitted_model(example: Example, fitted: Ended) -> None:
    checked = example.run("handoff-check")
    assert checked.succeeded, checked.failure
    (pool,) = checked.submitted.job_spec["workerPoolSpecs"]
    model = f"{fitted.submitted.job_spec['baseOutputDirectory']['outputUriPrefix']}/model/"
    assert f"--model={model}" in pool["containerSpec"]["args"]
    assert example.lines(checked) == ACCURACY.splitlines()
    assert metrics(checked) == {"accuracy": float(ACCURACY.split()[1]), "points": 2000}
    assert metrics(fitted)["accuracy"] > 0.85
    used = {"handoff-fit": fitted, "handoff-check": checked}
    assert [f"{name}: {line}" for name, each in used.items() for line in each.needs.lines] == USED.splitlines()


def test_a_model_below_the_bar_fails_the_check(example: Example, fitted: Ended) -> None:
    checked = example.run("handoff-check --set vars.handoffFloor=0.95")
    assert not checked.succeeded
    # The reason is written to standard error, which the log may have before what was printed.
    assert sorted(example.lines(checked)) == (ACCURACY + REFUSED).splitlines()
    assert metrics(checked)["accuracy"] < 0.95
