"""The command `vertex-training check-plan`: exit codes and messages."""

import json
from pathlib import Path

import pytest
from vertex_training.cli import main

from tests.components.review.test_preview_review_command import write

PLAN = json.dumps({"manifest": {"time": "2026-11-22T15:39:33.609928867Z"}, "resourcePlans": {}})


@pytest.mark.parametrize(
    ("deployment", "code"),
    [
        ({"manifest": {"time": "2026-11-22T15:39:32.9Z"}}, 0),
        ({"manifest": {"time": "0001-01-01T00:00:00Z"}}, 0),
        ({}, 0),
        ({"manifest": {"time": "2026-11-22T16:39:34.1+01:00"}}, 1),
        ({"manifest": {"time": "2026-11-22T14:39:34-02:00"}}, 1),
    ],
)
def test_a_plan_older_than_the_state_is_rejected(
    deployment: dict[str, object], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = write(tmp_path, "plan.json", PLAN)
    state = write(tmp_path, "state.json", json.dumps({"version": 3, "deployment": deployment}))
    assert main(["check-plan", plan, state]) == code
    message = capsys.readouterr().err
    assert ("is older than the state: it was saved at 2026-11-22 15:39:33 UTC" in message) == bool(code)
    assert ("preview with --save-plan again, and review that" in message) == bool(code)


@pytest.mark.parametrize(
    ("plan", "state", "message"),
    [
        ("{}", "{}", "plan.json: is not a plan of `pulumi preview --save-plan`"),
        (PLAN, "{}", "state.json: is not a state of `pulumi stack export`"),
        (PLAN, "no", "state.json: is not a state of `pulumi stack export`"),
        (PLAN, '{"deployment": {"manifest": {"time": "noon"}}}', "state.json: has no time in its manifest"),
        (PLAN, '{"deployment": {"manifest": 7}}', "state.json: has no time in its manifest"),
    ],
)
def test_what_is_no_plan_or_state_is_named(
    plan: str, state: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(tmp_path, "plan.json", plan), write(tmp_path, "state.json", state)
    assert main(["check-plan", *files]) == 1
    assert capsys.readouterr().err == f"vertex-training: {tmp_path}/{message}\n"
