"""Submission: one list finds all that a stack has submitted, and an API that loses answers gets no job twice."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from vertex_training.errors import SubmitFailed
from vertex_training.jobs.failures import quota_refusal
from vertex_training.jobs.ledger import LedgerProvider
from vertex_training.jobs.provider import CustomJobProvider, HyperparameterTuningJobProvider
from vertex_training.jobs.submission import SubmittedJobs, submitted
from vertex_training.runtime import target
from vertex_training.runtime.pacing import current
from vertex_training.runtime.target import EmulatorLinks, Target

from tests.components.fakes import Clock, FakeClient, start_new_process
from tests.vertex_api.jobs import custom_job, edited, tuning_job
from vertex_api import errors, retry
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB, Kind, ResourceName
from vertex_api.retry import Caller

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
    (listed,) = submitted()._jobs.values()
    assert listed._by_label is not None
    (summaries,) = listed._by_label.values()
    assert [summary.keys() for summary in summaries] == [{"name", "state", "createTime"}]


def find_equivalent(api: FakeClient, *jobs: tuple[str, str, str]) -> str | None:
    """The job that a new cache finds among jobs of one token: id, state and time of creation."""
    for id_, state, created in jobs:
        labels = {"pulumi_project": "team", "pulumi_stack": "dev", "pulumi_token": "t"}
        name = f"{PARENT}/customJobs/{id_}"
        api.add(name, state=f"JOB_STATE_{state}", labels=labels)["createTime"] = created
    job = SubmittedJobs().jobs(target.resolve(f"//local/{PARENT}"), CUSTOM_JOB, "team/dev").usable("t")
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


NEW_ARGS = edited(custom_job(), "jobSpec", "workerPoolSpecs", 0, "containerSpec", "args", to=["--epochs=9"])
ACT_AS = "You do not have permission to act as service_account: x@acme.iam.gserviceaccount.com. (or it may not exist)"


@pytest.mark.parametrize("state", ["JOB_STATE_PENDING", "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED"])
def test_a_lost_job_is_found_in_any_state(api: FakeClient, state: str) -> None:
    api.lost_answer_state = state
    assert custom.create(inputs()).id == f"{PARENT}/customJobs/1"
    assert api.calls == ["list", "create", "list"]
    assert 'labels.pulumi_token="' in api.filters[1]


def test_an_earlier_equal_job_is_not_lost(api: FakeClient) -> None:
    custom.create(inputs())
    api.jobs[f"{PARENT}/customJobs/1"]["state"] = "JOB_STATE_FAILED"
    start_new_process()
    api.lost_answer_state = "JOB_STATE_PENDING"
    assert custom.create(inputs()).id == f"{PARENT}/customJobs/2"


class LateApi(FakeClient):
    """An API on a clock that loses the answers to its first requests and shows their jobs late.

    `delays` are the seconds from each such request to its job, `None` for one that is never done.
    """

    def __init__(self, clock: Clock, *delays: float | None, shows_time_of_request: bool = False) -> None:
        super().__init__()
        self.clock, self.delays, self.shows_time_of_request = clock, list(delays), shows_time_of_request
        self.visible: dict[str, float] = {}
        self.caller = Caller(wait=lambda seconds: self.wait(seconds))
        self.wait = clock.wait

    def create(
        self, kind: Kind, parent: str, job: dict[str, Any], *, allowed: Sequence[str] = (), **options: Any
    ) -> dict[str, Any]:
        def attempt() -> dict[str, Any]:
            self._called("create")
            is_lost = bool(self.delays)
            delay = self.delays.pop(0) if is_lost else 0.0
            if delay is not None:
                name = f"{parent}/{kind.collection}/{len(self.visible) + 1}"
                seconds = int(self.clock.now - 1000 + (0 if self.shows_time_of_request else delay))
                self.visible[name] = self.clock.now + delay
                self.jobs[name] = {**job, "name": name, "state": "JOB_STATE_PENDING"}
                self.jobs[name]["createTime"] = f"2026-01-31T12:{seconds // 60:02}:{seconds % 60:02}Z"
            if is_lost:
                raise errors.Unavailable("no answer")
            return dict(self.jobs[name])

        options["find_earlier_result"] = options.pop("find_created")
        return self.caller.call("create", attempt, **options)

    def find(self, kind: Kind, parent: str, condition: str) -> Sequence[dict[str, Any]]:
        return [job for job in super().find(kind, parent, condition) if self.visible[job["name"]] <= self.clock.now]

    def cancel(self, name: ResourceName) -> None:
        super().cancel(name)
        self.jobs[str(name)]["state"] = "JOB_STATE_CANCELLED"


def connect_late_api(monkeypatch: pytest.MonkeyPatch, late: LateApi) -> LateApi:
    made = Target(late, PARENT, EmulatorLinks("http://127.0.0.1:1"))
    monkeypatch.setattr(target, "resolve", lambda parent: made)
    monkeypatch.setattr(retry, "time", late.clock)
    return late


@pytest.mark.parametrize("shows_time_of_request", [True, False])
@pytest.mark.parametrize(
    ("delays", "creates"),
    [
        ([0.0], 1),
        ([20.0], 1),
        ([40.0], 1),
        ([70.0], 2),  # ten seconds after the second request
        ([None], 2),
        ([70.0, 10.0], 2),
        ([80.0, None], 2),
        ([125.0, None], 3),
        ([None, None, 20.0], 3),
    ],
    ids=str,
)
def test_a_late_job_is_there_once(
    api: FakeClient,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    delays: list[float | None],
    creates: int,
    *,
    shows_time_of_request: bool,
) -> None:
    late = connect_late_api(monkeypatch, LateApi(clock, *delays, shows_time_of_request=shows_time_of_request))
    id_ = custom.create(inputs()).id
    assert late.calls.count("create") == creates
    clock.sleep(600)
    assert [(name, job["state"]) for name, job in late.jobs.items()] == [(id_, "JOB_STATE_PENDING")]
    start_new_process()
    assert custom.create(inputs()).id == id_


def test_a_second_job_that_stays_is_told(
    api: FakeClient, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    late = connect_late_api(monkeypatch, LateApi(clock, 70.0))
    late.failing["cancel"] = errors.PermissionDenied("no permission aiplatform.customJobs.cancel")
    assert custom.create(inputs()).id == f"{PARENT}/customJobs/2"
    lines = capsys.readouterr().out
    assert "digits: may be there beside " in lines and "labels" not in lines
    assert "(no permission aiplatform.customJobs.cancel); look for jobs with the label pulumi_token=" in lines


@pytest.mark.parametrize("pauses", [0, 1])
def test_an_interrupted_look_loses_no_job(
    api: FakeClient, clock: Clock, monkeypatch: pytest.MonkeyPatch, pauses: int
) -> None:
    late = connect_late_api(monkeypatch, LateApi(clock, 40.0))
    answers = iter([False] * pauses + [True])
    late.wait = lambda seconds: next(answers)  # Ctrl-C
    with pytest.raises(SubmitFailed, match=r"^digits: not submitted: stopped while .* finds what it may have created$"):
        custom.create(inputs())
    start_new_process()
    clock.sleep(60)
    assert custom.create(inputs()).id == f"{PARENT}/customJobs/1"
    assert len(late.jobs) == late.calls.count("create") == 1


@pytest.mark.parametrize("refusal", [errors.InvalidRequest, errors.PermissionDenied])
def test_a_missing_act_as_names_the_submitters(api: FakeClient, refusal: type[errors.VertexError]) -> None:
    api.failing["create"] = refusal(ACT_AS)
    with pytest.raises(SubmitFailed) as failure:
        custom.create(inputs())
    remedy = "add who runs `pulumi` to identity.submitters, or grant them roles/iam.serviceAccountUser on it"
    assert str(failure.value) == f"digits: not submitted: {ACT_AS}; {remedy}"


@pytest.mark.parametrize(
    ("refusal", "remedy"),
    [
        ("Permission 'iam.serviceaccounts.actAs' denied on service account t@p (or it may not exist).", "submitters"),
        ("Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource", "EncrypterDecrypter on the key"),
        ("Required 'compute.networkAttachments.get' permission for 'a'", "compute.networkAttachments.update"),
        ("The service agent does not have permission to access Artifact Registry", "roles/artifactregistry.reader"),
    ],
)
def test_a_refusal_that_stays_names_role_and_member(api: FakeClient, refusal: str, remedy: str) -> None:
    api.failing["create"] = errors.PermissionDenied(refusal)
    with pytest.raises(SubmitFailed) as failure:
        custom.create(inputs())
    assert str(failure.value).startswith(f"digits: not submitted: {refusal}; ") and remedy in str(failure.value)


def test_a_missing_image_is_to_be_pushed(api: FakeClient) -> None:
    api.failing["create"] = errors.NotFound("404: The image x:1 does not exist.")
    with pytest.raises(SubmitFailed, match=r"The image x:1 does not exist\.; build and push it, or correct imageUri"):
        custom.create(inputs())
    api.failing["create"] = errors.NotFound("404: no such project")
    with pytest.raises(SubmitFailed, match=r"no such project$"):
        custom.create(inputs())


def test_a_quota_refusal_says_metric_region_need_and_page() -> None:
    metrics = ("aiplatform.googleapis.com/custom_model_training_cpus", "aiplatform.googleapis.com/invented")
    assert quota_refusal(metrics, Job(CUSTOM_JOB, custom_job()), "us-central1", "https://x") == (
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
    return current().count.least


def test_a_preview_counts_every_create_and_delete(api: FakeClient) -> None:
    job, edit = inputs(), inputs(spec=NEW_ARGS)
    assert count_of_run(api, {}, {"digits": job}) == 1
    assert count_of_run(api, {"digits": job}, {"digits": job}) == 0
    assert count_of_run(api, {"digits": job}, {"digits": edit}) == 2
    assert count_of_run(api, {"digits": job}, {"digits": job | {"lifecycle": {"wait": True}}}) == 0
    assert count_of_run(api, {"digits": job | {"lifecycle": {"onDelete": "keep"}}}, {"digits": edit}) == 1
    assert count_of_run(api, {"digits": job, "gone": inputs("gone")}, {"digits": edit}) == 3


@pytest.mark.parametrize("verb", ["list", "create"])
def test_a_refused_deployer_is_told_the_role(api: FakeClient, verb: str) -> None:
    place = "//aiplatform.googleapis.com/projects/acme-dev/locations/us-central1"
    refusal = f"Permission 'aiplatform.customJobs.{verb}' denied on resource '{place}' (or it may not exist)."
    api.failing[verb] = errors.PermissionDenied(refusal)
    with pytest.raises(SubmitFailed) as refused:
        custom.create(inputs())
    advice = "who runs `pulumi` may lack roles/aiplatform.user on the project (`vertex-training docs access`)"
    assert str(refused.value) == f"digits: not submitted: {refusal}; {advice}"


def test_a_refused_account_is_told_as_such(api: FakeClient) -> None:
    refusal = "You do not have permission to act as service_account: t@acme-dev.iam.gserviceaccount.com."
    api.failing["create"] = errors.InvalidRequest(refusal)
    with pytest.raises(SubmitFailed, match=r"roles/iam\.serviceAccountUser") as refused:
        custom.create(inputs())
    assert "identity.submitters" in str(refused.value)
