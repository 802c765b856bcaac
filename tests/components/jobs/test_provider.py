"""Providers of jobs, against a training API in memory."""

import re
import socket
import sys
from typing import Any

import pulumi
import pytest
from vertex_training.errors import KNOWN_HERE, DeclarationErrors, Problem, SubmitFailed
from vertex_training.jobs.provider import (
    CustomJobProvider,
    HyperparameterTuningJobProvider,
    JobProvider,
    TrainingPipelineProvider,
)
from vertex_training.plan.job_rules import TOKEN_LABEL
from vertex_training.runtime import engine
from vertex_training.schema.interpolation import TENSORBOARD_NAME

from tests.components.fakes import Clock, FakeClient, start_new_process
from tests.vertex_api.futures import future_job
from tests.vertex_api.jobs import custom_job, edited, job_of, tuning_job
from vertex_api import errors
from vertex_api.errors import MAX_PROBLEMS, MORE_PROBLEMS
from vertex_api.names import KINDS, TRAINING_PIPELINE, Kind

PARENT = "projects/local/locations/us-central1"
FIRST = f"{PARENT}/customJobs/1"
ARGS = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args")
POOL = ("jobSpec", "workerPoolSpecs", 0)
WITH_SECRET = edited(custom_job(), *ARGS, to=["--token=${secrets.token}"])

BOARD = "projects/p/locations/us-central1/tensorboards/7"
custom, tuning, piped = CustomJobProvider(), HyperparameterTuningJobProvider(), TrainingPipelineProvider()
PROVIDERS: dict[Kind, JobProvider] = {provider.kind: provider for provider in (custom, tuning, piped)}


