"""Declared training pipelines: what may be left out, references anywhere, and slips named at their own line."""

from pathlib import Path
from typing import Any

import pytest

from tests.components.projects import INCLUDING, load, problems
from vertex_api.names import TRAINING_PIPELINE
from vertex_api.pipelines import CUSTOM_TASK, TUNING_TASK

PIPELINE = """\
vars: {epochs: 5, port: 8080}
images:
  digits: {uri: "trainer:1"}
  serving: {uri: "serve:1"}
trainingPipelines:
  digits:
    labels: {team: vision}
    trainingTaskInputs:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          replicaCount: 1
          containerSpec:
            imageUri: ${images.digits}
            args: ["--epochs=${vars.epochs}", "--token=${secrets.token}"]
      scheduling: {timeout: 3600s}
    modelToUpload:
      containerSpec:
        imageUri: ${images.serving}
        ports: [{containerPort: "${vars.port}"}]
        env: [{name: TOKEN, value: "${secrets.token}"}]
    modelId: digits
    lifecycle: {wait: true}
"""
TUNING = """\
trainingPipelines:
  search:
    trainingTaskInputs:
      studySpec:
        metrics: [{metricId: accuracy}]
        parameters: [{parameterId: rate, doubleValueSpec: {maxValue: 1}}]
      maxTrialCount: 4
      parallelTrialCount: 2
      trialJobSpec:
        workerPoolSpecs:
          - machineSpec: {machineType: n1-standard-4}
            containerSpec: {imageUri: trainer}
"""
WITH_TOKEN = f"{INCLUDING}  vertex-training:secrets: {{token: x}}\n"
SPEC: dict[str, Any] = {
    "displayName": "digits",
    "labels": {"team": "vision"},
    "trainingTaskDefinition": CUSTOM_TASK,
    "trainingTaskInputs": {
        "workerPoolSpecs": [
            {
                "machineSpec": {"machineType": "n1-standard-4"},
                "replicaCount": 1,
                "containerSpec": {
                    "imageUri": "${images.digits}",
                    "args": ["--epochs=5", "--token=${secrets.token}"],
                },
            }
        ],
        "scheduling": {"timeout": "3600s"},
    },
    "modelToUpload": {
        "displayName": "digits",
        "containerSpec": {
            "imageUri": "${images.serving}",
            "ports": [{"containerPort": 8080}],
            "env": [{"name": "TOKEN", "value": "${secrets.token}"}],
        },
    },
    "modelId": "digits",
}
INPUTS = "trainingPipelines.digits.trainingTaskInputs"
IN_POOL = f"{INPUTS}.workerPoolSpecs[0]"


def test_a_pipeline_is_canonical(tmp_path: Path) -> None:
    (job,) = load(tmp_path, WITH_TOKEN, jobs=PIPELINE).jobs
    assert (job.kind, job.name, job.job.fields, job.lifecycle) == (
        TRAINING_PIPELINE,
        "digits",
        SPEC,
        {"wait": True},
    )


def test_a_pipeline_may_be_in_snake_case(tmp_path: Path) -> None:
    snake = PIPELINE
    for name in ("workerPoolSpecs", "machineSpec", "machineType", "replicaCount", "containerSpec", "imageUri"):
        snake = snake.replace(name, "".join(f"_{each.lower()}" if each.isupper() else each for each in name))
    snake = snake.replace("    trainingTaskInputs", "    training_task_inputs").replace(
        "modelToUpload", "model_to_upload"
    )
    (job,) = load(tmp_path, WITH_TOKEN, jobs=snake).jobs
    assert job.job.fields == SPEC


def test_inputs_with_a_study_mean_tuning(tmp_path: Path) -> None:
    (job,) = load(tmp_path, INCLUDING, jobs=TUNING).jobs
    assert job.job.fields["trainingTaskDefinition"] == TUNING_TASK
    assert job.job.fields["trainingTaskInputs"]["maxTrialCount"] == 4


def test_a_definition_that_is_written_out_stays(tmp_path: Path) -> None:
    jobs = PIPELINE.replace("    modelId:", f"    trainingTaskDefinition: {CUSTOM_TASK}\n    modelId:")
    (job,) = load(tmp_path, WITH_TOKEN, jobs=jobs).jobs
    assert job.job.fields == SPEC


