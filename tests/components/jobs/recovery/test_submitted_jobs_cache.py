"""The cache: one list of a collection finds all jobs that a stack has submitted, whatever happens meanwhile."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from vertex_training.errors import SubmitFailed
from vertex_training.jobs.provider import CustomJobProvider, HyperparameterTuningJobProvider
from vertex_training.jobs.recovery.submitted_jobs_cache import SubmittedJobsCache, get_submitted_jobs_cache
from vertex_training.runtime import target

from tests.components.fakes import Clock, FakeClient, start_new_process
from tests.vertex_api.jobs import custom_job, tuning_job
from vertex_api import errors
from vertex_api.names import CUSTOM_JOB

PARENT = "projects/local/locations/us-central1"
FIRST = f"{PARENT}/customJobs/1"
custom, tuning = CustomJobProvider(), HyperparameterTuningJobProvider()


def inputs(name: str = "digits", spec: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {"owner": f"team/dev/{name}", "parent": f"//local/{PARENT}", "spec": spec or custom_job(), **changes}


def test_many_creates_list_each_collection_once(api: FakeClient) -> None:
    jobs = [(custom, inputs(f"a{number}")) for number in range(50)]
    jobs += [(tuning, inputs(f"b{number}", tuning_job())) for number in range(50)]
    api.before = lambda verb: time.sleep(0.1) if verb == "list" else None  # so that all four threads want it
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda job: job[0].create(job[1]), jobs))
    assert sorted(api.calls) == ["create"] * 100 + ["list"] * 2
    assert set(api.filters) == {'labels.pulumi_project="team" AND labels.pulumi_stack="dev"'}


def test_a_resumed_up_adopts_jobs_with_one_list(
    api: FakeClient,
) -> None:
    names = [custom.create(inputs(f"a{number}")).id for number in range(20)]
    start_new_process()
    api.calls.clear()
    assert [custom.create(inputs(f"a{number}")).id for number in range(30)][:20] == names
    assert (api.calls.count("list"), api.calls.count("get"), api.calls.count("create")) == (1, 20, 10)


def test_each_stack_and_parent_has_its_own_list(api: FakeClient) -> None:
    custom.create(inputs())
    custom.create(inputs() | {"owner": "team/prod/digits"})
    custom.create(inputs() | {"parent": "//local/projects/local/locations/europe-west4"})
    assert api.calls.count("list") == 3
    assert len(api.sent) == 3


def test_the_next_job_retries_a_failed_list(api: FakeClient) -> None:
    api.failing["list"] = errors.Unavailable("no answer")
    with pytest.raises(SubmitFailed, match=r"^digits: not submitted: no answer$"):
        custom.create(inputs())
    api.failing.clear()
    custom.create(inputs())
    assert api.calls == ["list", "list", "create"]


@pytest.mark.parametrize("state", ["FAILED", "CANCELLING", "CANCELLED", "EXPIRED"])
def test_a_job_failed_since_listing_is_not_adopted(api: FakeClient, state: str) -> None:
    custom.create(inputs())
    start_new_process()
    custom.create(inputs("other"))
    api.jobs[FIRST]["state"] = f"JOB_STATE_{state}"
    assert custom.create(inputs()).id == f"{PARENT}/customJobs/3"


def test_a_job_deleted_since_listing_yields_to_another(
    api: FakeClient,
) -> None:
    custom.create(inputs())
    older = dict(api.jobs[FIRST])
    start_new_process()
    api.jobs[FIRST]["state"] = "JOB_STATE_FAILED"
    newer = custom.create(inputs()).id
    api.jobs[FIRST] = older
    start_new_process()
    custom.create(inputs("other"))
    del api.jobs[newer]
    assert custom.create(inputs()).id == FIRST
    del api.jobs[FIRST]
    start_new_process()
    custom.create(inputs("third"))
    assert custom.create(inputs()).id not in (FIRST, newer)


@pytest.mark.parametrize("on_delete", ["delete", "cancel", "keep"])
@pytest.mark.parametrize("state", ["RUNNING", "SUCCEEDED"])
@pytest.mark.parametrize("listed", [True, False], ids=["listed before", "listed after"])
def test_a_forced_replacement_is_always_another_job(
    api: FakeClient, clock: Clock, on_delete: str, state: str, listed: bool
) -> None:
    given = inputs(lifecycle={"onDelete": on_delete})
    old = custom.create(given).id
    start_new_process()
    api.jobs[old]["state"] = f"JOB_STATE_{state}"
    api.coming[old] = [f"JOB_STATE_{state}", "JOB_STATE_CANCELLED"] if state == "RUNNING" else []
    if listed:
        custom.create(inputs("other"))
    custom.delete(old, given)
    before = len(api.sent)
    # The fake numbers jobs by their count, as no service does.
    api.add(f"{PARENT}/customJobs/900", state="JOB_STATE_SUCCEEDED", labels={})
    new = custom.create(given).id
    assert new != old
    assert len(api.sent) == before + 1


def test_a_running_job_is_deleted_before_its_replacement(api: FakeClient, clock: Clock) -> None:
    old = custom.create(inputs()).id
    start_new_process()
    custom.create(inputs("other"))
    api.calls.clear()
    api.coming[old] = ["JOB_STATE_RUNNING", "JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED"]
    custom.delete(old, inputs())
    custom.create(inputs())
    assert api.calls == ["get", "cancel", "get", "get", "delete", "create"]


def test_a_listing_keeps_name_state_and_time_only(api: FakeClient) -> None:
    tuning.create(inputs("search", tuning_job()))
    name = f"{PARENT}/hyperparameterTuningJobs/1"
    api.jobs[name]["trials"] = [{"id": str(number), "state": "SUCCEEDED"} for number in range(1000)]
    start_new_process()
    tuning.create(inputs("other", tuning_job()))
    (listing,) = get_submitted_jobs_cache()._listings.values()
    assert listing._summaries is not None
    (summaries,) = listing._summaries.values()
    assert [summary.keys() for summary in summaries] == [{"name", "state", "createTime"}]


def find_equivalent(api: FakeClient, *jobs: tuple[str, str, str]) -> str | None:
    """The job that a new cache finds among jobs of one token: id, state and time of creation."""
    for id_, state, created in jobs:
        labels = {"pulumi_project": "team", "pulumi_stack": "dev", "pulumi_token": "t"}
        name = f"{PARENT}/customJobs/{id_}"
        api.add(name, state=f"JOB_STATE_{state}", labels=labels)["createTime"] = created
    job = SubmittedJobsCache().find_equivalent_usable_job_or_none(
        target.resolve(f"//local/{PARENT}"),
        CUSTOM_JOB,
        "team/dev",
        "t",
    )
    return job and job["name"].rpartition("/")[2]


@pytest.mark.parametrize("state", ["QUEUED", "PENDING", "RUNNING", "PAUSED", "SUCCEEDED", "PARTIALLY_SUCCEEDED"])
def test_an_active_or_succeeded_job_is_equivalent(api: FakeClient, state: str) -> None:
    assert find_equivalent(api, ("1", state, "2026-01-31T12:00:00Z")) == "1"


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "CANCELLING", "EXPIRED"])
def test_a_failed_or_cancelled_job_is_not_equivalent(api: FakeClient, state: str) -> None:
    assert find_equivalent(api) is None
    assert find_equivalent(api, ("1", state, "2026-01-31T12:00:00Z")) is None


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2026-01-31T12:00:00Z", "2026-02-01T00:00:00Z"),
        ("2026-01-31T12:00:00.100Z", "2026-01-31T12:00:00.900Z"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.500Z"),
    ],
)
def test_the_newest_usable_job_is_equivalent(api: FakeClient, older: str, newer: str, order: tuple[int, ...]) -> None:
    jobs = [("1", "RUNNING", older), ("2", "SUCCEEDED", newer), ("3", "FAILED", "2027-01-01T00:00:00Z")]
    assert find_equivalent(api, *(jobs[index] for index in order)) == "2"
