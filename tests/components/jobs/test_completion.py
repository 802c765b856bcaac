"""Completion: progress as it happens, results when all is done, and a failure that says why."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from vertex_training.errors import TrainingFailed
from vertex_training.jobs import completion, metrics
from vertex_training.jobs.completion import HEARTBEAT_SECONDS, CompletionProvider, Progress
from vertex_training.jobs.covering import LedgerRecord, cover
from vertex_training.jobs.failures import LONG_WAIT_MINUTES
from vertex_training.jobs.identity import mark
from vertex_training.jobs.lookup import jobs, results
from vertex_training.jobs.provider import run_change
from vertex_training.runtime import target
from vertex_training.runtime.resource import Provider
from vertex_training.runtime.target import GoogleCloudLinks, Target

from tests.components.fakes import NOON, Clock, FakeClient
from vertex_api import errors
from vertex_api.errors import Unavailable
from vertex_api.job import job_results

PARENT = "projects/local/locations/us-central1"
OWNER = "team/dev"
LABELS = {"pulumi_project": "team", "pulumi_stack": "dev"}
TRAIN, SEARCH = f"{PARENT}/customJobs/1", f"{PARENT}/hyperparameterTuningJobs/2"
BOTH = {"digits": TRAIN, "search": SEARCH}
RUNNING, SUCCEEDED, FAILED = "JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED"
FOLDER = {"baseOutputDirectory": {"outputUriPrefix": "gs://b/out"}}

pytestmark = pytest.mark.usefixtures("clock", "models")


def add_training(api: FakeClient, name: str = TRAIN, *states: str, **fields: Any) -> None:
    api.add(name, labels=LABELS, jobSpec=FOLDER, state="JOB_STATE_PENDING", **fields)
    api.coming[name] = list(states)


def trial(number: int, state: str = "SUCCEEDED", value: float | None = None) -> dict[str, Any]:
    measured = {"finalMeasurement": {"metrics": [{"metricId": "loss", "value": value}]}} if value is not None else {}
    return {"id": str(number), "state": state, "parameters": [{"parameterId": "units", "value": 8.0}], **measured}


def add_search(api: FakeClient, *states: str, trials: list[dict[str, Any]]) -> None:
    study = {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}]}
    fields = {"studySpec": study, "trialJobSpec": FOLDER, "maxTrialCount": 4, "trials": trials}
    api.add(SEARCH, labels=LABELS, state="JOB_STATE_PENDING", **fields)
    api.coming[SEARCH] = list(states)


def wait(**names: str) -> dict[str, Any]:
    return completion.wait(f"//local/{PARENT}", OWNER, names, {})


def failure_of(**names: str) -> str:
    with pytest.raises(TrainingFailed) as failure:
        wait(**names)
    return str(failure.value)


def test_a_result_has_state_and_model_folder(api: FakeClient) -> None:
    add_training(api, TRAIN, RUNNING, SUCCEEDED)
    assert wait(digits=TRAIN) == {"digits": {"state": SUCCEEDED, "modelDir": "gs://b/out/model/"}}


def test_a_success_without_a_model_is_said(
    api: FakeClient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "without_model", lambda _, jobs: [*jobs])
    add_training(api, TRAIN, SUCCEEDED)
    api.logs[f"{TRAIN}/service"] = ["Job completed successfully.", f"{errors.FOUND_HERE}it is in gs:"]
    before = wait(digits=TRAIN)
    assert before["digits"]["modelDirIsEmpty"]
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "digits: succeeded, and wrote no model: gs://b/out/model/ is empty",
        "digits: it is in gs:",
    ]
    # Once told, it is kept and not told again.
    assert completion.wait(f"//local/{PARENT}", OWNER, {"digits": TRAIN}, {}, before) == before
    assert "no model" not in capsys.readouterr().out


def test_a_search_with_failed_trials_says_so(api: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    failed = {**trial(2, "INFEASIBLE"), "infeasibleReason": f"it exited with 1. {errors.LOG_LINK}https://x"}
    add_search(api, SUCCEEDED, trials=[trial(1, value=0.5), failed])
    wait(search=SEARCH)
    assert "search: 1 of 2 trials failed (2), the last: it exited with 1.\n" in capsys.readouterr().out


def test_without_an_output_folder_there_is_no_model(api: FakeClient) -> None:
    api.add(TRAIN, labels=LABELS, jobSpec={}, state=SUCCEEDED)
    assert wait(digits=TRAIN) == {"digits": {"state": SUCCEEDED}}


def test_results_on_this_machine_do_not_link_to_the_console(api: FakeClient) -> None:
    linked = f"exited with 1. {errors.LOG_LINK}https://console.cloud.google.com/logs/viewer?project=1"
    add_training(api, TRAIN, FAILED, error={"code": 3, "message": linked})
    add_search(api, SUCCEEDED, trials=[trial(1, value=0.5), {**trial(2, "INFEASIBLE"), "infeasibleReason": linked}])
    assert wait(search=SEARCH)["search"]["trials"][1]["infeasibleReason"] == "exited with 1."
    for place, error in (("//local/", "exited with 1."), ("//aiplatform.googleapis.com/", linked)):
        found = results(f"{place}{PARENT}", OWNER, BOTH)
        assert found["digits"]["error"] == found["search"]["trials"][1]["infeasibleReason"] == error
        assert "infeasibleReason" not in found["search"]["trials"][0]


def test_a_tuning_result_has_trials_best_and_model(api: FakeClient) -> None:
    add_search(api, SUCCEEDED, trials=[trial(2, value=0.1), trial(1, value=0.5), trial(3, "INFEASIBLE")])
    (result,) = wait(search=SEARCH).values()
    best = {"id": "2", "state": "SUCCEEDED", "parameters": {"units": 8}, "metrics": {"loss": 0.1}}
    assert result["bestTrial"] == best
    assert [row["id"] for row in result["trials"]] == ["1", "2", "3"]
    assert (result["state"], result["modelDir"]) == (SUCCEEDED, "gs://b/out/2/model/")


def test_without_a_succeeded_trial_there_is_no_best(api: FakeClient) -> None:
    add_search(api, SUCCEEDED, trials=[trial(1, "INFEASIBLE")])
    (result,) = wait(search=SEARCH).values()
    assert result["bestTrial"] is None
    assert "modelDir" not in result


def test_a_trailing_slash_names_the_same_folder() -> None:
    job = {"state": SUCCEEDED, "jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://b/out/"}}}
    assert job_results(job)["modelDir"] == "gs://b/out/model/"


def test_a_failed_result_has_the_service_s_message() -> None:
    job = {"state": FAILED, "jobSpec": {}, "error": {"code": 3, "message": "exit code 1"}}
    assert job_results(job) == {"state": FAILED, "error": "exit code 1"}


def test_every_job_is_awaited_under_its_declared_name(api: FakeClient) -> None:
    add_training(api, TRAIN, SUCCEEDED)
    add_search(api, RUNNING, RUNNING, RUNNING, SUCCEEDED, trials=[])
    assert {name: result["state"] for name, result in wait(a=TRAIN, b=SEARCH).items()} == {
        "a": SUCCEEDED,
        "b": SUCCEEDED,
    }


def test_a_poll_lists_each_collection_once(api: FakeClient) -> None:
    names = {f"job{number}": f"{PARENT}/customJobs/{number}" for number in range(50)}
    for name in names.values():
        add_training(api, name, RUNNING, SUCCEEDED)
    add_search(api, RUNNING, SUCCEEDED, trials=[])
    assert len(wait(**names, search=SEARCH)) == 51
    assert api.calls == [*["list"] * 4, "log_lines"]
    filter_ = 'labels.pulumi_project="team" AND labels.pulumi_stack="dev"'
    # From the second poll on, jobs that are older than all awaited ones are not listed.
    assert set(api.filters[:2]) == {filter_}
    assert set(api.filters[2:]) == {f'{filter_} AND create_time>="2026-01-31T12:00:00Z"'}


def test_a_poll_lists_jobs_as_new_as_awaited_ones(api: FakeClient) -> None:
    for number in range(3):
        add_training(api, f"{PARENT}/customJobs/{number}", RUNNING)
    add_training(api, f"{PARENT}/customJobs/9", RUNNING, SUCCEEDED)
    api.jobs[f"{PARENT}/customJobs/9"]["createTime"] = "2026-01-31T13:30:05.123456+01:00"
    assert wait(digits=f"{PARENT}/customJobs/9")["digits"]["state"] == SUCCEEDED
    assert api.filters[-1].endswith(' AND create_time>="2026-01-31T12:30:05Z"')
    assert api.calls == ["list", "list"]


def test_only_collections_that_are_waited_for_are_listed(api: FakeClient) -> None:
    add_search(api, SUCCEEDED, trials=[])
    wait(search=SEARCH)
    assert api.calls == ["list", "log_lines"]


def test_other_jobs_of_the_stack_are_ignored(api: FakeClient) -> None:
    add_training(api, TRAIN, SUCCEEDED)
    add_training(api, f"{PARENT}/customJobs/2", FAILED)
    assert list(wait(digits=TRAIN)) == ["digits"]


def test_each_state_is_told_once(api: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    add_training(api, TRAIN, "JOB_STATE_PENDING", RUNNING, RUNNING, RUNNING, SUCCEEDED)
    wait(digits=TRAIN)
    assert capsys.readouterr().out.splitlines() == ["digits: PENDING", "digits: RUNNING", "digits: SUCCEEDED"]


def test_a_search_reports_finished_trials_and_the_best(api: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    add_search(api, RUNNING, SUCCEEDED, trials=[trial(1, value=0.123456), trial(2, "INFEASIBLE"), trial(3, "ACTIVE")])
    wait(search=SEARCH)
    running, succeeded, unreported = capsys.readouterr().out.splitlines()
    assert running == "search: RUNNING, 2 of 4 trials done, best loss 0.1235 in trial 1"
    assert succeeded == "search: SUCCEEDED, 2 of 4 trials done, best loss 0.1235 in trial 1"
    assert unreported.startswith("search: metric `loss` was never reported by 1 of 2 trials: call hypertune.")


def test_unchanged_hours_print_a_heartbeat_per_minute(
    api: FakeClient, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    add_training(api, TRAIN, *[RUNNING] * 500, SUCCEEDED)
    add_training(api, f"{PARENT}/customJobs/2", SUCCEEDED)
    began = clock.now
    wait(digits=TRAIN, other=f"{PARENT}/customJobs/2")
    minutes = (clock.now - began) / 60
    lines = capsys.readouterr().out.splitlines()
    signs = [line for line in lines if line == "waiting: 1 of 2 jobs done"]
    assert minutes > 60
    assert minutes * 0.7 < len(signs) < minutes
    assert len(lines) == len(signs) + 3


def test_polling_slows_down_after_an_hour(api: FakeClient, clock: Clock) -> None:
    add_training(api, TRAIN, *[RUNNING] * 500, SUCCEEDED)
    looks: list[float] = []
    api.before = lambda verb: looks.append(clock.now)
    wait(digits=TRAIN)
    pauses = [round(later - earlier, 3) for earlier, later in itertools.pairwise(looks)]
    assert max(pauses[:5]) < 1
    assert pauses == sorted(pauses)
    assert pauses[-1] == 15


def test_a_failure_has_message_log_and_advice(api: FakeClient) -> None:
    add_training(api, TRAIN, RUNNING, FAILED, error={"code": 3, "message": "replica workerpool0-0 exited with 1"})
    api.logs[TRAIN] = [f"line {number}" for number in range(20)] + ["ValueError: no data"]
    message = failure_of(digits=TRAIN)
    assert message.startswith("digits failed: replica workerpool0-0 exited with 1\n")
    assert message.endswith("  fix it, or run it again as it is with another value of its lifecycle.rerun")


def test_every_job_that_has_failed_is_accounted_for(api: FakeClient) -> None:
    add_training(api, TRAIN, FAILED)
    add_training(api, f"{PARENT}/customJobs/2", "JOB_STATE_EXPIRED")
    add_training(api, f"{PARENT}/customJobs/3", RUNNING)
    message = failure_of(a=TRAIN, b=f"{PARENT}/customJobs/2", c=f"{PARENT}/customJobs/3")
    assert "a failed: JOB_STATE_FAILED\n" in message
    assert "b failed: JOB_STATE_EXPIRED\n" in message
    assert message.splitlines()[-1] == "still running: c. They go on, and the next `pulumi up` waits for them"
    assert message.count("(it wrote nothing)") == 2


def test_jobs_that_fail_together_are_reported_together(api: FakeClient, clock: Clock) -> None:
    names = {name: f"{PARENT}/customJobs/{number}" for number, name in enumerate("abc", 1)}
    add_training(api, names["a"], *[RUNNING] * 20, FAILED)
    add_training(api, names["b"], *[RUNNING] * 21, FAILED)
    add_training(api, names["c"], *[RUNNING] * 500)
    began = clock.now
    message = failure_of(**names)
    assert [line for line in message.splitlines() if line.endswith("JOB_STATE_FAILED")] == [
        "a failed: JOB_STATE_FAILED",
        "b failed: JOB_STATE_FAILED",
    ]
    assert "still running: c." in message
    assert clock.now - began < 20
    # A job that is overdue, gone or unreadable meanwhile hides nothing of a failure.
    add_training(api, names["a"], FAILED)
    with pytest.raises(TrainingFailed, match=r"(?s)^a failed.*still running: b, c"):
        add_training(api, names["b"], *[RUNNING] * 500)
        completion.wait(f"//local/{PARENT}", OWNER, names, dict.fromkeys(names, 0.5))
    looks = itertools.count()
    for trouble in (lambda: api.jobs.pop(names["c"], None), lambda: api.failing.update(list=errors.Unavailable("no"))):
        api.before = lambda verb, trouble=trouble: verb == "list" and next(looks) % 3 == 1 and trouble()
        with pytest.raises(TrainingFailed, match=r"(?s)^a failed.*still running: b, c"):
            wait(**names)
        add_training(api, names["c"], RUNNING)


def test_of_many_failures_some_are_told_in_a_line(api: FakeClient) -> None:
    names = {f"job{number}": f"{PARENT}/customJobs/{number}" for number in range(1, 31)}
    for name in names.values():
        add_training(api, name, FAILED, error={"message": "out of\nmemory"})
    message = failure_of(**names)
    assert message.count("its last log lines:") == 5
    assert message.count(" failed: out of memory: `vertex-emulator logs ") == 15
    assert message.splitlines()[-1].startswith("10 more failed: job21, job22")
    assert api.calls.count("log_lines") <= 10


def test_a_job_that_someone_cancels_ends_the_wait(api: FakeClient) -> None:
    add_training(api, TRAIN, RUNNING, "JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED")
    assert failure_of(digits=TRAIN).startswith("digits failed: JOB_STATE_CANCELLED\n")


def test_an_unreadable_log_does_not_hide_the_failure(api: FakeClient) -> None:
    add_training(api, TRAIN, FAILED, error={"message": "out of memory"})
    api.failing["log_lines"] = errors.PermissionDenied("no permission logging.logEntries.list")
    message = failure_of(digits=TRAIN)
    assert message.startswith("digits failed: out of memory\n")
    assert "(its log cannot be read: no permission logging.logEntries.list; " in message


def test_a_job_deleted_while_waiting_is_named(api: FakeClient) -> None:
    add_training(api, TRAIN, RUNNING)
    add_training(api, f"{PARENT}/customJobs/2", RUNNING)
    api.before = lambda verb: api.jobs.clear() if len(api.calls) > 2 else None
    message = "digits, other: deleted while waited for; run `pulumi refresh`"
    assert failure_of(digits=TRAIN, other=f"{PARENT}/customJobs/2") == message


@pytest.mark.parametrize(
    "error",
    [
        errors.Unavailable("no answer"),
        errors.RateLimited("too many"),
        errors.Interrupted("stopped"),
        errors.PermissionDenied("no valid Google credentials: the token has expired"),
    ],
)
def test_an_outage_that_outlasts_the_retries_fails_the_wait(api: FakeClient, error: errors.VertexError) -> None:
    add_training(api, TRAIN, RUNNING)
    api.failing["list"] = error
    message = f"the jobs' state is unknown; they go on, and the next `pulumi up` waits for them: {error}"
    assert failure_of(digits=TRAIN) == message


def test_an_ended_job_is_not_polled_again(api: FakeClient) -> None:
    add_training(api, TRAIN, RUNNING, RUNNING, RUNNING, SUCCEEDED)
    add_search(api, SUCCEEDED, trials=[])
    assert wait(digits=TRAIN, search=SEARCH)["search"]["state"] == SUCCEEDED
    assert api.calls == [*["list"] * 5, "log_lines"]


def test_an_unlabelled_job_is_read_by_name(api: FakeClient) -> None:
    add_training(api, TRAIN, RUNNING, SUCCEEDED)
    api.jobs[TRAIN]["labels"] = {}
    assert wait(digits=TRAIN)["digits"]["state"] == SUCCEEDED
    assert api.calls == ["list", "get"] * 2


def test_a_missed_deadline_ends_only_the_wait(api: FakeClient, clock: Clock) -> None:
    add_training(api, TRAIN, *[RUNNING] * 500)
    add_search(api, *[RUNNING] * 500, trials=[])
    began = clock.now
    with pytest.raises(TrainingFailed) as failure:
        completion.wait(f"//local/{PARENT}", OWNER, BOTH, {"digits": 3600.0})
    assert clock.now - began == pytest.approx(3600)
    assert str(failure.value).splitlines() == [
        "digits: still JOB_STATE_RUNNING after 3600 s, its lifecycle.deadline. The job goes on: "
        "http://127.0.0.1:1/jobs/customJobs/1",
        "  run this again to wait on, raise the deadline, or set scheduling.timeout to have the service end such a job",
    ]
    assert api.jobs[TRAIN]["state"] == RUNNING
    assert set(api.calls) == {"list"}


def test_an_ended_job_has_no_deadline(api: FakeClient, clock: Clock) -> None:
    add_training(api, TRAIN, SUCCEEDED)
    add_search(api, *[RUNNING] * 100, SUCCEEDED, trials=[])
    began = clock.now
    found = completion.wait(f"//local/{PARENT}", OWNER, BOTH, {"digits": 1.0})
    assert {result["state"] for result in found.values()} == {SUCCEEDED}
    assert clock.now - began > 60


def test_a_deadline_counts_during_an_api_outage(api: FakeClient, clock: Clock) -> None:
    add_training(api, TRAIN, RUNNING)
    api.before = lambda _verb: clock.sleep(60.0)  # as retries do
    api.failing["list"] = errors.Unavailable("no answer")
    with pytest.raises(TrainingFailed, match=r"^digits: still of unknown state after 60 s, its lifecycle\.deadline"):
        completion.wait(f"//local/{PARENT}", OWNER, {"digits": TRAIN}, {"digits": 60.0})


def test_a_multi_objective_result_has_the_pareto_trials(api: FakeClient) -> None:
    metrics = [{"metricId": "loss", "goal": "MINIMIZE"}, {"metricId": "speed"}]

    def measured(number: int, loss: float, speed: float) -> dict[str, Any]:
        values = [{"metricId": "loss", "value": loss}, {"metricId": "speed", "value": speed}]
        return {"id": str(number), "state": "SUCCEEDED", "finalMeasurement": {"metrics": values}}

    add_search(api, SUCCEEDED, trials=[measured(1, 0.1, 5), measured(2, 0.2, 9), measured(3, 0.3, 1)])
    api.jobs[SEARCH]["studySpec"] = {"metrics": metrics}
    (result,) = wait(search=SEARCH).values()
    assert [row["id"] for row in result["paretoTrials"]] == ["1", "2"]
    assert result["bestTrial"] == result["paretoTrials"][0]
    add_search(api, SUCCEEDED, trials=[trial(1, value=0.1)])
    assert "paretoTrials" not in wait(search=SEARCH)["search"]


def test_a_result_names_trials_without_a_metric(api: FakeClient) -> None:
    add_search(api, SUCCEEDED, trials=[trial(1, value=0.1), trial(2, "INFEASIBLE")])
    assert wait(search=SEARCH)["search"]["unreported"] == {"loss": ["2"]}
    add_search(api, SUCCEEDED, trials=[trial(1, value=0.1)])
    assert "unreported" not in wait(search=SEARCH)["search"]


def test_a_look_leaves_out_jobs_that_are_gone(api: FakeClient) -> None:
    add_training(api, TRAIN, RUNNING)
    found = jobs(f"//local/{PARENT}", OWNER, {"digits": TRAIN, "gone": f"{PARENT}/customJobs/9"})
    assert {name: job["state"] for name, job in found.items()} == {"digits": RUNNING}


LOCATION = "//local/projects/local/locations/us-central1"
INPUTS: dict[str, Any] = {"owner": "team/dev", "parent": LOCATION, "jobs": {"digits": TRAIN}}
DONE = {"digits": {"state": "JOB_STATE_SUCCEEDED"}}

provider = CompletionProvider()


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


def add(api: FakeClient, state: str, *coming: str) -> None:
    api.add(TRAIN, labels=LABELS, jobSpec={}, state=state)
    api.coming[TRAIN] = list(coming)


def test_creating_and_updating_wait_and_keep_the_results(api: FakeClient) -> None:
    add(api, "JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED")
    created = provider.create(INPUTS)
    assert (created.id, created.outs) == ("completion", {**INPUTS, "results": DONE})
    assert provider.update("completion", {}, INPUTS).outs == {**INPUTS, "results": DONE}


@pytest.mark.parametrize("act", [lambda: provider.create(INPUTS), lambda: provider.update("completion", {}, INPUTS)])
def test_a_job_that_fails_fails_it(api: FakeClient, act: Any) -> None:
    add(api, "JOB_STATE_FAILED")
    with pytest.raises(TrainingFailed, match=r"^digits failed"):
        act()


def test_a_failure_names_running_undeclared_jobs(api: FakeClient) -> None:
    add(api, "JOB_STATE_FAILED")
    cover(LedgerRecord("led", "acme/team/dev", frozenset({"digits"}), frozenset({"kept"})))
    states = {"gone": "RUNNING", "ended": "SUCCEEDED", "digits": "RUNNING", "kept": "RUNNING"}
    for number, (name, state) in enumerate(states.items(), 2):
        marked = {**LABELS, "pulumi_name": name, "pulumi_mark": mark("led", name)}
        api.add(TRAIN.replace("/1", f"/{number}"), labels=marked, state=f"JOB_STATE_{state}")
    theirs = {**LABELS, "pulumi_name": "theirs", "pulumi_mark": mark("other", "theirs")}
    api.add(TRAIN.replace("/1", "/9"), labels=theirs, state="JOB_STATE_RUNNING")
    with pytest.raises(TrainingFailed) as failure:
        provider.create(INPUTS)
    assert str(failure.value).splitlines()[-1] == (
        "still running, though no longer declared: gone. Pulumi deletes such resources last, and not after a failure: "
        "`pulumi up --continue-on-error` deletes them all the same"
    )


def test_a_failure_tells_of_jobs_that_others_wait_for(api: FakeClient) -> None:
    add(api, "JOB_STATE_FAILED")
    cover(LedgerRecord("led", "acme/team/dev", frozenset({"digits", "a", "b", "c", "d"}), frozenset()))
    runs = [("a", "FAILED"), ("a", "RUNNING"), ("b", "RUNNING"), ("b", "FAILED"), ("c", "SUCCEEDED"), ("d", "QUEUED")]
    for number, (name, state) in enumerate([("digits", "RUNNING"), *runs], 2):
        marked = {**LABELS, "pulumi_name": name, "pulumi_mark": mark("led", name)}
        api.add(TRAIN.replace("/1", f"/{number}"), labels=marked, state=f"JOB_STATE_{state}")
    with pytest.raises(TrainingFailed) as failure:
        provider.create(INPUTS)
    assert str(failure.value).splitlines()[-2:] == [
        "other jobs of the stack that have failed: b",
        "other jobs of the stack that still run: a, d",
    ]


def test_a_failure_survives_an_unreadable_job_list(api: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    add(api, "JOB_STATE_FAILED")
    monkeypatch.setattr(completion, "_others", raising(Unavailable("no answer")))
    with pytest.raises(TrainingFailed, match=r"^digits failed"):
        provider.create(INPUTS)


def test_reading_looks_once_and_does_not_wait(api: FakeClient) -> None:
    add(api, "JOB_STATE_RUNNING")
    read = provider.read("completion", {**INPUTS, "results": DONE})
    assert (read.id, read.inputs) == ("completion", INPUTS)
    assert read.outs == {**INPUTS, "results": {"digits": {"state": "JOB_STATE_RUNNING"}}}
    assert api.calls == ["list"]


def test_reading_leaves_out_a_job_that_is_gone(api: FakeClient) -> None:
    read = provider.read("completion", {**INPUTS, "results": DONE})
    assert read.outs == {**INPUTS, "results": {}}


def test_deleting_touches_no_job(api: FakeClient) -> None:
    add(api, "JOB_STATE_RUNNING")
    provider.delete("completion", {**INPUTS, "results": DONE})
    assert api.calls == []


def test_deadlines_are_durations_and_inputs_of_their_own(api: FakeClient) -> None:
    add(api, "JOB_STATE_RUNNING")
    given = {**INPUTS, "deadlines": {"digits": "90.5s"}}
    with pytest.raises(TrainingFailed, match=r"after 90 s, its lifecycle\.deadline"):
        provider.create(given)
    assert provider.read("completion", {**given, "results": DONE}).inputs == given


CREATED = "2026-01-31T12:00:00Z"


def job(state: str, **fields: Any) -> dict[str, Any]:
    return {"state": f"JOB_STATE_{state}", "createTime": CREATED, "jobSpec": {}, **fields}


def search(state: str, done: int, total: int = 10) -> dict[str, Any]:
    metrics = [{"metricId": "loss", "goal": "MINIMIZE"}]
    trials = [{"id": str(number), "state": "SUCCEEDED"} for number in range(1, done + 1)]
    return job(state, studySpec={"metrics": metrics}, maxTrialCount=total, trials=trials)


def many(count: int, state: str, first: int = 1) -> dict[str, Any]:
    return {f"job{number}": job(state) for number in range(first, first + count)}


def test_a_few_changes_print_one_line_each() -> None:
    progress = Progress()
    jobs = many(5, "PENDING")
    assert progress.take_lines(jobs, NOON) == [f"job{number}: PENDING" for number in range(1, 6)]
    assert progress.take_lines(jobs, NOON + 1) == []
    assert progress.take_lines({**jobs, "job2": job("RUNNING")}, NOON + 2) == ["job2: RUNNING"]


def test_many_changes_print_one_count_per_state() -> None:
    jobs = many(150, "RUNNING") | many(40, "SUCCEEDED", 151) | many(3, "QUEUED", 191)
    assert Progress().take_lines(jobs, NOON) == [
        "RUNNING: job1, job2, job3, job4, job5 and 145 more",
        "SUCCEEDED: job151, job152, job153, job154, job155 and 35 more",
        "QUEUED: job191, job192, job193",
        "40 of 193 jobs done",
    ]


def test_200_jobs_print_under_one_line_each() -> None:
    progress = Progress()
    printed = 0
    for step in range(30):
        # Ten begin and ten end at every look.
        jobs = many(200, "QUEUED") | many(min(200, step * 10), "RUNNING") | many(max(0, step - 5) * 10, "SUCCEEDED")
        printed += len(progress.take_lines({f"job{n}": jobs[f"job{n}"] for n in range(1, 201)}, NOON + step))
    assert printed <= 30 * 4


def test_trials_of_many_tuning_jobs_are_summed() -> None:
    progress = Progress()
    jobs = {f"s{number}": search("RUNNING", 0) for number in range(100)}
    progress.take_lines(jobs, NOON)
    jobs = {name: search("RUNNING", 3) for name in jobs}
    assert progress.take_lines(jobs, NOON + 1)[-1] == "0 of 100 jobs done, 300 of 1000 trials done"


def test_the_best_trial_is_by_the_declared_metric() -> None:
    found = search("RUNNING", 1)
    found["studySpec"]["metrics"].insert(0, {"metricId": "heat", "safetyConfig": {"safetyThreshold": 5}})
    metrics = [{"metricId": "heat", "value": 7}, {"metricId": "loss", "value": 0.25}]
    found["trials"][0]["finalMeasurement"] = {"metrics": metrics}
    (line,) = Progress().take_lines({"a": found}, NOON)
    assert line == "a: RUNNING, 1 of 10 trials done, best loss 0.25 in trial 1"


def test_a_heartbeat_follows_an_unchanged_minute() -> None:
    progress = Progress()
    jobs = {"a": job("RUNNING"), "b": job("SUCCEEDED")}
    progress.take_lines(jobs, NOON)
    assert progress.take_lines(jobs, NOON + HEARTBEAT_SECONDS) == []
    assert progress.take_lines(jobs, NOON + HEARTBEAT_SECONDS + 1) == ["waiting: 1 of 2 jobs done"]
    assert progress.take_lines(jobs, NOON + HEARTBEAT_SECONDS + 2) == []


@pytest.mark.parametrize(
    ("state", "minutes", "why"),
    [
        ("QUEUED", 12, "quota or machines are short"),
        ("PENDING", LONG_WAIT_MINUTES - 1, "machines and images are being prepared"),
        ("PENDING", LONG_WAIT_MINUTES, "machines may be short, or an image is large"),  # as the advice says
    ],
)
def test_a_heartbeat_explains_each_queued_job(state: str, minutes: int, why: str) -> None:
    progress = Progress()
    jobs = {"a": job(state), "b": job("RUNNING")} | {"new": job(state, createTime="2026-01-31T12:30:00Z")}
    progress.take_lines(jobs, NOON)
    assert progress.take_lines(jobs, NOON + minutes * 60 + 5) == [
        f"waiting: 0 of 3 jobs done; a {state} for {minutes} min, as {why}",
    ]


def test_queued_jobs_are_named_once_a_minute() -> None:
    progress = Progress()
    said = []
    for second in range(0, 600, 10):
        jobs = {"a": job("QUEUED"), "b": search("RUNNING", second // 10, 100)}
        said += progress.take_lines(jobs, NOON + second)
    waits = [line for line in said if "a QUEUED for" in line]
    assert 7 <= len(waits) <= 9
    assert len(said) == 61 + len(waits)


def test_the_longest_queued_jobs_are_named() -> None:
    progress = Progress()
    jobs = {f"j{number}": job("QUEUED", createTime=f"2026-01-31T12:0{number}:00Z") for number in reversed(range(8))}
    progress.take_lines(jobs, NOON)
    (line,) = progress.take_lines(jobs, NOON + 600)
    assert "; j0, j1, j2, j3, j4 and 3 more QUEUED for 10 min" in line


def test_a_started_job_reports_its_queue_time() -> None:
    progress = Progress()
    soon, late = "2026-01-31T12:00:59Z", "2026-01-31T12:07:01Z"
    jobs = {"a": job("RUNNING", startTime=late), "b": job("RUNNING", startTime=soon)}
    assert progress.take_lines(jobs, NOON + 500) == [
        "a: RUNNING after 7 min in the queue",
        "b: RUNNING",
    ]


def test_a_slow_clock_shows_no_negative_time() -> None:
    progress = Progress()
    jobs = {"a": job("QUEUED")}
    progress.take_lines(jobs, NOON - 500)
    assert progress.take_lines(jobs, NOON - 400) == ["waiting: 0 of 1 jobs done"]


@pytest.mark.parametrize(
    ("before", "now", "line"),
    [
        ({"state": "JOB_STATE_QUEUED"}, {"state": "JOB_STATE_SUCCEEDED"}, "a: QUEUED → SUCCEEDED"),
        ({"state": "JOB_STATE_RUNNING"}, {"state": "JOB_STATE_FAILED", "error": "why"}, "a: RUNNING → FAILED: why"),
        (
            {"state": "JOB_STATE_RUNNING", "trials": {"ended": 1.0, "of": 4.0}},
            {"state": "JOB_STATE_RUNNING", "trials": {"ended": 2, "of": 4}},
            "a: RUNNING, 2 of 4 trials done",
        ),
        (
            {"state": "JOB_STATE_RUNNING", "trials": {"ended": 1.0, "of": 4.0}},
            {"state": "JOB_STATE_RUNNING", "trials": {"ended": 1, "of": 4}},
            None,
        ),
        ({}, {"state": "JOB_STATE_RUNNING"}, "a: RUNNING"),
    ],
)
def test_a_refresh_describes_each_change(before: dict[str, Any], now: dict[str, Any], line: str | None) -> None:
    assert run_change("a", before, now) == line


CLOUD = "//aiplatform.googleapis.com/projects/local/locations/us-central1"
TIMES = {"startTime": "2026-01-31T12:00:00Z", "endTime": "2026-01-31T14:00:00Z"}
TOOK = "2026-01-31T14:00:00Z 7200 s on 1 n1-standard-4"


def add_run(api: FakeClient, name: str, state: str = SUCCEEDED) -> None:
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": "trainer:1"}}
    api.add(name, labels=LABELS, jobSpec={**FOLDER, "workerPoolSpecs": [pool]}, state=state, **TIMES)


@pytest.fixture
def cloud(api: FakeClient, monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """The API of Google Cloud's location."""
    monkeypatch.setattr(target, "resolve", lambda parent: Target(api, PARENT, GoogleCloudLinks("local")))
    return api


