"""What a preview changes, and why: jobs, images, schedules, data, grants and guardrails."""

import json
from typing import Any

import pytest
from vertex_training.review.changes import Cause, JobFinding
from vertex_training.review.cloud import DATA_BY_TYPE, DataLoss, Grant
from vertex_training.review.markdown import render_markdown
from vertex_training.review.review import Review, Submissions, build_review, render_json
from vertex_training.workflow.source import workflow_source

from tests.blocks import taken
from tests.components.review.recorded_previews import find_step, parse, read_recorded
from tests.components.workflow.schedules import PLACE, WINDOW, request, scheduled


def review_of(fields: dict[str, Any]) -> Review:
    return build_review(parse(fields))


def edited_job(**inputs: Any) -> JobFinding:
    """Return what a review says of the job `train` if only these inputs differ; a value is old and new."""
    fields = read_recorded("machine-change")
    step = find_step(fields, "train")
    step["diffReasons"] = step["replaceReasons"] = []
    step["newState"]["inputs"] = {**step["oldState"]["inputs"], **{key: new for key, (_, new) in inputs.items()}}
    step["oldState"]["inputs"] |= {key: old for key, (old, _) in inputs.items() if old is not None}
    (job,) = (job for job in review_of(fields).jobs if job.name == "train")
    return job


def test_a_new_rerun_is_the_reason() -> None:
    assert edited_job(rerun=(None, 2)).causes == (Cause("field", "rerun", None, "2"),)


def test_changed_data_is_the_reason() -> None:
    old = {"uri": "gs://acme/train/", "objects": 1, "bytes": 3, "digest": "0", "contents": {"a": "0"}}
    new = {**old, "objects": 2, "bytes": 3_100_000_000, "digest": "1", "contents": {"a": "1", "b": "2"}}
    job = edited_job(data=({"train": old}, {"train": new}))
    assert job.causes == (Cause("data", "train", None, "1 object added, 1 changed, 3.1 GB"),)
    assert edited_job(data=(None, {"train": new})).causes == (
        Cause("data", "train", None, "locked now: 2 objects, 3.1 GB"),
    )
    assert edited_job(data=({"train": old}, {"train": "[secret]"})).causes[0].new_text == "changed"


def test_changed_data_is_shown_with_its_counts() -> None:
    fields = read_recorded("machine-change")
    step = find_step(fields, "train")
    old = {"uri": "gs://acme/train/", "objects": 1, "bytes": 3, "digest": "0", "contents": {"a": "0"}}
    step["oldState"]["inputs"]["data"] = {"train": old}
    step["newState"]["inputs"]["data"] = {"train": {**old, "digest": "1", "contents": {"b": "1"}}}
    assert "because of data `train`: `1 object added, 1 removed, 3 bytes`; " in render_markdown(review_of(fields))


def test_the_page_on_data_shows_the_reason() -> None:
    fields = read_recorded("machine-change")
    step = find_step(fields, "train")
    step["diffReasons"] = step["replaceReasons"] = []
    old = {"uri": "gs://acme/train/", "objects": 1, "bytes": 3, "digest": "0", "contents": {"a": "0"}}
    contents = dict.fromkeys("abcdefghijklm", "1")
    new = {**old, "objects": 13, "bytes": 3_100_000_000, "digest": "1", "contents": contents}
    for state, data in (("oldState", old), ("newState", new)):
        step[state]["inputs"] = {**step["oldState"]["inputs"], "data": {"train": data}}
    (shown,) = taken("docs/data.md", "output", "- `digits` (CustomJob)")
    assert shown.replace("digits", "train") in f"{render_markdown(review_of(fields))}\n"


@pytest.mark.parametrize("adopts", [False, True])
def test_a_job_under_another_urn_goes_on(adopts: bool) -> None:
    fields = read_recorded("machine-change")
    step = find_step(fields, "train")
    old = {**step, "op": "delete", "newState": None, "oldState": {**step["oldState"], "id": "customJobs/1"}}
    urn = step["urn"].replace("$pulumi-python", "$team:index:Squad$pulumi-python")
    new = {**step, "op": "create", "urn": urn, "oldState": None, "newState": {**step["oldState"]}}
    if adopts:
        new["newState"]["inputs"] = {**step["newState"]["inputs"], "adopt": "customJobs/1"}
    step.clear()
    step.update(new)
    fields["steps"].append(old)
    review = review_of(fields)
    jobs = [job for job in review.jobs if job.name == "train"]
    shown = {job.action: job.goes_on_as[-22:] for job in jobs}
    assert shown == {"go on": "Squad$CustomJob::train"} | ({"adopt": ""} if adopts else {})
    assert sum(job.submissions for job in jobs) == 0
    assert "`train` (CustomJob): goes on as `" in render_markdown(review)


