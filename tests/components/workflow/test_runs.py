"""What the workflow of a schedule does, in a stand-in for Google's Workflows, with the emulator as the training API."""

import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.components.workflow.schedules import PLACE, request, scheduled, workflow
from tests.standins.workflows.executions import Clock, Execution, Workflow
from tests.standins.workflows.faults import Faults
from tests.standins.workflows.training_api import TrainingApi
from tests.vertex_emulator.running import PARENT, RunningEmulator, pool
from tests.vertex_emulator.test_studies import study
from vertex_api.names import HYPERPARAMETER_TUNING_JOB
from vertex_api.schedules import Overlap, ScheduledJob, new_run_id

DAY = 86400.0
ABSENT = {**pool("pass"), "containerSpec": {"imageUri": "localhost/absent:1"}}
"""Never pulled, so a job with it fails at once."""


def job(schedule: str, name: str, *pools: Any) -> ScheduledJob:
    return scheduled(schedule, name, {"jobSpec": {"workerPoolSpecs": list(pools) or [ABSENT]}})


@pytest.fixture
def api(shared: RunningEmulator) -> TrainingApi:
    return TrainingApi(shared, PLACE.region)


@pytest.fixture
def start(shared: RunningEmulator, api: TrainingApi) -> Callable[..., Workflow]:
    """A workflow at the emulator's time: while it sleeps, the jobs of its schedule end."""

    def build(id_: str, *jobs: ScheduledJob, overlap: Overlap = "skip") -> Workflow:
        def end_jobs(_: float) -> None:
            for each in submitted(shared, id_):
                shared.ended(each["name"])

        return workflow(request(id_, *jobs, overlap=overlap), api, Clock(time.time()), end_jobs)

    return build


def submitted(emulator: RunningEmulator, schedule: str) -> list[Any]:
    """The jobs of a schedule, the newest first."""
    query, collections = {"filter": f"labels.pulumi_schedule={schedule}"}, ("customJobs", "hyperparameterTuningJobs")
    found = {name: emulator.call("GET", f"v1/{PARENT}/{name}", params=query).get(name, []) for name in collections}
    return [job for jobs in found.values() for job in jobs]


def skip_reason(execution: Execution) -> str:
    assert execution.error is None, execution.error
    assert execution.result.keys() == {"run", "skipped"}
    return str(execution.result["skipped"])


def test_a_run_submits_its_job_under_its_own_name(shared: RunningEmulator, start: Callable[..., Workflow]) -> None:
    made = start("run", job("run", "train"))
    first = made.execute()
    shared.ended(first.result["jobs"]["train"])
    made.clock.now += DAY
    second = made.execute()
    assert first.error is None and second.error is None, (first.error, second.error)
    runs = [execution.result["run"] for execution in (second, first)]
    assert len(set(runs)) == 2
    found = submitted(shared, "run")
    assert [each["displayName"] for each in found] == [f"train-{run}" for run in runs]
    folders = [each["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"] for each in found]
    assert folders == [f"gs://nightly/run/{run}/train" for run in runs]
    assert first.result["jobs"] == {"train": found[1]["name"]}
    assert runs[1] == new_run_id(datetime.fromtimestamp(first.started, UTC), first.id)


@pytest.mark.parametrize("overlap", ["skip", "allow"])
def test_a_second_delivery_submits_nothing(
    shared: RunningEmulator, start: Callable[..., Workflow], overlap: Overlap
) -> None:
    name = f"twice-{overlap}"
    made = start(name, job(name, "train"), overlap=overlap)
    shared.ended(made.execute().result["jobs"]["train"])
    made.clock.now += 300
    assert skip_reason(made.execute()) == "this time has been delivered before"
    assert len(submitted(shared, name)) == 1


@pytest.mark.parametrize("overlap", ["skip", "allow"])
def test_a_delivery_during_another_submits_nothing(
    shared: RunningEmulator, start: Callable[..., Workflow], overlap: Overlap
) -> None:
    name = f"at-once-{overlap}"
    made = start(name, job(name, "train"), overlap=overlap)
    send, others = made.http, list[Execution]()

    def send_after_another_delivery(method: str, url: str, query: Mapping[str, Any], body: Any) -> Any:
        if method == "POST" and not others:
            others.append(made.execute())
        return send(method, url, query, body)

    made.http = send_after_another_delivery
    assert made.execute().result["jobs"].keys() == {"train"}
    assert skip_reason(others[0]) == "another execution of this schedule is under way"
    assert len(submitted(shared, name)) == 1