def inputs(spec: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """What the program gives the engine."""
    return {
        "owner": "team/dev/digits",
        "parent": f"//local/{PARENT}",
        "spec": spec or custom_job(),
        **changes,
    }


def engine_s(value: Any) -> Any:
    """A value as the engine hands it over: every number is a float."""
    if isinstance(value, dict):
        return {key: engine_s(child) for key, child in value.items()}
    if isinstance(value, list):
        return [engine_s(child) for child in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def create(provider: JobProvider = custom, **given: Any) -> dict[str, Any]:
    """Checks and creates a job in an `up` of its own; its state, id included."""
    start_new_process()
    checked = provider.check({}, engine_s(inputs(**given)))
    assert checked.failures == []
    created = provider.create(engine_s(checked.inputs))
    return {"id": created.id, **(created.outs or {})}


def test_check_returns_canonical_inputs_without_unset_ones() -> None:
    given = engine_s(inputs(rerun="2", lifecycle={"onDelete": "keep"}, secrets=None, run=None))
    given["spec"]["jobSpec"]["workerPoolSpecs"][0]["replica_count"] = 1.0
    del given["spec"]["jobSpec"]["workerPoolSpecs"][0]["replicaCount"]
    checked = custom.check({}, given)
    assert checked.failures == []
    assert checked.inputs == inputs(rerun="2", lifecycle={"onDelete": "keep"})
    assert isinstance(checked.inputs["spec"]["jobSpec"]["workerPoolSpecs"][0]["replicaCount"], int)


def test_check_names_every_field_that_is_wrong() -> None:
    spec = custom_job() | {"lables": {}}
    spec["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] = "one"
    *failures, _ = custom.check({}, inputs(spec)).failures
    assert [(failure.property, failure.reason) for failure in failures] == [
        ("spec.jobSpec.workerPoolSpecs[0].replicaCount", '"one" is not a whole number'),
        ("spec.lables", "unknown field; did you mean labels?"),
    ]


def test_check_stops_at_a_hundred_problems() -> None:
    failures = custom.check({}, inputs(custom_job() | {f"key{i}": 1 for i in range(1000)})).failures
    assert len(failures) == MAX_PROBLEMS + 1
    assert (failures[-1].property, failures[-1].reason) == ("spec", MORE_PROBLEMS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_check_says_how_a_refusal_is_lifted(kind: Kind) -> None:
    body, places = future_job(kind)
    *refused, last = PROVIDERS[kind].check({}, engine_s(inputs(body))).failures
    assert {failure.property for failure in refused} == {f"spec.{place}" for place in places}
    problems = [Problem("jobs.yaml:1", failure.property, failure.reason) for failure in refused]
    assert (last.property, last.reason) == ("spec", str(DeclarationErrors(problems)).splitlines()[-1].strip())
    assert last.reason.startswith(KNOWN_HERE)


def test_check_reports_the_rules_of_its_kind() -> None:
    provider = HyperparameterTuningJobProvider()
    failures = provider.check({}, inputs(tuning_job() | {"maxTrialCount": 0})).failures
    assert [failure.property for failure in failures] == ["spec.maxTrialCount"]


def test_check_rejects_reserved_labels_unless_adopting() -> None:
    spec = custom_job() | {"labels": {"pulumi_name": "mine"}}
    (failure,) = custom.check({}, inputs(spec)).failures
    assert failure.property == "spec.labels.pulumi_name"
    adopted = inputs(spec, adopt=f"{PARENT}/customJobs/7")
    assert custom.check({}, adopted).failures == []


def test_check_accepts_unknown_values() -> None:
    assert custom.check({}, inputs() | {"spec": pulumi.UNKNOWN}).failures == []
    spec = edited(custom_job(), *POOL, "replicaCount", to=pulumi.UNKNOWN)
    assert custom.check({}, inputs(spec)).failures == []
    spec = edited(custom_job(), *POOL, "containerSpec", to=pulumi.UNKNOWN) | {"lables": {}}
    (failure, _) = custom.check({}, inputs(spec)).failures
    assert failure.property == "spec.lables"


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_job_is_submitted_once_with_its_owner(api: FakeClient, kind: Kind) -> None:
    provider = PROVIDERS[kind]
    spec = job_of(kind) | {"labels": {"team": "vision"}}
    state = create(provider, spec=spec)
    assert api.calls == ["list", "create"]
    (sent,) = api.sent
    labels = sent.pop("labels")
    assert sent == {key: value for key, value in spec.items() if key != "labels"}
    assert re.fullmatch("[0-9a-f]{32}", labels.pop(TOKEN_LABEL))
    assert labels == {
        "team": "vision",
        "pulumi_project": "team",
        "pulumi_stack": "dev",
        "pulumi_name": "digits",
    }
    name = f"{PARENT}/{kind.collection}/1"
    page = f"http://127.0.0.1:1/jobs/{kind.collection}/1"
    assert state["id"] == name
    logs = f"vertex-emulator logs {name.rpartition('/')[2]}"
    first = "PIPELINE_STATE_PENDING" if kind == TRAINING_PIPELINE else "JOB_STATE_PENDING"
    assert state["run"] == {"name": name, "state": first, "page": page, "logs": logs}


def test_whole_floats_are_sent_as_integers(api: FakeClient) -> None:
    spec = tuning_job() | {"maxFailedTrialCount": 1}
    create(HyperparameterTuningJobProvider(), spec=spec)
    (sent,) = api.sent
    numbers = [
        sent["maxTrialCount"],
        sent["maxFailedTrialCount"],
        sent["trialJobSpec"]["workerPoolSpecs"][0]["replicaCount"],
        sent["studySpec"]["parameters"][1]["integerValueSpec"]["maxValue"],
    ]
    assert numbers == [8, 1, 1, 64]
    assert [type(number) for number in numbers] == [int] * 4


@pytest.mark.parametrize("declared", ["equal", "unknown"])
def test_a_job_waits_for_the_urn_that_goes_on_with_it(
    api: FakeClient, monkeypatch: pytest.MonkeyPatch, declared: str
) -> None:
    old, new = (f"urn:pulumi:dev::team::{parent}CustomJob::digits" for parent in ("", "Squad$"))
    given = inputs()
    api.add(FIRST, state="JOB_STATE_RUNNING", labels={})

    def call(urn: str) -> None:
        monkeypatch.setattr(engine, "requested_urn", lambda: urn)

    call("urn:pulumi:dev::team::CustomJob::other")
    custom.check(inputs(), inputs())
    call(new)
    custom.check({}, given if declared == "equal" else {"owner": given["owner"]})
    call(old)
    # With `--continue-on-error`, deletes follow a create that has failed or was skipped.
    with pytest.raises(
        SubmitFailed, match=r"^digits: not deleted: Squad\$CustomJob::digits goes on with it, once it is"
    ):
        custom.delete(FIRST, given)
    assert api.calls == []
    call(new)
    custom.create(given)
    call(old)
    custom.delete(FIRST, inputs(lifecycle={"onDelete": "keep"}))


def test_an_equal_unrecorded_job_is_adopted(api: FakeClient) -> None:
    first = create()
    second = create(spec=dict(reversed(custom_job().items())))
    # No killed run has left it, for all that the state says.
    assert second == {**first, "found": True}
    assert api.calls == ["list", "create", "list", "get"]


def test_float_and_integer_specs_are_equal_jobs(api: FakeClient) -> None:
    create()
    for given in (custom.check({}, inputs()).inputs, engine_s(inputs())):
        start_new_process()
        custom.create(given)
    assert len(api.sent) == 1


@pytest.mark.parametrize("state", ["RUNNING", "SUCCEEDED"])
def test_an_adopted_job_s_state_is_its_own(api: FakeClient, state: str) -> None:
    create()
    api.jobs[FIRST]["state"] = f"JOB_STATE_{state}"
    assert create()["run"]["state"] == f"JOB_STATE_{state}"


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "CANCELLING", "EXPIRED"])
def test_an_unsuccessful_job_is_submitted_anew(api: FakeClient, state: str) -> None:
    create()
    api.jobs[FIRST]["state"] = f"JOB_STATE_{state}"
    assert create()["id"] == f"{PARENT}/customJobs/2"
    assert len(api.sent) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"rerun": "1"},
        {"spec": edited(WITH_SECRET, *ARGS, to=["--token=${secrets.token}", "-v"])},
        {"secrets": {"token": "other"}},
        {"owner": "team/prod/digits"},
        {"parent": "//local/projects/local/locations/europe-west4"},
    ],
    ids=["rerun", "spec", "secret", "stack", "region"],
)
def test_anything_that_makes_another_job_is_submitted_anew(api: FakeClient, change: dict[str, Any]) -> None:
    plain: dict[str, Any] = {"spec": WITH_SECRET, "secrets": {"token": "hunter2"}}
    create(**plain)
    create(**plain | change)
    assert api.calls == ["list", "create", "list", "create"]