@pytest.mark.parametrize("prefix", ["", "eu-"])
def test_a_renamed_job_names_the_key(prefix: str) -> None:
    def review_with(runs: dict[str, str]) -> Review:
        fields = read_recorded("rename")
        find_step(fields, "job-names")["newState"]["inputs"] |= {"runs": runs, "settings": {"prefix": prefix}}
        find_step(fields, "job-names")["oldState"]["inputs"]["runs"] = {"train": "0", "finetune": "1"}
        for name in ("train", "train-v2"):
            find_step(fields, name)["urn"] = find_step(fields, name)["urn"].replace(f"::{name}", f"::{prefix}{name}")
        return review_of(fields)

    renamed = review_with({"train-v2": "0", "finetune": "1"})
    assert {job.name: job.causes for job in renamed.jobs} == {
        f"{prefix}train": (),
        f"{prefix}train-v2": (Cause("name", "train"),),
    }
    other = review_with({"train-v2": "2", "finetune": "1"})
    assert {job.action: job.causes for job in other.jobs} == {"submit": (), "delete": ()}


TEAM, OWNER = {"team": "vision"}, {"team": "vision", "owner": "me"}


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (None, {"labels": TEAM}, '`labels` (none) → `{"team": "vision"}` from the next run on'),
        ({"labels": TEAM}, {"labels": OWNER}, "`labels.owner` (none) → `me` from the next run on"),
        ({"labels": TEAM}, None, '`labels` `{"team": "vision"}` → (none) from the next run on'),
        (None, {"displayName": "large"}, "`displayName` `first` → `large` from the next run on"),
    ],
)
def test_labels_wait_for_the_next_run(old: Any, new: Any, text: str) -> None:
    fields = read_recorded("machine-change")
    step = find_step(fields, "train")
    step |= {"op": "update", "diffReasons": ["nextRun"], "replaceReasons": []}
    inputs = {**step["oldState"]["inputs"], "spec": {**step["oldState"]["inputs"]["spec"], "displayName": "first"}}
    inputs["spec"].pop("labels", None)
    for state, pending in (("oldState", old), ("newState", new)):
        step[state]["inputs"] = {**inputs, **({"nextRun": pending} if pending else {})}
    shown = render_markdown(review_of(fields))
    assert f"- 1 job to update in place, without a new run, because of {text}: `train`\n" in shown


def test_a_new_run_waits_for_no_labels() -> None:
    edited = edited_job(rerun=(None, 2), nextRun=({"labels": {"team": "vision"}}, None))
    assert edited.causes == (Cause("field", "rerun", None, "2"),)


def test_a_forced_replacement_says_so() -> None:
    assert edited_job().causes == (Cause("request"),)


@pytest.mark.parametrize(
    ("lifecycle", "count", "text"),
    [
        ({}, 2, "to run again because"),
        ({"onDelete": "keep"}, 1, "to run again (the earlier run is kept) because"),
        ({"onDelete": "cancel"}, 1, "to run again (the earlier run is cancelled) because"),
    ],
)
def test_a_kept_run_costs_one_submission_less(lifecycle: dict[str, str], count: int, text: str) -> None:
    fields = read_recorded("machine-change")
    find_step(fields, "train")["oldState"]["inputs"]["lifecycle"] = lifecycle
    review = review_of(fields)
    (job,) = (job for job in review.jobs if job.name == "train")
    assert job.submissions == count
    assert text in render_markdown(review)


@pytest.mark.parametrize(("on_delete", "count"), [("delete", 1), ("cancel", 0), ("keep", 0)])
def test_a_job_that_leaves_the_stack_is_named(on_delete: str, count: int) -> None:
    fields = read_recorded("machine-change")
    step = find_step(fields, "train")
    step |= {"op": "delete", "newState": None}
    step["oldState"]["inputs"]["lifecycle"] = {"onDelete": on_delete}
    (job,) = (job for job in review_of(fields).jobs if job.name == "train")
    assert (job.action, job.submissions) == (on_delete, count)


def test_adopted_jobs_and_updates_submit_nothing() -> None:
    fields = read_recorded("machine-change")
    find_step(fields, "train")["op"] = "update"
    adopted = find_step(fields, "evaluate")
    adopted |= {"op": "create", "oldState": None}
    adopted["newState"]["inputs"]["adopt"] = "projects/1/locations/europe-west4/customJobs/1"
    review = review_of(fields)
    assert {job.name: job.action for job in review.jobs} == {"evaluate": "adopt", "train": "update"}
    assert review.submissions and review.submissions.count == 0


