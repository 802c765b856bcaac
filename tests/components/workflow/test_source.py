"""The source of a workflow: what it is for given jobs, and what a preview refuses."""

import json
import random
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from vertex_training.workflow.source import (
    MAX_SOURCE_BYTES,
    Place,
    length_violation,
    redelivery_window,
    request_violations,
    size_violation,
    workflow_source,
)

from tests.components.workflow.schedules import PLACE, WINDOW, request, scheduled, workflow
from tests.standins.workflows.executions import Execution
from vertex_api.job import job_results
from vertex_api.names import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.pipelines import CUSTOM_TASK, TUNING_TASK
from vertex_api.schedules import ScheduledJob, ScheduleRequest, result_references

MACHINE = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1}
STUDY: dict[str, Any] = {
    "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}],
    "parameters": [{"parameterId": "lr", "doubleValueSpec": {"minValue": 1e-05, "maxValue": 1.0}}],
}
TUNING = {
    "studySpec": STUDY,
    "maxTrialCount": 9,
    "parallelTrialCount": 3,
    "trialJobSpec": {"workerPoolSpecs": [MACHINE]},
}


def train(*args: str, name: str = "train", image: str = "r/i@sha256:0") -> ScheduledJob:
    container = {"imageUri": image, "args": list(args)}
    return scheduled("s", name, {"jobSpec": {"workerPoolSpecs": [{**MACHINE, "containerSpec": container}]}})


def tune(study: Mapping[str, Any] = STUDY) -> ScheduledJob:
    return scheduled("s", "tune", {**TUNING, "studySpec": study}, HYPERPARAMETER_TUNING_JOB)


def run(schedule: ScheduleRequest, answers: Mapping[str, Any]) -> tuple[Execution, list[Any]]:
    """Run a schedule whose jobs end at once as `answers` has them by collection; what was sent."""
    sent: list[Any] = []

    def answer(method: str, url: str, query: Mapping[str, Any], body: Any) -> Any:
        collection = url.removeprefix(PLACE.location_url).split("/")[1]
        if method == "POST":
            sent.append(body)
        name = f"{PLACE.location_url.removeprefix(PLACE.api_url)}/{collection}/1"
        return {} if query else {"state": "JOB_STATE_SUCCEEDED", **answers.get(collection, {}), "name": name}

    return workflow(schedule, answer).execute(), sent


def find_violations(*jobs: ScheduledJob) -> list[str]:
    return [f"{'.'.join(map(str, path))}: {message}" for path, message in request_violations(request("s", *jobs))]


def random_trial(number: int, draw: random.Random) -> dict[str, Any]:
    value = draw.choice([0.5, 0.25, -1, 3, 0.125, "NaN", None])
    metrics = [{"metricId": "other", "value": 9.0}, *([] if value is None else [{"metricId": "acc", "value": value}])]
    parameters = [{"parameterId": "lr", "value": draw.choice([0.5, 32.0, 7, "relu"])}]
    state = draw.choice(["SUCCEEDED", "SUCCEEDED", "INFEASIBLE"])
    final = {"finalMeasurement": {"metrics": metrics}} if draw.random() > 0.2 else {}
    return {"id": str(number), "state": state, "parameters": parameters, **final}


@pytest.mark.parametrize("goal", ["MAXIMIZE", "MINIMIZE"])
def test_the_best_trial_is_that_of_declared_jobs(goal: str) -> None:
    study = {**STUDY, "metrics": [{"metricId": "acc", "goal": goal}]}
    used = ["id", "parameters.lr", "metrics.acc"]
    later = train(*(f"${{jobs.tune.bestTrial.{result}}}" for result in used), "${jobs.tune.modelDir}")
    draw, found = random.Random(7), 0
    for _ in range(40):
        trials = [random_trial(number, draw) for number in draw.sample(range(1, 30), draw.randint(0, 8))]
        ended = {**tune(study).body, "state": "JOB_STATE_SUCCEEDED", "name": "n", "trials": trials}
        execution, sent = run(request("s", tune(study), later), {"hyperparameterTuningJobs": ended})
        finite = [each for each in trials if "NaN" not in json.dumps(each)]
        best = job_results({**ended, "trials": finite})
        if best["bestTrial"] is None:
            message = "tune has no best trial: no trial has succeeded with the metric acc"
            assert execution.error == {"message": message} and len(sent) == 1
            continue
        found += 1
        id_, rate, measured, folder = sent[1]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]
        row = best["bestTrial"]
        assert (id_, rate) == (row["id"], str(row["parameters"]["lr"]))
        assert float(measured) == row["metrics"]["acc"]
        assert folder == f"gs://nightly/s/{execution.result['run']}/tune/{id_}/model/"
    assert found > 20