@pytest.mark.parametrize("lifecycle", [{}, {"wait": True}, {"onDelete": "keep"}])
def test_a_lifecycle_change_submits_no_new_job(api: FakeClient, lifecycle: dict[str, Any]) -> None:
    create()
    create(lifecycle=lifecycle)
    assert len(api.sent) == 1


def test_secrets_are_sent_and_stored_as_inputs_only(api: FakeClient) -> None:
    given: dict[str, Any] = {"spec": WITH_SECRET, "secrets": {"token": "hunter2"}}
    state = create(**given)
    assert api.sent[0]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--token=hunter2"]
    assert state.pop("secrets") == {"token": "hunter2"}
    assert "hunter2" not in str(state)
    read = custom.read(FIRST, {**inputs(**given), "run": state["run"]})
    for found in (read.outs, read.inputs):
        assert found is not None
        assert found.pop("secrets") == {"token": "hunter2"}
        assert "hunter2" not in str(found)


def test_a_new_tensorboard_is_filled_in_at_submission(api: FakeClient) -> None:
    job_spec = {"tensorboard": TENSORBOARD_NAME, "serviceAccount": "trainer@p.iam.gserviceaccount.com"}
    spec = custom_job() | {"jobSpec": {**custom_job()["jobSpec"], **job_spec}}
    state = create(spec=spec, tensorboard=BOARD)
    assert api.sent[0]["jobSpec"]["tensorboard"] == BOARD
    read = custom.read(FIRST, {**inputs(spec, tensorboard=BOARD), "run": state["run"]})
    assert read.inputs == inputs(spec, tensorboard=BOARD)
    create(spec=spec, tensorboard=f"{BOARD}8")
    assert [job["jobSpec"]["tensorboard"] for job in api.sent] == [BOARD, f"{BOARD}8"]