def test_a_value_that_is_not_known_yet_says_so() -> None:
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    fields = read_recorded("machine-change")
    find_step(fields, "train")["newState"]["inputs"]["spec"] = unknown
    text = render_markdown(review_of(fields))
    assert unknown not in text and "(known after the update)" in text
    assert "- `train` not counted: the spec is known after the update" in text


def test_an_image_of_many_files_names_none() -> None:
    fields = read_recorded("code-edit")
    find_step(fields, "trainer")["newState"]["inputs"]["files"] = None
    text = render_markdown(review_of(fields))
    assert "- image `trainer` is rebuilt: its files (more than 200, so none is listed)\n" in text


def test_a_build_argument_is_a_reason_to_rebuild() -> None:
    fields = read_recorded("code-edit")
    step = find_step(fields, "trainer")
    step["newState"]["inputs"] |= {"files": step["oldState"]["inputs"]["files"], "buildArgs": {"CUDA": "12"}}
    text = render_markdown(review_of(fields))
    assert "- image `trainer` is rebuilt: `buildArgs.CUDA` (none) → `12`\n" in text


@pytest.mark.parametrize("type_", sorted(DATA_BY_TYPE))
@pytest.mark.parametrize("op", ["delete", "replace"])
def test_data_is_lost_with_what_holds_it(type_: str, op: str) -> None:
    fields = read_recorded("bucket-removed")
    step = find_step(fields, "bucket")
    step |= {"op": op, "urn": step["urn"].replace("gcp:storage/bucket:Bucket", type_)}
    review = review_of(fields)
    assert review.data_losses == (DataLoss("bucket", type_, op, "acme-dev-vertex-training-dev", DATA_BY_TYPE[type_]),)
    step["oldState"]["retainOnDelete"] = True
    assert review_of(fields).data_losses == ()


def test_a_grant_that_moves_goes_and_appears() -> None:
    account = "serviceAccount:vertex-training-dev@acme-dev.iam.gserviceaccount.com"
    buckets = {False: "acme-dev-vertex-training-dev", True: "gs-of-the-team"}
    found = [
        Grant(grant.is_new, grant.role.partition(" if ")[0], grant.member, grant.target)
        for grant in review_of(read_recorded("bucket-removed")).grants
    ]
    assert found == [
        Grant(is_new, f"roles/storage.{role}", account, buckets[is_new])
        for role in ("legacyBucketReader", "objectViewer", "objectUser")
        for is_new in (False, True)
    ]


def test_a_condition_of_a_grant_is_shown_whole() -> None:
    expression = 'resource.name.startsWith("projects/_/buckets/b/objects/' + "a" * 200 + '/team/dev/")'
    fields = read_recorded("bucket-removed")
    find_step(fields, "bucket-write")["newState"]["inputs"]["condition"] = {"title": "t", "expression": expression}
    text = render_markdown(review_of(fields))
    assert f"- granted: `roles/storage.objectUser if {expression}` for" in text
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    find_step(fields, "bucket-write")["newState"]["inputs"]["condition"] = {"title": "t", "expression": unknown}
    assert "objectUser if {" in render_markdown(review_of(fields)).replace('\\"', '"')
    assert unknown not in render_markdown(review_of(fields))


def test_guardrails_are_near_from_four_fifths_on() -> None:
    fields = read_recorded("machine-change")
    for limit, is_near in ((0.98, False), (0.97, True)):
        fields["config"]["vertex-training:guardrails"] = f'{{"maxHourlyCost": {limit}}}'
        assert bool(review_of(fields).near_limits) == is_near  # 0.78 USD an hour


def test_own_prices_of_the_stack_count() -> None:
    fields = read_recorded("machine-change")
    prices = '{"asOf": "2026-11-01", "source": "our contract", "vcpu": {"N1": {"europe-west4": 1.0}}}'
    fields["config"]["vertex-training:prices"] = prices
    review = review_of(fields)
    assert review.before and review.after
    # 4 and 4 vCPUs, then 8 and 4.
    assert 3.9 < review.after.sums["hourly"] - review.before.sums["hourly"] < 4.2


def test_a_persistent_resource_costs_without_an_end() -> None:
    fields = read_recorded("machine-change")
    step = find_step(fields, "train")
    type_ = "gcp:vertex/aiPersistentResource:AiPersistentResource"
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "2", "diskSpec": None}
    machines = {
        "op": "create",
        "urn": f"urn:pulumi:dev::vertex-training::{type_}::machines",
        "newState": {"custom": True, "inputs": {"location": "europe-west4", "resourcePools": [pool]}},
    }
    fields["steps"].append(machines)
    without, review = review_of(read_recorded("machine-change")), review_of(fields)
    assert step["op"] == "replace" and without.after and review.after
    assert review.after.endless == ("persistentResource",)
    assert review.after.sums["ceiling"] == without.after.sums["ceiling"]
    assert review.after.sums["hourly"] == pytest.approx(without.after.sums["hourly"] + 2 * 0.2700022, abs=1e-4)
    assert review.after.quota["cpus"] == without.after.quota["cpus"] + 8