def test_a_pipeline_can_come_from_a_file(tmp_path: Path) -> None:
    lines = PIPELINE.splitlines()
    body = "\n".join(line.removeprefix("    ") for line in lines[6:-1]) + "\n"
    declared = "\n".join([*lines[:6], "    spec: {file: body.yaml}", lines[-1]]) + "\n"
    (job,) = load(tmp_path, WITH_TOKEN, jobs=declared, **{"body.yaml": body}).jobs
    assert (job.job.fields, job.lifecycle) == (SPEC, {"wait": True})
    slip = body.replace("replicaCount: 1", "replicaCount: 2")
    assert problems(tmp_path, WITH_TOKEN, jobs=declared, **{"body.yaml": slip}) == [
        "body.yaml:5: trainingTaskInputs.workerPoolSpecs[0].replicaCount: 2 must be 1: the first pool is the primary "
        "replica"
    ]


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        (
            "machineType:",
            "machineTyp:",
            f"jobs.yaml:10: {IN_POOL}.machineSpec.machineTyp: unknown field; did you mean machineType?",
        ),
        (
            "replicaCount: 1",
            "replicaCount: 2",
            f"jobs.yaml:11: {IN_POOL}.replicaCount: 2 must be 1: the first pool is the primary replica",
        ),
        (
            "${images.digits}",
            "${images.digit}",
            f"jobs.yaml:13: {IN_POOL}.containerSpec.imageUri: ${{images.digit}} is not declared; did you mean digits?",
        ),
        (
            "3600s",
            "1h",
            f'jobs.yaml:15: {INPUTS}.scheduling.timeout: "1h" is not a duration; write seconds followed by s, such as '
            '"3600s"',
        ),
        (
            "${images.serving}",
            "${images.servin}",
            "jobs.yaml:18: trainingPipelines.digits.modelToUpload.containerSpec.imageUri: ${images.servin} is not "
            "declared; did you mean serving?",
        ),
        (
            "${vars.port}",
            "http",
            "jobs.yaml:19: trainingPipelines.digits.modelToUpload.containerSpec.ports[0].containerPort: "
            '"http" is not a whole number',
        ),
        (
            "modelId: digits",
            "modelId: Digits",
            'jobs.yaml:21: trainingPipelines.digits.modelId: "Digits" must be at most 63 of [a-z0-9_-], and not start '
            "with a number or hyphen",
        ),
        (
            "modelId: digits",
            "trainingTaskDefinition: automl",
            'jobs.yaml:21: trainingPipelines.digits.trainingTaskDefinition: "automl" is no task that runs training '
            f"code; known: {CUSTOM_TASK}, {TUNING_TASK}",
        ),
        (
            "team: vision",
            "Team: vision",
            'jobs.yaml:7: trainingPipelines.digits.labels: the key "Team" may hold lower-case letters, digits, '
            "underscores and dashes only",
        ),
    ],
)
def test_a_pipeline_problem_names_its_line(tmp_path: Path, right: str, wrong: str, problem: str) -> None:
    assert PIPELINE.count(right) == 1
    assert problem in problems(tmp_path, WITH_TOKEN, jobs=PIPELINE.replace(right, wrong))


def test_pipeline_and_task_problems_are_reported_together(tmp_path: Path) -> None:
    jobs = PIPELINE.replace("machineType:", "machineTyp:").replace("modelId:", "modelID:")
    found = [problem.split(": ")[1] for problem in problems(tmp_path, WITH_TOKEN, jobs=jobs)]
    assert found == [f"{IN_POOL}.machineSpec.machineTyp", "trainingPipelines.digits.modelID"]


def test_a_lone_number_var_becomes_task_text(tmp_path: Path) -> None:
    jobs = PIPELINE.replace('"--epochs=${vars.epochs}"', '--epochs, "${vars.epochs}"')
    (job,) = load(tmp_path, WITH_TOKEN, jobs=jobs).jobs
    container = job.job.fields["trainingTaskInputs"]["workerPoolSpecs"][0]["containerSpec"]
    assert container["args"] == ["--epochs", "5", "--token=${secrets.token}"]


def test_a_pipeline_requires_inputs(tmp_path: Path) -> None:
    assert problems(tmp_path, INCLUDING, jobs="trainingPipelines: {digits: {labels: {a: b}}}\n") == [
        "jobs.yaml:1: trainingPipelines.digits.trainingTaskInputs: is required"
    ]


def test_pipelines_and_jobs_share_one_set_of_names(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, INCLUDING, jobs=TUNING + "customJobs: {search: {}}\n")
    assert problem == 'jobs.yaml:13: customJobs.search: "search" is declared already, at jobs.yaml:2'