def test_nothing_is_submitted_once_the_engine_is_gone(api: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as engine:
        address = f"127.0.0.1:{engine.getsockname()[1]}"
    monkeypatch.setattr(sys, "argv", ["provider", address])
    with pytest.raises(SubmitFailed, match="digits: not submitted: stopped, because `pulumi` was killed"):
        create()
    assert api.calls == ["list"]


def test_an_update_changes_the_lifecycle_only(api: FakeClient) -> None:
    state = create()
    news = inputs(lifecycle={"wait": True})
    updated = custom.update(FIRST, state, news)
    assert {"id": FIRST, **updated.outs} == {**state, "lifecycle": {"wait": True}}
    assert api.calls == ["list", "create"]


def test_an_unchanged_job_is_read_without_drift(api: FakeClient) -> None:
    spec = edited(custom_job(), "jobSpec", "baseOutputDirectory", to={"outputUriPrefix": "gs://b/out"})
    state = create(spec=spec, secrets={"token": "x"})
    api.jobs[FIRST]["state"] = "JOB_STATE_SUCCEEDED"
    api.jobs[FIRST]["jobSpec"]["baseOutputDirectory"] = {"outputUriPrefix": "gs://b/out/"}
    read = custom.read(FIRST, engine_s({name: value for name, value in state.items() if name != "id"}))
    assert read.id == FIRST
    assert read.inputs == inputs(spec, secrets={"token": "x"})
    assert read.outs == {
        **inputs(spec, secrets={"token": "x"}),
        "run": {**state["run"], "state": "JOB_STATE_SUCCEEDED"},
    }


@pytest.mark.parametrize(
    "spec",
    [
        edited(custom_job(), "jobSpec", "scheduling", to={"timeout": "3600.0s"}),
        edited(custom_job(), "jobSpec", "scheduling", to={"timeout": "90.5s", "restartJobOnWorkerRestart": False}),
        edited(custom_job(), *ARGS, to=["$${HOME}", "$(X)", ""]),
        custom_job() | {"labels": {"empty": ""}},
        edited(custom_job(), "jobSpec", "workerPoolSpecs", to=[custom_job()["jobSpec"]["workerPoolSpecs"][0], {}]),
    ],
    ids=["duration", "fraction of a second", "escapes", "empty label", "empty pool"],
)
def test_other_spellings_of_the_service_are_no_drift(api: FakeClient, spec: dict[str, Any]) -> None:
    create(spec=spec)
    checked = custom.check({}, inputs(spec)).inputs
    assert custom.read(FIRST, checked).inputs == checked


def test_finished_trials_are_no_drift(api: FakeClient) -> None:
    provider = HyperparameterTuningJobProvider()
    name = create(provider, spec=tuning_job())["id"]
    api.jobs[name] |= {"state": "JOB_STATE_SUCCEEDED", "trials": [{"id": "1", "state": "SUCCEEDED"}]}
    assert provider.read(name, inputs(tuning_job())).inputs == inputs(tuning_job())


def test_a_refresh_shows_why_a_job_failed(api: FakeClient) -> None:
    state = create()
    message = f"exited with 1. {errors.LOG_LINK}https://console.cloud.google.com/logs/viewer?project=1"
    api.jobs[FIRST] |= {"state": "JOB_STATE_FAILED", "error": {"code": 3, "message": message}}
    run = (custom.read(FIRST, inputs()).outs or {})["run"]
    assert run == {**state["run"], "state": "JOB_STATE_FAILED", "error": "exited with 1."}


def test_a_refresh_shows_tuning_progress_once(api: FakeClient) -> None:
    provider = HyperparameterTuningJobProvider()
    state = create(provider, spec=tuning_job())
    assert "trials" not in state["run"]
    measured = {"finalMeasurement": {"metrics": [{"metricId": "accuracy", "value": 0.5}]}}
    trials = [{"id": "2", "state": "SUCCEEDED", **measured}, {"id": "1", "state": "INFEASIBLE"}]
    api.jobs[state["id"]]["trials"] = [*trials, {"id": "3", "state": "ACTIVE"}]
    read = provider.read(state["id"], inputs(tuning_job())).outs or {}
    best = {"id": "2", "state": "SUCCEEDED", "parameters": {}, "metrics": {"accuracy": 0.5}}
    assert read["run"] == {**state["run"], "trials": {"ended": 2, "of": 8}, "bestTrial": best}
    assert provider.read(state["id"], read).outs == read


def test_a_refresh_keeps_what_a_run_took(api: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    create()
    times = {"startTime": "2026-01-31T12:00:00Z", "endTime": "2026-01-31T12:07:00Z"}
    api.jobs[FIRST] |= {"state": "JOB_STATE_SUCCEEDED", **times}
    read = custom.read(FIRST, inputs()).outs or {}
    assert read["run"]["took"] == "2026-01-31T12:07:00Z 420 s on this machine, declared for 1 n1-standard-4"
    api.jobs[FIRST]["endTime"] = "2026-01-31T12:08:00Z"
    capsys.readouterr()
    assert custom.read(FIRST, read).outs == read and not capsys.readouterr().out


def test_a_changed_job_is_read_as_drift(api: FakeClient) -> None:
    create()
    api.jobs[FIRST]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] = ["--epochs=99"]
    read = custom.read(FIRST, inputs())
    assert read.inputs == inputs(edited(custom_job(), *ARGS, to=["--epochs=99"]))
    assert read.outs is not None
    assert read.outs["spec"] == read.inputs["spec"]


def test_reading_a_missing_job_returns_nothing(api: FakeClient) -> None:
    read = custom.read(FIRST, inputs())
    assert (read.id, read.outs) == (None, {})


def test_a_running_job_is_cancelled_then_deleted(api: FakeClient, clock: Clock) -> None:
    create()
    api.calls.clear()
    api.coming[FIRST] = ["JOB_STATE_RUNNING", "JOB_STATE_CANCELLING", "JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED"]
    custom.delete(FIRST, engine_s(inputs()))
    assert api.calls == ["get", "cancel", "get", "get", "get", "delete"]
    assert api.jobs == {}


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"])
def test_an_ended_job_is_deleted_at_once(api: FakeClient, clock: Clock, state: str) -> None:
    api.add(FIRST, state=f"JOB_STATE_{state}")
    custom.delete(FIRST, inputs())
    assert api.calls == ["get", "delete"]


def test_a_job_to_keep_is_left_alone(api: FakeClient, clock: Clock) -> None:
    api.add(FIRST, state="JOB_STATE_RUNNING")
    custom.delete(FIRST, inputs(lifecycle={"onDelete": "keep"}))
    assert (api.calls, list(api.jobs)) == ([], [FIRST])


def test_cancelling_a_job_keeps_its_record(api: FakeClient, clock: Clock) -> None:
    api.add(FIRST, state="JOB_STATE_RUNNING")
    api.coming[FIRST] = ["JOB_STATE_RUNNING", "JOB_STATE_CANCELLED"]
    custom.delete(FIRST, inputs(lifecycle={"onDelete": "cancel"}))
    assert api.calls == ["get", "cancel", "get"]
    assert api.jobs[FIRST]["state"] == "JOB_STATE_CANCELLED"


def test_a_job_that_is_gone_already_is_deleted(api: FakeClient) -> None:
    custom.delete(FIRST, inputs())
    assert api.calls == ["get"]


def test_a_job_that_someone_deletes_meanwhile_is_deleted(api: FakeClient, clock: Clock) -> None:
    api.add(FIRST, state="JOB_STATE_RUNNING")
    api.before = lambda verb: api.jobs.clear() if verb == "cancel" else None
    custom.delete(FIRST, inputs())
    assert api.calls == ["get", "cancel"]


def test_a_job_ended_before_cancelling_is_deleted(api: FakeClient, clock: Clock) -> None:
    api.add(FIRST, state="JOB_STATE_RUNNING")
    api.coming[FIRST] = ["JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED"]
    api.failing["cancel"] = errors.InvalidRequest("the job is in state JOB_STATE_SUCCEEDED and cannot be cancelled")
    custom.delete(FIRST, inputs())
    assert api.jobs == {}


def test_a_job_that_never_ends_fails_the_delete(api: FakeClient, clock: Clock) -> None:
    api.add(FIRST, state="JOB_STATE_RUNNING")
    with pytest.raises(SubmitFailed) as failure:
        custom.delete(FIRST, inputs())
    assert re.fullmatch(
        r"digits: still JOB_STATE_CANCELLING 90\d s after it was cancelled; the service goes on ending it; "
        "run this again to wait on",
        str(failure.value),
    )
    assert list(api.jobs) == [FIRST]


def test_a_slow_end_is_told_each_minute(api: FakeClient, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    api.add(FIRST, state="JOB_STATE_RUNNING")
    start = clock.now

    def end_late(verb: str) -> None:
        if verb == "get" and clock.now - start > 600:
            api.jobs[FIRST]["state"] = "JOB_STATE_CANCELLED"

    api.before = end_late
    custom.delete(FIRST, inputs())
    lines = capsys.readouterr().out.splitlines()
    assert api.jobs == {} and len(lines) in (9, 10)
    assert re.fullmatch(r"digits: JOB_STATE_CANCELLING for 6\d s, up to 900 s", lines[0])


def test_a_cancelled_record_need_not_have_ended(api: FakeClient, clock: Clock) -> None:
    api.add(FIRST, state="JOB_STATE_RUNNING")
    custom.delete(FIRST, inputs(lifecycle={"onDelete": "cancel"}))
    assert api.calls == ["get", "cancel", "get"]
    assert api.jobs[FIRST]["state"] == "JOB_STATE_CANCELLING"


def test_an_interruption_ends_the_wait_for_an_end(
    api: FakeClient, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "wait_for_cancellation", lambda seconds: True)
    api.add(FIRST, state="JOB_STATE_RUNNING")
    with pytest.raises(SubmitFailed, match=r"^digits: stopped while it was JOB_STATE_CANCELLING; the service goes on"):
        custom.delete(FIRST, inputs())
    assert api.calls == ["get", "cancel", "get"]


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidRequest("machineType: n9 is not known"),
        errors.PermissionDenied("no permission aiplatform.customJobs.create"),
        errors.QuotaExceeded("too many jobs"),
        errors.Unavailable("no answer from the API"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("verb", ["list", "create", "get", "cancel", "delete"])
def test_an_api_error_names_the_job(api: FakeClient, clock: Clock, verb: str, error: errors.VertexError) -> None:
    if verb == "delete":
        api.add(FIRST, state="JOB_STATE_SUCCEEDED")
    if verb == "cancel":
        api.add(FIRST, state="JOB_STATE_RUNNING")
    api.failing[verb] = error
    with pytest.raises(SubmitFailed) as failure:
        create() if verb in ("list", "create") else custom.delete(FIRST, inputs())
    message = str(failure.value)
    assert message.startswith("digits: ")
    assert message.endswith(f": {error}")
    assert len(message.splitlines()) == 1


def test_a_read_error_names_the_job(api: FakeClient) -> None:
    api.failing["get"] = errors.Unavailable("no answer from the API")
    with pytest.raises(SubmitFailed) as failure:
        custom.read(FIRST, inputs())
    assert str(failure.value).startswith("digits: ")
    assert str(failure.value).endswith(": no answer from the API")


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_what_a_job_lifts_is_submitted_and_does_not_drift(kind: Kind, api: FakeClient) -> None:
    body, places = future_job(kind)
    assert [each.property for each in PROVIDERS[kind].check({}, engine_s(inputs(body))).failures]
    state = create(PROVIDERS[kind], spec=body, lifecycle={"allow": places})
    (sent,) = api.sent
    assert sent[kind.spec_field]["pacing"] == body[kind.spec_field]["pacing"]
    read = PROVIDERS[kind].read(state["id"], engine_s(state))
    assert read.inputs and read.inputs["spec"] == state["spec"]
    api.jobs[state["id"]][kind.spec_field]["pacing"]["warmUp"]["rounds"] = 3
    read = PROVIDERS[kind].read(state["id"], engine_s(state))
    assert read.inputs["spec"][kind.spec_field]["pacing"]["warmUp"]["rounds"] == 3
