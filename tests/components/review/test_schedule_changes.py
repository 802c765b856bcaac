"""Schedules in a review: new, changed and removed ones of both targets, and the reason in a word."""

import json
from typing import Any

import pytest
from vertex_training.review.markdown import render_markdown
from vertex_training.review.review import Review, build_review, render_json

from tests.components.review.recorded_previews import parse

URN = "urn:pulumi:dev::team::vertex-training:index:Schedule$"
LOCAL = ("pulumi-python:dynamic/vertex-training:EmulatorSchedule", "")
WORKFLOW = ("gcp:workflows/workflow:Workflow", "-workflow")
SCHEDULER = ("gcp:cloudscheduler/job:Job", "-scheduler")
STATUS = ("pulumi-python:dynamic/vertex-training:ScheduleStatus", "")
IMAGE = "urn:pulumi:dev::team::pulumi-python:dynamic/vertex-training:TrainingImage::trainer"


def body(image: str = "r/trainer:1", args: str = "--epochs=1") -> dict[str, Any]:
    pool = {"containerSpec": {"imageUri": image, "args": [args]}}
    return {"jobSpec": {"workerPoolSpecs": [pool]}}


def local(**changes: Any) -> dict[str, Any]:
    """The inputs of a schedule of the emulator."""
    jobs = [{"name": "digits", "collection": "customJobs", "body": changes.pop("body", body())}]
    return {
        "cron": "0 2 * * *",
        "timeZone": "Europe/Berlin",
        "paused": False,
        "overlap": "skip",
        "jobs": jobs,
        **changes,
    }


def step(op: str, type_and_suffix: tuple[str, str], old: Any, new: Any) -> dict[str, Any]:
    type_, suffix = type_and_suffix
    states = {"oldState": old, "newState": new}
    shown = {key: {"custom": True, "inputs": inputs} for key, inputs in states.items() if inputs is not None}
    return {"op": op, "urn": f"{URN}{type_}::nightly{suffix}", **shown}


def reviewed(*steps: dict[str, Any]) -> Review:
    return build_review(parse({"steps": list(steps), "changeSummary": {}}))


def schedules(*steps: dict[str, Any]) -> list[str]:
    """What the review says of schedules."""
    review = reviewed(*steps)
    assert review.other_changes == ()
    assert len(json.loads(render_json(review))["schedules"]) == len(review.schedules)
    text = render_markdown(review)
    return text.partition("**Schedules**\n\n")[2].partition("\n\n")[0].splitlines()


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (None, local(), "- `nightly` is new: `0 2 * * *` in `Europe/Berlin`"),
        (local(paused=True), None, "- `nightly` is removed: `0 2 * * *` in `Europe/Berlin`, paused"),
        (
            local(),
            local(cron="0 3 * * *"),
            "- `nightly` (`0 3 * * *` in `Europe/Berlin`) changes because of `cron` `0 2 * * *` → `0 3 * * *`",
        ),
        (
            local(),
            local(paused=True),
            "- `nightly` (`0 2 * * *` in `Europe/Berlin`, paused) changes because of `paused` `false` → `true`",
        ),
        (
            local(),
            local(body=body("r/trainer:2")),
            "- `nightly` (`0 2 * * *` in `Europe/Berlin`) changes because of image `trainer` `:1` → `:2`",
        ),
    ],
)
def test_a_schedule_of_the_emulator_is_described(old: Any, new: Any, text: str) -> None:
    op = "create" if old is None else "delete" if new is None else "update"
    assert schedules(step(op, LOCAL, old, new)) == [text]


def test_an_image_of_the_stack_is_named() -> None:
    built = {"op": "replace", "urn": IMAGE, "oldState": {"custom": True, "inputs": {"uri": "r/trainer:1", "files": {}}},
             "newState": {"custom": True, "inputs": {"uri": "r/trainer:2", "files": {"a": "1"}}}}  # fmt: skip
    (finding,) = reviewed(built, step("update", LOCAL, local(), local(body=body("r/trainer:2")))).schedules
    assert [(cause.kind, cause.name) for cause in finding.causes] == [("image", "trainer")]


def test_a_workflow_s_source_is_compared_by_its_parts() -> None:
    def source(request: dict[str, Any]) -> dict[str, Any]:
        return {"sourceContents": json.dumps({"main": {"steps": [{"submit": {"args": {"body": request}}}]}}, indent=1)}

    scheduler = {"schedule": "0 2 * * *", "timeZone": "UTC", "paused": False}
    workflow = step("update", WORKFLOW, source(body()), source(body("r/trainer:2")))
    status = step("same", STATUS, {}, {})
    unchanged = step("same", SCHEDULER, scheduler, scheduler)
    assert schedules(workflow, status, unchanged) == [
        "- `nightly` (`0 2 * * *` in `UTC`) changes because of image `trainer` `:1` → `:2`"
    ]
    later = step("update", SCHEDULER, scheduler, {**scheduler, "schedule": "0 3 * * *"})
    both = schedules(later, step("update", STATUS, {"cron": "0 2 * * *"}, {"cron": "0 3 * * *"}))
    assert both == ["- `nightly` (`0 3 * * *` in `UTC`) changes because of `cron` `0 2 * * *` → `0 3 * * *`"]
    new = [step("create", WORKFLOW, None, source(body())), step("create", SCHEDULER, None, scheduler)]
    assert schedules(*new, step("create", STATUS, None, {})) == ["- `nightly` is new: `0 2 * * *` in `UTC`"]


def test_a_workflow_of_somebody_else_is_another_resource() -> None:
    other = step("create", WORKFLOW, None, {})
    other["urn"] = other["urn"].replace("vertex-training:index:Schedule$", "")
    review = reviewed(other)
    assert (review.schedules, [change.name for change in review.other_changes]) == ((), ["nightly-workflow"])


def test_the_summary_counts_schedules() -> None:
    text = render_markdown(reviewed(step("create", LOCAL, None, local())))
    assert "**1 schedule to change.**" in text


def test_next_times_and_cost_are_those_of_the_preview() -> None:
    cost = "Cost in us-central1: 1.00 USD an hour\n  job  an hour\nSchedules in us-central1, at most by list price:\n"
    cost += "  nightly: 0.49 USD a run, 14.93 USD a month (30.4 runs a month)\n  other: 1.00 USD a run"
    next_times = "next runs: Mon 2026-11-23 02:00 CET, Tue 2026-11-24 02:00 CET, Wed 2026-11-25 02:00 CET"
    messages = [
        {"severity": "info", "message": cost},
        {"severity": "info", "message": f"{next_times}\n", "urn": f"{URN.removesuffix('$')}::nightly"},
    ]
    new = step("create", LOCAL, None, local())
    text = render_markdown(build_review(parse({"steps": [new], "diagnostics": messages, "changeSummary": {}})))
    described = f"`{next_times}`; `0.49 USD a run, 14.93 USD a month (30.4 runs a month)`"
    assert f"- `nightly` is new: `0 2 * * *` in `Europe/Berlin`; {described}\n" in text