def test_an_overlapping_run_submits_only_if_allowed(shared: RunningEmulator, start: Callable[..., Workflow]) -> None:
    long = job("long", "train", pool("import time; time.sleep(600)"))
    made = start("long", long)
    made.execute()
    made.clock.now += DAY
    assert skip_reason(made.execute()) == "the last run is still under way"
    assert len(submitted(shared, "long")) == 1
    made.clock.now += 8 * DAY
    (hanging,) = submitted(shared, "long")
    told = f"{hanging['displayName']} has not ended in 192 hours; no run begins before it has: cancel it"
    assert made.execute().error == {"message": told, "job": hanging["name"]}
    made.clock.now -= 8 * DAY
    allowing = start("long", long, overlap="allow")
    allowing.clock.now += DAY
    assert allowing.execute().result["jobs"].keys() == {"train"}
    running = submitted(shared, "long")
    assert len(running) == 2
    for each in running:
        shared.call("POST", f"v1/{each['name']}:cancel")


def test_a_run_between_two_jobs_is_under_way(shared: RunningEmulator, start: Callable[..., Workflow]) -> None:
    made = start("between", job("between", "first", pool("pass")), job("between", "second"))
    end_jobs, others = made.on_sleep, list[Execution]()

    def fire_after_the_job_has_ended(seconds: float) -> None:
        end_jobs(seconds)
        if not others:
            made.clock.now += DAY
            others.append(made.execute())

    made.on_sleep = fire_after_the_job_has_ended
    assert made.execute().result["jobs"].keys() == {"first", "second"}
    assert skip_reason(others[0]) == "another execution of this schedule is under way"


def test_after_a_failed_job_no_later_one_is_submitted(shared: RunningEmulator, start: Callable[..., Workflow]) -> None:
    execution = start("failing", job("failing", "first"), job("failing", "second")).execute()
    (only,) = submitted(shared, "failing")
    assert execution.error["message"] == "first has ended as JOB_STATE_FAILED; second is not submitted"
    assert execution.error["job"] == only["name"]
    assert execution.error["error"] == only["error"]


def test_later_jobs_use_results_of_earlier_ones(shared: RunningEmulator, start: Callable[..., Workflow]) -> None:
    tune = scheduled("chain", "tune", study(trials=2), HYPERPARAMETER_TUNING_JOB)
    args = ["--x=${jobs.tune.bestTrial.parameters.x}", "${jobs.tune.modelDir}", "${jobs.tune.name}"]
    train = pool("pass")
    train["containerSpec"]["args"] = [*args, "${jobs.tune.bestTrial.id}:${jobs.tune.bestTrial.metrics.score}"]
    execution = start("chain", tune, job("chain", "train", train)).execute()
    assert execution.error is None, execution.error
    tuned, trained = (shared.get(execution.result["jobs"][name]) for name in ("tune", "train"))
    best = max(tuned["trials"], key=lambda trial: trial["finalMeasurement"]["metrics"][0]["value"])
    x, score = best["parameters"][0]["value"], best["finalMeasurement"]["metrics"][0]["value"]
    folder = f"gs://nightly/chain/{execution.result['run']}/tune/{best['id']}/model/"
    sent = trained["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]
    assert sent == [f"--x={x}", folder, tuned["name"], f"{best['id']}:{score}"]


@pytest.mark.parametrize(("fault", "posts"), [("lost-answer", 1), ("quota", 2)])
def test_a_failed_request_submits_one_job(
    shared: RunningEmulator, start: Callable[..., Workflow], api: TrainingApi, fault: str, posts: int
) -> None:
    shared.call("POST", "vertex_emulator/faults", {"kind": fault, "name": f"{fault}-job-*"})
    execution = start(fault, job(fault, f"{fault}-job")).execute()
    assert len(api.posted) == posts
    (only,) = submitted(shared, fault)
    assert execution.result["jobs"] == {f"{fault}-job": only["name"]}


@pytest.mark.parametrize("seed", range(6))
def test_requests_that_fail_over_http_submit_one_job(
    shared: RunningEmulator, start: Callable[..., Workflow], seed: int
) -> None:
    made = start(f"http-{seed}", job(f"http-{seed}", "train"))
    made.send = Faults(random.Random(seed), made.clock, rate=0.4)
    execution = made.execute()
    assert execution.error is None, execution.error
    (only,) = submitted(shared, f"http-{seed}")
    assert execution.result["jobs"] == {"train": only["name"]}


def test_a_refused_job_ends_the_run_with_the_answer(
    shared: RunningEmulator, start: Callable[..., Workflow], api: TrainingApi
) -> None:
    execution = start("refused", job("refused", "train", {**ABSENT, "machineSpec": {"machineType": "n9"}})).execute()
    assert len(api.posted) == 1 and submitted(shared, "refused") == []
    assert execution.error["message"] == "train is not submitted"
    assert execution.error["answer"]["error"]["status"] == "INVALID_ARGUMENT"
