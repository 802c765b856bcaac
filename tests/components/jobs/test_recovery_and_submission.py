"""Submission against an API that loses answers and refuses jobs, and how many submissions a run needs."""

from collections.abc import Sequence
from typing import Any

import pytest
from vertex_training.errors import SubmitFailed
from vertex_training.jobs.provider import CustomJobProvider
from vertex_training.jobs.recovery.ledger_resource import LedgerProvider
from vertex_training.jobs.refusal_explanations import build_quota_refusal_message
from vertex_training.runtime import target
from vertex_training.runtime.pacing import current
from vertex_training.runtime.target import EmulatorLinks, Target

from tests.components.fakes import Clock, FakeClient, start_new_process
from tests.vertex_api.jobs import custom_job, edited
from vertex_api import errors, retry
from vertex_api.client import JobJson
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB, Kind, ResourceName
from vertex_api.retry import Caller

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

    def create(self, kind: Kind, parent: str, job: JobJson, **options: Any) -> JobJson:
        def attempt() -> JobJson:
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

    def list(self, kind: Kind, parent: str, filter: str) -> Sequence[JobJson]:
        return [job for job in super().list(kind, parent, filter) if self.visible[job["name"]] <= self.clock.now]

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
    assert build_quota_refusal_message(metrics, Job(CUSTOM_JOB, custom_job()), "us-central1", "https://x") == (
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
