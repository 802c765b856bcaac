"""Findings of single steps: jobs, images, data, grants and guardrails."""

from typing import Any

import pytest
from vertex_training.review.changes import Cause, JobFinding
from vertex_training.review.markdown import render_markdown
from vertex_training.review.resources import DATA_BY_TYPE, DataLoss, Grant
from vertex_training.review.review import Review, Submissions, build_review

from tests.components.review.recorded_previews import find_step, parse, read_recorded


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