def inputs(parent: str = CLOUD, **ids: str) -> dict[str, Any]:
    return {"parent": parent, "owner": OWNER, "jobs": ids}


def test_a_run_s_cost_is_told_once(cloud: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(cloud, TRAIN)
    created = CompletionProvider().create(inputs(digits=TRAIN)).outs
    assert created and "digits: took 2 h, 0.49 USD by list price\n" in capsys.readouterr().out
    took = created["results"]["digits"]["took"]
    assert took == f"{TOOK}: 0.49 USD at 0.2453 an hour"
    other = f"{PARENT}/customJobs/9"
    add_run(cloud, other)
    cloud.jobs[TRAIN]["endTime"] = "2026-01-31T15:00:00Z"
    updated = CompletionProvider().update("completion", created, inputs(digits=TRAIN, other=other)).outs
    assert updated and updated["results"]["digits"]["took"] == took
    assert [line for line in capsys.readouterr().out.splitlines() if "USD" in line] == [
        "other: took 2 h, 0.49 USD by list price"
    ]
    cloud.jobs[TRAIN]["name"] = again = f"{PARENT}/customJobs/10"
    cloud.jobs[again] = cloud.jobs.pop(TRAIN)
    rerun = CompletionProvider().update("completion", updated, inputs(digits=again, other=other)).outs
    assert rerun and rerun["results"]["digits"]["took"].startswith("2026-01-31T15:00:00Z 10800 s ")


def test_a_refresh_keeps_what_a_run_took(cloud: FakeClient) -> None:
    add_run(cloud, TRAIN)
    created = CompletionProvider().create(inputs(digits=TRAIN)).outs
    assert created and CompletionProvider().read("completion", created).outs == created


def test_on_this_machine_a_run_costs_nothing(api: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(api, TRAIN)
    assert wait(digits=TRAIN)["digits"]["took"] == TOOK.replace(" on ", " on this machine, declared for ")
    assert "USD" not in capsys.readouterr().out


def test_a_failed_run_costs_too_and_is_not_kept(cloud: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(cloud, TRAIN, FAILED)
    with pytest.raises(TrainingFailed):
        completion.wait(CLOUD, OWNER, {"digits": TRAIN}, {})
    assert "digits: took 2 h, 0.49 USD by list price\n" in capsys.readouterr().out


def test_many_runs_that_end_at_once_are_one_sum(cloud: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    names = {f"job{number}": f"{PARENT}/customJobs/{number}" for number in range(20)}
    for name in names.values():
        add_run(cloud, name)
    completion.wait(CLOUD, OWNER, names, {})
    assert [line for line in capsys.readouterr().out.splitlines() if "USD" in line] == [
        "20 jobs: took 9.81 USD by list price"
    ]


def test_a_run_costs_by_the_stack_s_own_prices(cloud: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    own = '{"asOf": "2026-01-01", "source": "ours", "vcpu": {"N1": {"us-central1": 1}}}'
    monkeypatch.setattr(Provider, "setting", {"prices": own}.get)
    add_run(cloud, TRAIN)
    (result,) = completion.wait(CLOUD, OWNER, {"digits": TRAIN}, {}).values()
    assert result["took"] == f"{TOOK}: 8.20 USD at 4.0999 an hour"
    # The arguments of a TrainingStack are in its ledger alone.
    argued = {"prices": {"asOf": "2026-01-01", "source": "ours", "vcpu": {"N1": {"us-central1": 2.0}}}}
    cover(LedgerRecord("led", "acme/team/dev", frozenset({"digits"}), frozenset(), CLOUD, argued))
    (result,) = completion.wait(CLOUD, OWNER, {"digits": TRAIN}, {}).values()
    assert result["took"] == f"{TOOK}: 16.20 USD at 8.0999 an hour"