def test_results_of_pipelines_are_read_from_the_service() -> None:
    inputs: dict[str, Any] = {"workerPoolSpecs": [MACHINE]}
    custom: dict[str, Any] = {"trainingTaskDefinition": CUSTOM_TASK, "trainingTaskInputs": inputs, "modelToUpload": {}}
    first = scheduled("s", "first", custom, TRAINING_PIPELINE)
    ended = {
        "state": "PIPELINE_STATE_SUCCEEDED",
        "trainingTaskMetadata": {"backingCustomJob": "p/customJobs/1"},
        "modelToUpload": {"name": "p/models/2"},
    }
    used = ["${jobs.first.backingJob}", "--model=${jobs.first.model}", "${jobs.first.modelDir}"]
    execution, sent = run(request("s", first, train(*used)), {"trainingPipelines": ended})
    folder = f"gs://nightly/s/{execution.result['run']}/first/model/"
    args = sent[1]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]
    assert args == ["p/customJobs/1", "--model=p/models/2", folder]


def test_a_pipeline_has_its_tuning_job_s_best_trial() -> None:
    body: dict[str, Any] = {"trainingTaskDefinition": TUNING_TASK, "trainingTaskInputs": TUNING}
    first = ScheduledJob("tune", "trainingPipelines", {**body, "displayName": "t", "labels": tune().body["labels"]})
    trial = {"id": "4", "state": "SUCCEEDED", "parameters": [{"parameterId": "lr", "value": 0.5}]}
    trial |= {"finalMeasurement": {"metrics": [{"metricId": "acc", "value": 0.5}]}}
    name = PLACE.location_url.removeprefix(PLACE.api_url) + "/hyperparameterTuningJobs/1"
    ended = {"state": "PIPELINE_STATE_SUCCEEDED", "trainingTaskMetadata": {"backingHyperparameterTuningJob": name}}
    answers = {"trainingPipelines": ended, "hyperparameterTuningJobs": {"trials": [trial]}}
    execution, sent = run(request("s", first, train("${jobs.tune.bestTrial.parameters.lr}")), answers)
    assert execution.error is None
    assert sent[1]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == ["0.5"]


