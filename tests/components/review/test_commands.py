"""The commands `vertex-training review` and `check-plan`: exit codes and messages."""

import io
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from vertex_training.cli import main

from tests.components.review.recorded_previews import HERE

RECORDED = HERE / "recorded"


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_review_is_written_as_markdown_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", str(RECORDED / "code-edit.json")]) == 0
    assert capsys.readouterr().out == (HERE / "golden" / "code-edit.md").read_text()
    assert main(["review", "--format", "json", str(RECORDED / "code-edit.json")]) == 0
    review = json.loads(capsys.readouterr().out)
    assert [job["name"] for job in review["jobs"]] == ["evaluate", "train"] and review["omitted"] == {}
    assert review["images"][0]["changed_files"] == ["Dockerfile", "train.py"]


def test_a_failed_preview_has_a_review_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", str(RECORDED / "guardrail-refusal.json")]) == 0
    assert "**The preview failed: 2 problems.**" in capsys.readouterr().out


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    data = (RECORDED / "first.json").read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert main(["review", "-"]) == 0
    assert capsys.readouterr().out == (HERE / "golden" / "first.md").read_text()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty; `pulumi preview --json` failed before it began, and says why on standard error"),
        ("Previewing update (dev):\n", "is not the output of `pulumi preview --json`: Expecting value"),
        ("[]", "is not the output of `pulumi preview --json`"),
        ('{"version": 3, "deployment": {}}', "is not the output of `pulumi preview --json`"),
        ('{"steps": [{"op": "create"}]}', "is not the output of `pulumi preview --json`"),
        ('{"steps": [{"op": "create", "urn": "x"}]}', "is not the output of `pulumi preview --json`"),
        ('{"steps": 3}', "is not the output of `pulumi preview --json`"),
        ('{"diagnostics": [7]}', "is not the output of `pulumi preview --json`"),
        ("[" * 100_000, "is not the output of `pulumi preview --json`"),
    ],
)
def test_what_is_no_preview_has_one_error(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, "preview.json", text)
    assert main(["review", file]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith(f"vertex-training: {file}: {reason}")
    assert captured.err.count("\n") == 1


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", str(tmp_path / "none.json")]) == 1
    assert capsys.readouterr().err == f"vertex-training: {tmp_path}/none.json: No such file or directory\n"


def test_a_base_of_another_stack_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    base = str(RECORDED / "promotion.json")
    assert main(["review", str(RECORDED / "first.json"), "--base", base]) == 1
    assert "is a preview of vertex-training/prod; preview vertex-training/dev there" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["review", "check-plan"])
def test_help_shows_an_example_and_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    assert f"vertex-training {command}" in shown and "pulumi preview" in shown and "exit codes: 0 " in shown


def test_an_operation_is_no_place_for_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preview = json.loads((RECORDED / "bucket-removed.json").read_text())
    for step in preview["steps"]:
        step["op"] = "<img src=x> @everyone \x1b[2J"
    assert main(["review", write(tmp_path, "p.json", json.dumps(preview))]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.endswith(
        "p.json: is not the output of `pulumi preview --json`; write only its standard output\n"
    )


HOSTILE_VALUES = {
    "a lifecycle that is a text": ("lifecycle", "now"),
    "a lifecycle that nests without end": ("lifecycle", json.loads("[" * 400 + "]" * 400)),
    "a spec that is a list": ("spec", [[[]]]),
    "a spec of no number": ("spec", {"jobSpec": {"workerPoolSpecs": [{"replicaCount": float("inf")}]}}),
}


@pytest.mark.parametrize("hostile", HOSTILE_VALUES.values(), ids=list(HOSTILE_VALUES))
def test_values_of_no_preview_are_one_line(
    tmp_path: Path, hostile: "tuple[str, object]", capsys: pytest.CaptureFixture[str]
) -> None:
    preview = json.loads((RECORDED / "code-edit.json").read_text())
    for step in preview["steps"]:
        for state in (step.get("oldState"), step.get("newState")):
            if state and hostile[0] in state.get("inputs", {}):
                state["inputs"][hostile[0]] = hostile[1]
    code = main(["review", write(tmp_path, "p.json", json.dumps(preview))])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err and (code == 0 or shown.err.count("\n") == 1)


def test_endless_counts_are_no_preview(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "p.json", '{"steps": [], "changeSummary": {"same": 1e999}}')
    assert main(["review", file]) == 1
    assert "is not the output of `pulumi preview --json`" in capsys.readouterr().err


def test_names_of_a_million_characters_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preview = json.loads((RECORDED / "bucket-removed.json").read_text())
    for step in preview["steps"]:
        step["urn"] += "x" * 1_000_000
    assert main(["review", write(tmp_path, "p.json", json.dumps(preview))]) == 0
    review = capsys.readouterr().out
    assert len(review) <= 60_000 and review.endswith("**Longer lines are left out: see the preview itself.**\n")


def test_a_file_larger_than_any_preview_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.json").touch()
    os.truncate(tmp_path / "p.json", (256 << 20) + 1)
    assert main(["review", str(tmp_path / "p.json")]) == 1
    assert capsys.readouterr().err.endswith("p.json: has more than 256 MiB, which no preview needs\n")


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
