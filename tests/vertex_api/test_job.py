"""Job: one form for a job, whoever wrote it, and what it says of the job."""

import json
from typing import Any

import pytest

from tests.vertex_api.futures import future_job
from tests.vertex_api.jobs import ABSENT, custom_job, edited, job_of, pipeline, tuning_job, tuning_pipeline
from vertex_api.job import Job, job_results, parse_job, stored_job
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE, Kind

OUTPUT = {"outputUriPrefix": "gs://b/out/"}
TASK = "trainingTaskInputs"


def canonical(kind: Kind, body: Any) -> Job:
    spec, problems = parse_job(kind, body)
    assert spec, problems
    return spec


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_restored_spec_equals_the_validated_one(kind: Kind) -> None:
    spec = canonical(kind, job_of(kind))
    assert stored_job(kind, {**job_of(kind), "name": "a", "state": "JOB_STATE_PENDING"}) == spec
    unnamed = {key: value for key, value in job_of(kind).items() if key != "displayName"}
    assert stored_job(kind, unnamed).fields.keys() == spec.fields.keys() - {"displayName"}


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_only_adopted_jobs_may_lack_a_display_name(kind: Kind) -> None:
    unnamed = {key: value for key, value in job_of(kind).items() if key != "displayName"}
    assert [problem.place for problem in parse_job(kind, unnamed)[1]] == ["displayName"]
    spec, problems = parse_job(kind, unnamed, is_name_required=False)
    assert spec and problems == []
    assert "displayName" not in spec.fields
    assert spec.backing.job_spec == spec.job_spec


@pytest.mark.parametrize(
    ("kind", "body", "path"),
    [
        (CUSTOM_JOB, custom_job(), ("jobSpec",)),
        (HYPERPARAMETER_TUNING_JOB, tuning_job(), ("trialJobSpec",)),
        (TRAINING_PIPELINE, pipeline(), (TASK,)),
        (TRAINING_PIPELINE, tuning_pipeline(), (TASK, "trialJobSpec")),
    ],
)
def test_every_kind_has_a_custom_job_spec(kind: Kind, body: Any, path: tuple[str, ...]) -> None:
    spec = canonical(kind, body)
    assert spec.job_spec_path == path
    assert spec.job_spec == spec.backing.fields[spec.backing.kind.spec_field]
    assert bool(spec.study_spec) == ("trialJobSpec" in path)


def test_all_jobs_but_tuning_have_a_model_folder() -> None:
    assert canonical(CUSTOM_JOB, custom_job()).model_dir is None
    custom = edited(custom_job(), "jobSpec", "baseOutputDirectory", to=OUTPUT)
    assert canonical(CUSTOM_JOB, custom).model_dir == "gs://b/out/model/"
    piped = edited(pipeline(), TASK, "baseOutputDirectory", to=OUTPUT)
    assert canonical(TRAINING_PIPELINE, piped).model_dir == "gs://b/out/model/"
    tuning = edited(tuning_job(), "trialJobSpec", "baseOutputDirectory", to=OUTPUT)
    assert canonical(HYPERPARAMETER_TUNING_JOB, tuning).model_dir is None
    piped = edited(tuning_pipeline(), TASK, "trialJobSpec", "baseOutputDirectory", to=OUTPUT)
    assert canonical(TRAINING_PIPELINE, piped).model_dir is None


@pytest.mark.parametrize(
    ("kind", "body", "trials"),
    [(CUSTOM_JOB, custom_job(), (1, 1)), (TRAINING_PIPELINE, tuning_pipeline(), (8, 2))],
)
def test_a_job_says_what_it_takes(kind: Kind, body: Any, trials: tuple[int, int]) -> None:
    job = canonical(kind, body)
    assert (job.trials, job.parallel_trials) == trials
    assert [pool["machineSpec"]["machineType"] for pool in job.pools] == ["n1-standard-4"]
    assert (job.timeout, job.max_seconds) == (None, 604_800)
    assert [metric.id for metric in job.metrics] == (["accuracy"] if trials[0] > 1 else [])


def test_persistent_resources_have_the_machines() -> None:
    body = edited(custom_job(), "jobSpec", "persistentResourceId", to="pool")
    job = canonical(CUSTOM_JOB, edited(body, "jobSpec", "scheduling", to={"timeout": "60s"}))
    assert (job.persistent_resource, job.pools) == ("pool", [])
    assert (job.timeout, job.max_seconds) == ("60s", 60)