def test_only_texts_with_placeholders_become_expressions() -> None:
    text = 'quoted "x", a \\ and a }\n$(AIP_MODEL_DIR)'
    job = train(text, f"{text} ${{run.id}}")
    job.body["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] = 3
    job.body["jobSpec"]["scheduling"] = {"disableRetries": True, "maxWaitDuration": "0s", "tiny": 1e-05}
    source = json.loads(workflow_source(request("s", job), PLACE, WINDOW))
    (submit,) = (step["submit_0"] for step in source["main"]["steps"] if "submit_0" in step)
    spec = submit["args"]["body"]["jobSpec"]
    assert spec["scheduling"] == job.body["jobSpec"]["scheduling"]
    assert spec["workerPoolSpecs"][0]["replicaCount"] == 3
    plain, expression = spec["workerPoolSpecs"][0]["containerSpec"]["args"]
    assert plain == text and expression.startswith("${")
    execution, (sent,) = run(request("s", job), {})
    run_id = execution.result["run"]
    assert sent["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == [text, f"{text} {run_id}"]


def test_a_new_image_changes_one_line_of_the_source() -> None:
    before, after = (
        workflow_source(request("s", train(image=image)), PLACE, WINDOW).splitlines() for image in ("r@a", "r@b")
    )
    (change,) = [lines for lines in zip(before, after, strict=True) if lines[0] != lines[1]]
    assert [line.strip() for line in change] == ['"imageUri": "r@a",', '"imageUri": "r@b",']


def test_the_longest_names_make_no_expression_too_long() -> None:
    place = Place("p" * 30, "northamerica-northeast1", "w" * 64)
    job = ScheduledJob("j" * 63, "customJobs", {**train().body, "labels": {"pulumi_name": "j" * 63}})
    source = workflow_source(request("s" * 63, job, tune()), place, WINDOW)
    lengths = list[int]()
    collect_texts(json.loads(source), lambda text: lengths.append(len(text)) if "${" in text else None)
    assert max(lengths) <= 400 and len(lengths) > 20


def collect_texts(value: Any, see: Callable[[str], None]) -> None:
    if isinstance(value, str):
        see(value)
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            collect_texts(child, see)


@pytest.mark.parametrize(
    ("arg", "message"),
    [
        ("echo ${HOME}", '"${HOME}" would be evaluated by Workflows, which has no escape; move it into the image'),
        ("echo ${run.id} ${", '"${" would be evaluated by Workflows, which has no escape; move it into the image'),
        (
            "x" * 400 + "${run.id}",
            f'"{"x" * 60}…" becomes an expression of 411 characters, and Workflows allows 400; shorten it, or pass '
            "the reference as a text of its own",
        ),
        ("x" * 300_000, f'"{"x" * 60}…" has 300000 bytes; Workflows allows 262144: shorten it'),
    ],
)
def test_a_text_that_workflows_cannot_send_is_refused(arg: str, message: str) -> None:
    assert find_violations(train("fine", arg)) == [f"train.jobSpec.workerPoolSpecs.0.containerSpec.args.1: {message}"]


def test_a_best_trial_by_several_metrics_is_refused() -> None:
    used = train("${jobs.tune.bestTrial.id}")
    several = {**STUDY, "metrics": [{"metricId": "acc"}, {"metricId": "f1"}]}
    safe = {**STUDY, "metrics": [*STUDY["metrics"], {"metricId": "heat", "safetyConfig": {}}]}
    advice = "and a workflow finds the best trial by one metric only; refer to no result of its trials"
    assert find_violations(tune(several), used) == [f"tune.studySpec.metrics: has 2 metrics, {advice}"]
    assert find_violations(tune(safe), used) == [f"tune.studySpec.metrics: has a safety metric, {advice}"]
    assert find_violations(tune(several), train("${jobs.tune.name}")) == []
    assert result_references(used.body) == ["tune.bestTrial.id"]


def test_a_source_beyond_the_limit_is_refused() -> None:
    small, large = (workflow_source(request("s", train("x" * size)), PLACE, WINDOW) for size in (9, 130_000))
    assert size_violation(small) is None
    advice = "shorten arguments, or give each job a schedule of its own"
    expected = f"its workflow has {len(large)} bytes, and Workflows allows {MAX_SOURCE_BYTES}; {advice}"
    assert size_violation(large) == expected


def test_a_run_that_may_wait_for_years_is_refused() -> None:
    def chain(days: int) -> ScheduleRequest:
        first = train()
        first.body["jobSpec"]["scheduling"] = {"timeout": f"{days * 86400}s"}
        return request("s", first, train())

    assert length_violation(chain(363)) is None
    advice = "shorten scheduling.timeout, or give some of the jobs a schedule of their own"
    reason = "a run may wait 366 days for its jobs, and Workflows ends an execution after a year"
    assert length_violation(chain(365)) == f"{reason}; {advice}"


def test_the_window_is_shorter_than_the_shortest_gap() -> None:
    assert redelivery_window(timedelta(days=1)) == timedelta(minutes=10)
    assert redelivery_window(timedelta(minutes=1)) == timedelta(seconds=30)
