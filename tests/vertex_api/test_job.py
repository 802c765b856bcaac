"""Job: one form for a job, whoever wrote it, and what it says of the job."""

from typing import Any

import pytest

from tests.vertex_api.jobs import custom_job, edited, job_of, pipeline, tuning_job, tuning_pipeline
from vertex_api.job import Job, parse_job, stored_job
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
