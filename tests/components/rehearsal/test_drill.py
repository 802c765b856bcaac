"""Drills: a job again with a fault at its middle, and whether its second start went on."""

import json
from pathlib import Path
from typing import Any

import pytest
from vertex_training.rehearsal.drill import Steps, is_same, judge
from vertex_training.rehearsal.rehearse import Options, rehearse

from .declared import Write, job, left

TRAINER = """
import json, os, sys, time
base = os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/")
os.makedirs(base, exist_ok=True)
kept = base + "/checkpoint.json"
state = {"step": 0, "loss": 1.0}
if "keeps" in sys.argv and os.path.exists(kept):
    state = json.load(open(kept))
while state["step"] < 24:
    time.sleep(0.25)
    state = {"step": state["step"] + 1, "loss": state["loss"] * 0.9}
    print("step", state["step"], "loss", state["loss"], flush=True)
    if "keeps" in sys.argv and state["step"] % 4 == 0:
        json.dump(state, open(kept + "-new", "w"))
        os.rename(kept + "-new", kept)
json.dump({"loss": state["loss"]}, open(base + "/metrics.json", "w"))
"""


def drilled(project: Write, tmp_path: Path, faults: str, *names: str) -> dict[str, list[dict[str, Any]]]:
    """The drills of a trainer with and without checkpoints, as they are saved."""
    project("".join(f"  {name}: {job(TRAINER, name)}" for name in names))
    file = tmp_path / "saved.json"
    assert rehearse(Options(drill=faults, save=file)) == 0
    assert left(tmp_path) == []
    return {each["name"]: each["drills"] for each in json.loads(file.read_text())["jobs"]}


def test_drills_tell_trainers_with_checkpoints_from_others(project: Write, tmp_path: Path) -> None:
    told = drilled(project, tmp_path, "restart", "keeps", "forgets")
    (kept,), (forgot,) = told["keeps"], told["forgets"]
    assert kept["resumed"] and kept["fromStep"] % 4 == 1 and kept["fromStep"] >= 9, kept
    assert 0 <= kept["lostSteps"] < 12 and kept["sameEnd"] and kept["outcome"] == "succeeded", kept
    assert kept["metrics"] == {"loss": pytest.approx(0.9**24)}
    assert (forgot["resumed"], forgot["fromStep"], forgot["outcome"]) == (False, 1, "succeeded")
    assert forgot["lostSteps"] >= 13, forgot


def test_a_fault_may_end_the_job(project: Write, tmp_path: Path) -> None:
    preempted, killed = drilled(project, tmp_path, "preempt,out-of-memory", "forgets")["forgets"]
    for drill in (preempted, killed):
        assert (drill["resumed"], drill["fromStep"], drill["outcome"]) == (False, 1, "succeeded")
    assert "submitted again" in killed["reason"] and "reason" not in preempted  # it ran as on Spot machines


def test_without_steps_nothing_is_claimed(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    project("  silent: " + job("import time; time.sleep(6)"))
    assert rehearse(Options(drill="restart", save=tmp_path / "saved.json")) == 0
    (told,) = json.loads((tmp_path / "saved.json").read_text())["jobs"][0]["drills"]
    assert "resumed" not in told and "`step 40`" in told["reason"] and told["outcome"] == "succeeded"
    assert "restart: is not known to go on" in capfd.readouterr().out
    assert rehearse(Options(drill="restrt")) == 2
    assert (
        "--drill: restrt is not one of preempt, restart, out-of-memory; did you mean restart" in capfd.readouterr().err
    )


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (["step 1", "step 2"], "step"),
        (["epoch 1 step 1", "epoch 1 step 2", "epoch 2 step 1"], "epoch"),
        (["Epoch [1/3]", "Epoch [2/3]"], "epoch"),
        (['{"step": 10}', '{"step": 20}'], "step"),
        (["global_step=4", "global_step=8"], "step"),
        (["Iteration: 5", "iteration: 6"], "iteration"),
        (["steps per epoch: 50", "steps per epoch: 60"], ""),
        (["epochs 1", "epochs 2", "timestep 4", "timestep 5"], ""),
        (["step 7"], ""),
        ([], ""),
    ],
)
def test_steps_are_found_in_lines(lines: list[str], word: str) -> None:
    steps = Steps()
    for line in lines:
        steps.add(0, line)
    assert steps.word() == word


WHOLE = [10, 20, 30, 40, 50, 60]


@pytest.mark.parametrize(
    ("first", "second", "succeeded", "told"),
    [
        ([10, 20, 30], [40, 50, 60], True, {"resumed": True, "fromStep": 40, "lostSteps": 0}),
        ([10, 20, 30], [20, 30], False, {"resumed": True, "fromStep": 20, "lostSteps": 20}),
        ([10, 20, 30], [10, 20, 30], True, {"resumed": False, "fromStep": 10, "lostSteps": 30}),
        ([10, 20, 30], [], False, {"resumed": False}),
        (WHOLE, [], True, {"resumed": True, "lostSteps": 0, "reason": "nothing was left to do"}),
    ],
)
def test_two_starts_are_judged(first: list[int], second: list[int], succeeded: bool, told: dict[str, Any]) -> None:
    assert judge(WHOLE, first, second, succeeded=succeeded) == told


def test_doubtful_drills_say_why() -> None:
    assert "before its first step" in judge(WHOLE, [], [10], succeeded=True)["reason"]
    outside = judge(WHOLE, [60], [60], succeeded=True)
    assert outside["resumed"] and "outside its output folder" in outside["reason"]


def test_metrics_may_differ_a_little() -> None:
    assert is_same({"loss": 1.0}, {"loss": 1.04, "other": 7})
    assert not is_same({"loss": 1.0}, {"loss": 1.2}) and not is_same({"loss": 1.0}, {})