def test_results_are_named_by_what_runs() -> None:
    assert canonical(TRAINING_PIPELINE, pipeline()).result_names == ["name", "modelDir", "backingJob", "model"]
    names = canonical(HYPERPARAMETER_TUNING_JOB, tuning_job()).result_names
    assert names[2:4] == ["bestTrial.id", "bestTrial.parameters.rate"]
    assert names[-1] == "bestTrial.metrics.accuracy"


def test_a_search_s_results_are_its_best_trial_s() -> None:
    metric = tuning_job()["studySpec"]["metrics"][0]["metricId"]
    trials = [
        {
            "id": str(number),
            "state": "SUCCEEDED",
            "finalMeasurement": {"metrics": [{"metricId": metric, "value": value}]},
        }
        for number, value in ((1, 0.25), (2, 0.75))
    ]
    job = {
        **stored_job(HYPERPARAMETER_TUNING_JOB, tuning_job()).fields,
        "state": "JOB_STATE_SUCCEEDED",
        "trials": trials,
    }
    job["trialJobSpec"] = {**job["trialJobSpec"], "baseOutputDirectory": OUTPUT}
    results = job_results(job)
    best = max(trials, key=lambda trial: trial["finalMeasurement"]["metrics"][0]["value"] * _direction(job))
    assert results["bestTrial"]["id"] == best["id"]
    assert results["modelDir"] == f"gs://b/out/{best['id']}/model/"
    assert [trial["id"] for trial in results["trials"]] == ["1", "2"]


def _direction(job: Any) -> int:
    return 1 if job["studySpec"]["metrics"][0]["goal"] == "MAXIMIZE" else -1


@pytest.mark.parametrize("body", [None, [], "a", 1])
def test_a_pipeline_that_is_no_object_is_one_problem(body: Any) -> None:
    spec, problems = parse_job(TRAINING_PIPELINE, body)
    assert spec is None and len(problems) == 1


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_what_a_job_lifts_stays_as_written(kind: Kind) -> None:
    body, places = future_job(kind)
    assert {problem.place for problem in parse_job(kind, body)[1]} == {*places}
    job, problems = parse_job(kind, body, allowed=places)
    assert job and problems == []
    assert {problem.place for problem in job.lifted} == {*places}
    assert job.job_spec["pacing"] == body[kind.spec_field]["pacing"]
    assert job.pools[0]["machineSpec"] == body[kind.spec_field]["workerPoolSpecs"][0]["machineSpec"]
    assert job.backing.job_spec == job.job_spec
    # Pulumi's engine hands all numbers over as floats, and a state goes through it.
    assert stored_job(kind, json.loads(json.dumps(job.fields), parse_int=float)) == job


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_lift_hides_no_other_problem(kind: Kind) -> None:
    body, places = future_job(kind)
    pool = (kind.spec_field, "workerPoolSpecs", 0)
    two = edited(
        body,
        *pool,
        "pythonPackageSpec",
        to={"executorImageUri": "a:1", "packageUris": ["gs://b/a"], "pythonModule": "a"},
    )
    (problem,) = parse_job(kind, two, allowed=places)[1]
    assert problem.message.startswith("needs exactly one of containerSpec and pythonPackageSpec")
    for index, place in enumerate(places):
        others = [each for each in places if each != place]
        assert [each.place for each in parse_job(kind, body, allowed=others)[1]] == [place], index


def test_what_makes_a_job_look_free_stays_refused() -> None:
    replicas = "jobSpec.workerPoolSpecs[0].replicaCount"
    for count in (0, -5):
        body = edited(custom_job(), "jobSpec", "workerPoolSpecs", 0, "replicaCount", to=count)
        assert [each.place for each in parse_job(CUSTOM_JOB, body, allowed=[replicas])[1]] == [replicas]
    body = edited(custom_job(), "jobSpec", "scheduling", to={"timeout": "-60s"})
    job, _ = parse_job(CUSTOM_JOB, body, allowed=["jobSpec.scheduling.timeout"])
    assert job and job.max_seconds == 604_800


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("jobSpec",), "x"),
        (("jobSpec", "workerPoolSpecs", 0, "replicaCount"), "many"),
        (("jobSpec", "workerPoolSpecs", 0, "containerSpec", "imageUri"), ""),
        (("jobSpec", "workerPoolSpecs", 0, "containerSpec"), ABSENT),
        (("state",), "JOB_STATE_RUNNING"),
    ],
)
def test_what_must_be_known_is_not_lifted(path: tuple[str | int, ...], value: Any) -> None:
    body = edited(custom_job(), *path, to=value)
    _, problems = parse_job(CUSTOM_JOB, body)
    assert parse_job(CUSTOM_JOB, body, allowed=[problem.place for problem in problems])[1] == problems
