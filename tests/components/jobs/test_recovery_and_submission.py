"""Submission against an API that loses answers and refuses jobs, and how many submissions a run needs."""

from typing import Any

import pytest

from components.errors import SubmitFailed
from components.jobs.provider import CustomJobProvider
from components.jobs.recovery.ledger_resource import LedgerProvider
from components.jobs.refusal_explanations import build_quota_refusal_message
from components.runtime.submission_pacing import get_submission_pacing
from tests.components.fakes import FakeClient, start_new_process
from tests.vertex_api.jobs import custom_job, edited
from vertex_api import client_errors
from vertex_api.job_kinds import CUSTOM_JOB
from vertex_api.validation.canonical_spec import CanonicalSpec

PARENT = "projects/local/locations/us-central1"
NEW_ARGS = edited(custom_job(), "jobSpec", "workerPoolSpecs", 0, "containerSpec", "args", to=["--epochs=9"])
ACT_AS = "You do not have permission to act as service_account: x@acme.iam.gserviceaccount.com. (or it may not exist)"
custom = CustomJobProvider()


def inputs(name: str = "digits", **changes: Any) -> dict[str, Any]:
    return {"owner": f"team/dev/{name}", "parent": f"//local/{PARENT}", "spec": custom_job(), **changes}


@pytest.mark.parametrize("state", ["JOB_STATE_PENDING", "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED"])
def test_a_job_whose_answer_was_lost_is_found_in_any_state(api: FakeClient, state: str) -> None:
    api.lost_answer_state = state
    assert custom.create(inputs()).id == f"{PARENT}/customJobs/1"
    assert api.calls == ["list", "create", "list"]
    assert 'labels.pulumi_token="' in api.filters[1]


def test_an_equal_job_of_an_earlier_run_is_not_the_lost_one(api: FakeClient) -> None:
    custom.create(inputs())
    api.jobs[f"{PARENT}/customJobs/1"]["state"] = "JOB_STATE_FAILED"
    start_new_process()
    api.lost_answer_state = "JOB_STATE_PENDING"
    assert custom.create(inputs()).id == f"{PARENT}/customJobs/2"


@pytest.mark.parametrize("refusal", [client_errors.InvalidRequest, client_errors.PermissionDenied])
def test_a_missing_act_as_names_the_submitters(api: FakeClient, refusal: type[client_errors.VertexError]) -> None:
    api.failing["create"] = refusal(ACT_AS)
    with pytest.raises(SubmitFailed) as failure:
        custom.create(inputs())
    remedy = "add who runs `pulumi` to identity.submitters, or grant them roles/iam.serviceAccountUser on it"
    assert str(failure.value) == f"digits: not submitted: {ACT_AS}; {remedy}"


def test_a_missing_image_is_to_be_pushed(api: FakeClient) -> None:
    api.failing["create"] = client_errors.NotFound("404: The image x:1 does not exist.")
    with pytest.raises(SubmitFailed, match=r"The image x:1 does not exist\.; build and push it, or correct imageUri"):
        custom.create(inputs())
    api.failing["create"] = client_errors.NotFound("404: no such project")
    with pytest.raises(SubmitFailed, match=r"no such project$"):
        custom.create(inputs())


def test_a_quota_refusal_says_metric_region_need_and_page() -> None:
    metrics = ("aiplatform.googleapis.com/custom_model_training_cpus", "aiplatform.googleapis.com/invented")
    assert build_quota_refusal_message(
        metrics, CanonicalSpec(CUSTOM_JOB, custom_job()), "us-central1", "https://x"
    ) == (
        "the quota in us-central1 does not cover aiplatform.googleapis.com/custom_model_training_cpus "
        "(this job needs 4), aiplatform.googleapis.com/invented; ask for more at https://x"
    )


def count_of_run(api: FakeClient, olds: dict[str, dict[str, Any]], news: dict[str, dict[str, Any]]) -> int:
    """The submissions of a run whose jobs the engine checks and compares."""
    start_new_process()

    def ledger_inputs(jobs: dict[str, Any]) -> dict[str, Any]:
        return {"stack": "o/team/dev", "parent": PARENT, "jobs": dict.fromkeys(jobs, "customJobs"), "kept": []}

    LedgerProvider().check(ledger_inputs(olds) if olds else {}, ledger_inputs(news))
    for name, given in news.items():
        checked = custom.check(olds.get(name, {}), given).inputs
        if name in olds:
            custom.diff(f"{PARENT}/customJobs/1", olds[name], checked)
    return get_submission_pacing().count.min_submissions


def test_a_preview_counts_every_create_and_delete(api: FakeClient) -> None:
    job, edit = inputs(), inputs(spec=NEW_ARGS)
    assert count_of_run(api, {}, {"digits": job}) == 1
    assert count_of_run(api, {"digits": job}, {"digits": job}) == 0
    assert count_of_run(api, {"digits": job}, {"digits": edit}) == 2
    assert count_of_run(api, {"digits": job}, {"digits": job | {"lifecycle": {"wait": True}}}) == 0
    assert count_of_run(api, {"digits": job | {"lifecycle": {"onDelete": "keep"}}}, {"digits": edit}) == 1
    assert count_of_run(api, {"digits": job, "gone": inputs("gone")}, {"digits": edit}) == 3