def test_a_local_stack_has_no_cost_and_no_pace() -> None:
    fields = read_recorded("machine-change")
    fields["config"]["vertex-training:target"] = "local"
    fields["diagnostics"] = []
    for step in fields["steps"]:
        for state in (step.get("oldState"), step.get("newState")):
            if state and "parent" in state.get("inputs", {}):
                state["inputs"]["parent"] = "//local/projects/local/locations/us-central1"
    text = render_markdown(review_of(fields))
    assert "2 jobs to run again" in text
    assert "USD" not in text and "submission" not in text and "cpus" not in text


@pytest.mark.parametrize(
    ("count", "per_minute", "text"),
    [
        (1, 60, "1 submission"),
        (60, 60, "60 submissions"),
        (61, 60, "61 submissions: at least 1 min at 60 a minute"),
        (240, 60, "240 submissions: at least 4 min at 60 a minute"),
        (240, None, "240 submissions"),
    ],
)
def test_submissions_say_how_long_they_take(count: int, per_minute: int | None, text: str) -> None:
    assert Submissions(count, per_minute).text == text


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


def step(op: str, type_and_suffix: tuple[str, str], old: Any, new: Any, name: str = "nightly") -> dict[str, Any]:
    type_, suffix = type_and_suffix
    states = {"oldState": old, "newState": new}
    shown = {key: {"custom": True, "inputs": inputs} for key, inputs in states.items() if inputs is not None}
    return {"op": op, "urn": f"{URN}{type_}::{name}{suffix}", **shown}


DAILY = {"schedule": "0 2 * * *", "timeZone": "UTC", "paused": False}


def workflow(*jobs: str) -> dict[str, Any]:
    """The inputs of the workflow of a schedule, whose jobs take two hours at most."""
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": {"imageUri": "r/a"}}
    spec = {"jobSpec": {"workerPoolSpecs": [pool], "scheduling": {"timeout": "7200s"}}}
    known = request("id", *(scheduled("id", each, spec) for each in jobs))
    return {"sourceContents": workflow_source(known, PLACE, WINDOW), "region": PLACE.region}


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
    next_times = "next runs: Mon 2026-11-23 02:00 CET, Tue 2026-11-24 02:00 CET, Wed 2026-11-25 02:00 CET"
    message = {"severity": "info", "message": f"{next_times}\n", "urn": f"{URN.removesuffix('$')}::nightly"}
    new = [step("create", WORKFLOW, None, workflow("train", "test")), step("create", SCHEDULER, None, DAILY)]
    text = render_markdown(build_review(parse({"steps": new, "diagnostics": [message], "changeSummary": {}})))
    assert "All schedules that are not paused: at most nothing → 29.86 USD a month\n" in text
    described = f"`{next_times}`; `0.98 USD a run, 29.86 USD a month (30.4 runs a month)`"
    assert f"- `nightly` is new: `0 2 * * *` in `UTC`; {described}\n" in text


def test_all_schedules_of_a_program_are_counted() -> None:
    """Declared and programmed ones are in different parts of what a preview prints."""
    steps = [step("same", WORKFLOW, workflow("train"), workflow("train")), step("same", SCHEDULER, DAILY, DAILY)]
    weekly = {**DAILY, "schedule": "0 2 * * SUN"}
    other = [step("update", WORKFLOW, workflow("train"), workflow("train"), name="weekly")]
    other += [step("update", SCHEDULER, DAILY, weekly, name="weekly")]
    paused = [step("same", WORKFLOW, workflow("train"), workflow("train"), name="paused")]
    paused += [step("same", SCHEDULER, {**DAILY, "paused": True}, {**DAILY, "paused": True}, name="paused")]
    review = reviewed(*steps, *other, *paused)
    assert (review.monthly_before, review.monthly_after) == ("29.86 USD a month", "17.06 USD a month")
    assert "schedules 29.86 USD a month → 17.06 USD a month at most" in render_markdown(review).splitlines()[1]
    assert review.after and review.after.sums["ceiling"] == 0  # what `pulumi up` runs


def test_a_schedule_that_is_not_known_is_named() -> None:
    unknown = {"sourceContents": "04da6b54-80e4-46f7-96ec-b56ff0331ba9", "region": "us-central1"}
    review = reviewed(step("create", WORKFLOW, None, unknown), step("create", SCHEDULER, None, DAILY))
    assert review.after and review.after.unknown == ("nightly",) and review.monthly_after == ""
