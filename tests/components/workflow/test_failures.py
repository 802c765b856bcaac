"""Failures of single requests and jobs that hang, in the stand-in for Workflows: which end a run, and what it says."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from vertex_training.workflow.source import max_hours

from tests.components.workflow.schedules import request, scheduled, workflow
from tests.components.workflow.test_source import MACHINE, TUNING, train, tune
from tests.standins.workflows.executions import Execution, Workflow, check_source
from tests.standins.workflows.expressions import WorkflowError
from tests.standins.workflows.training_api import http_error
from vertex_api.names import HYPERPARAMETER_TUNING_JOB

HOUR = 3600.0
PASSING = (408, 429, 500, 503, "AuthError", "ConnectionError", "ConnectionFailedError", "TimeoutError")


def failure(kind: int | str) -> WorkflowError:
    if isinstance(kind, int):
        return http_error(kind, {"error": {"code": kind, "message": "so it is"}})
    return WorkflowError({"message": "so it is", "tags": [kind]})


class Api:
    """Takes jobs, which are all in `state`; `requests` are the paths, and `fails` says which fail."""

    def __init__(self, *names: str, state: str = "JOB_STATE_SUCCEEDED", **overlap: Any) -> None:
        jobs = [train(name=name) for name in names or ("train",)]
        self.workflow: Workflow = workflow(request("s", *jobs, **overlap), self.answer)
        self.workflow.send = self.send
        self.state = state
        self.requests: list[str] = []
        self.fails: Callable[[str], int | str | None] = lambda request: None

    def answer(self, method: str, url: str, query: Mapping[str, Any], body: Any) -> Any:
        if method == "POST":
            return {**body, "name": "p/customJobs/1", "state": self.state}
        if query:
            return {}
        return {"name": "p/customJobs/1", "state": self.state, "error": {"message": "of the job"}}

    def send(self, url: str, get_answer: Callable[[], Any]) -> Any:
        self.requests.append(url.rpartition("/v1/")[2])
        if kind := self.fails(self.requests[-1]):
            raise failure(kind)
        return get_answer()

    def workflow_requests(self) -> list[str]:
        """The requests of a run."""
        assert self.workflow.execute().error is None
        return self.requests


@pytest.mark.parametrize("kind", PASSING)
def test_what_passes_is_tried_again(kind: int | str) -> None:
    api = Api()
    api.fails = lambda request: kind if len(api.requests) == 1 else None
    assert api.workflow.execute().error is None
    assert api.requests[0] == api.requests[1]


@pytest.mark.parametrize("code", [400, 403, 404])
def test_what_stays_ends_the_run(code: int) -> None:
    api = Api()
    api.fails = lambda request: code
    assert api.workflow.execute().error["code"] == code
    assert len(api.requests) == 1


@pytest.mark.parametrize("kind", PASSING)
def test_a_failed_look_is_one_more_pause(kind: int | str) -> None:
    api = Api("first", "second")
    begin = api.workflow.clock.now
    api.fails = lambda request: kind if is_look(request) and api.workflow.clock.now < begin + 0.8 * HOUR else None
    assert api.workflow.execute().error is None
    assert api.workflow.clock.now > begin + 0.8 * HOUR


def is_look(request: str) -> bool:
    return request.endswith("/1")


def test_looks_that_fail_for_an_hour_end_the_run() -> None:
    api = Api("first", "second")
    begin = api.workflow.clock.now
    api.fails = lambda request: 500 if is_look(request) else None
    error = api.workflow.execute().error
    assert error["message"] == "first cannot be read, and may go on; second is not submitted"
    assert error["answer"]["error"]["message"] == "so it is" and error["job"].endswith("/customJobs/1")
    assert HOUR <= api.workflow.clock.now - begin < 1.2 * HOUR


def test_a_deleted_job_is_not_waited_for() -> None:
    api = Api("first", "second")
    api.fails = lambda request: 404 if is_look(request) else None
    assert api.workflow.execute().error["answer"]["error"]["code"] == 404
    assert sum(map(is_look, api.requests)) == 1


def test_a_job_that_hangs_is_waited_for_eight_days() -> None:
    api = Api("first", "second", state="JOB_STATE_QUEUED")
    begin = api.workflow.clock.now
    execution = api.workflow.execute()
    told = "first is JOB_STATE_QUEUED after 192 hours, and goes on; second is not submitted"
    assert execution.error == {"message": told, "job": "p/customJobs/1"}
    assert 192 * HOUR <= api.workflow.clock.now - begin < 193 * HOUR
    assert execution.steps < 25_000


def test_ten_hanging_jobs_fit_an_execution() -> None:
    api = Api(*(f"job-{number}" for number in range(10)), state="JOB_STATE_RUNNING")
    api.fails = end_each_job_late(api)
    assert api.workflow.execute().error is None
    assert 50_000 < api.workflow.executions[0].steps < 100_000


def end_each_job_late(api: Api) -> Callable[[str], None]:
    """Each job ends an hour before a run would give up."""
    posted: list[float] = []

    def see(request: str) -> None:
        if request.endswith("customJobs") and (not posted or api.state != "JOB_STATE_RUNNING"):
            posted.append(api.workflow.clock.now)
            api.state = "JOB_STATE_RUNNING"
        elif posted and api.workflow.clock.now > posted[-1] + 191 * HOUR:
            api.state = "JOB_STATE_SUCCEEDED"

    return see


@pytest.mark.parametrize(
    ("scheduling", "study", "hours"),
    [
        ({}, {}, 8 * 24),
        ({"timeout": "0s"}, {}, 8 * 24),
        ({"timeout": "3600s"}, {}, 25),
        ({"timeout": "3600s", "strategy": "FLEX_START"}, {}, 49),
        ({"timeout": "3600s", "strategy": "FLEX_START", "maxWaitDuration": "7200s"}, {}, 27),
        ({"timeout": "3600s", "strategy": "FLEX_START", "maxWaitDuration": "0s"}, {}, 25 + 7 * 24),
        ({"timeout": "3600s"}, {"maxTrialCount": 7, "parallelTrialCount": 3}, 27),
    ],
)
def test_the_wait_is_that_of_the_spec(scheduling: Any, study: Any, hours: int) -> None:
    spec = {"workerPoolSpecs": [MACHINE], "scheduling": scheduling}
    job = scheduled("s", "train", {"jobSpec": spec})
    if study:
        job = scheduled("s", "tune", {**TUNING, **study, "trialJobSpec": spec}, HYPERPARAMETER_TUNING_JOB)
    assert max_hours(job) == hours


def test_a_job_that_hangs_is_no_skipped_run() -> None:
    api, hanging = Api(), [{"name": "p/customJobs/7", "displayName": "train-2026"}]
    told = "train-2026 has not ended in 192 hours; no run begins before it has: cancel it"
    api.workflow.http = lambda method, url, query, body: (
        {"customJobs": hanging} if "create_time<" in query.get("filter", "") else api.answer(method, url, query, body)
    )
    assert api.workflow.execute().error == {"message": told, "job": "p/customJobs/7"}


@pytest.mark.parametrize(("kind", "lists"), [("AuthError", 0), ("ConnectionFailedError", 0), (429, 0), (503, 1)])
def test_only_a_lost_answer_is_looked_for(kind: int | str, lists: int) -> None:
    api = Api()
    usual = len(Api().workflow_requests())
    posts: list[str] = []

    def fail_first_post(request: str) -> int | str | None:
        posts.extend([request] if len(api.requests) == usual else [])
        return kind if len(api.requests) == usual else None

    api.fails = fail_first_post
    assert api.workflow.execute().error is None and posts
    assert len(api.requests) == usual + lists + 1


def test_an_account_without_credentials_is_told() -> None:
    api = Api()
    usual = len(Api().workflow_requests())
    api.fails = lambda request: "AuthError" if len(api.requests) >= usual else None
    error = api.workflow.execute().error
    assert error == {"message": "train is not submitted", "answer": {"message": "so it is", "tags": ["AuthError"]}}


def test_a_job_that_may_be_there_is_told() -> None:
    api = Api()
    usual = len(Api().workflow_requests())
    api.fails = lambda request: 503 if len(api.requests) >= usual else None
    error = api.workflow.execute().error
    assert error["message"] == "train may be submitted: its answer is lost, and jobs cannot be listed"
    assert error["answer"]["error"]["code"] == 503


def test_a_search_of_500_trials_fits_an_execution() -> None:
    parameters = [{"parameterId": name, "value": 0.123456789} for name in ("lr", "momentum", "dropout")]
    measurement = {"stepCount": "100", "elapsedDuration": "3600s", "metrics": [{"metricId": "acc", "value": 0.98765}]}
    trial = {"state": "SUCCEEDED", "parameters": parameters, "finalMeasurement": measurement}
    more = {"startTime": "2026-11-22T02:00:00.123456Z", "endTime": "2026-11-22T03:00:00.123456Z", "clientId": ""}
    more |= {"customJob": "projects/123456789012/locations/us-central1/customJobs/1234567890123456789"}
    trials = [{"name": "p/studies/1/trials/1", "id": str(number), **trial, **more} for number in range(1, 501)]
    ended = {**tune().body, "name": "p/hyperparameterTuningJobs/1", "state": "JOB_STATE_SUCCEEDED", "trials": trials}

    def answer(method: str, url: str, query: Mapping[str, Any], body: Any) -> Any:
        return {} if query else ended if "hyperparameterTuningJobs" in url else {**body, "name": "p/customJobs/2"}

    execution = workflow(request("s", tune(), train("${jobs.tune.bestTrial.id}")), answer).execute()
    assert execution.error is None, execution.error
    assert 100_000 < execution.most_bytes < 450_000
    assert len(json.dumps(ended)) > 250_000


STEP: dict[str, Any] = {"return": 1}


@pytest.mark.parametrize(
    "steps",
    [
        [{"a": {"parallel": {}}}],
        [{"a": {"call": "http.delete", "args": {}}}],
        [{"a": {"call": "http.get", "args": {"url": "u", "timeout": 3}}}],
        [{"a": {"call": "other", "args": {"x": 1}}}],
        [{"a": {"switch": [{"condition": True, "steps": []}]}}],
        [{"a": {"assign": [], "next": "b"}}],
        [{"a": {"for": {"value": "v", "range": [1, 2], "steps": []}}}],
        [{"a": {"for": {"value": "v", "in": [], "steps": [{"b": {"assign": [], "next": "c"}}]}}}, {"c": STEP}],
        [{"a": {"try": {"steps": []}, "except": {"as": "e", "steps": []}}}],
        [{"a": {"try": {"call": "http.get"}, "retry": "${http.default_retry}"}}],
        [{"a": STEP}, {"a": STEP}],
        [{"a": {"assign": [{f"v{number}": 1} for number in range(51)]}}],
    ],
)
def test_the_stand_in_refuses_what_it_does_not_know(steps: Any) -> None:
    with pytest.raises((AssertionError, KeyError, TypeError)):
        check_source({"main": {"steps": steps}, "other": {"params": ["y"], "steps": [{"z": STEP}]}})


@pytest.mark.parametrize(
    ("expression", "tag"),
    [("1 + null", "TypeError"), ('"a" - "b"', "TypeError"), ("1 in 2", "TypeError"), ("nowhere", "KeyError")],
)
def test_the_stand_in_has_the_errors_of_expressions(expression: str, tag: str) -> None:
    assert run_one({"return": f"${{{expression}}}"}).error["tags"] == [tag]


@pytest.mark.parametrize(("expression", "value"), [('1 + "a" + true', "1atrue"), ("1 + 2 * 3 == 7.0", True)])
def test_the_stand_in_has_the_types_of_expressions(expression: str, value: Any) -> None:
    assert run_one({"return": f"${{{expression}}}"}).result == value


@pytest.mark.parametrize("expression", ["[1]", "1 // 2", "not true", 'text.find_all("a", "b")', "1 ? 2"])
def test_the_stand_in_refuses_unknown_expressions(expression: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        run_one({"return": f"${{{expression}}}"})


def run_one(step: dict[str, Any]) -> Execution:
    return Workflow(json.dumps({"main": {"steps": [{"one": step}]}}), lambda *_: None).execute()
