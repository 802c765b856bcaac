"""Advice on jobs that wait long before they run."""

from typing import Any

import pytest
from vertex_training.jobs.capacity_wait_advice import LONG_WAIT_MINUTES, CapacityAdvice

from tests.components.fakes import NOON
from tests.vertex_api.jobs import custom_job, tuning_job, tuning_pipeline

PARENT = "projects/acme-dev/locations/us-central1"
LATER = NOON + LONG_WAIT_MINUTES * 60
SPOT = "    - scheduling: {strategy: SPOT}: spare machines, which may be taken back; it takes preemptible quota"


def waiting(state: str, number: int = 1, collection: str = "customJobs", **fields: Any) -> dict[str, Any]:
    body = {"customJobs": custom_job, "hyperparameterTuningJobs": tuning_job, "trainingPipelines": tuning_pipeline}
    prefix = "PIPELINE_STATE" if collection == "trainingPipelines" else "JOB_STATE"
    name = f"projects/123/locations/us-central1/{collection}/{number}"
    return {
        **body[collection](),
        "name": name,
        "state": f"{prefix}_{state}",
        "createTime": "2026-01-31T12:00:00Z",
        **fields,
    }


@pytest.fixture
def advice() -> CapacityAdvice:
    return CapacityAdvice(f"//aiplatform.googleapis.com/{PARENT}")


def test_a_job_that_waits_long_has_advice_once(advice: CapacityAdvice) -> None:
    jobs = {"a": waiting("PENDING"), "b": waiting("RUNNING", 2)}
    assert advice.take_new_advice_lines(jobs, LATER - 1) == []
    lines = advice.take_new_advice_lines(jobs, LATER)
    assert lines[:3] == [
        f"a: PENDING for {LONG_WAIT_MINUTES} min, as machines may be short",
        "  what may help (each of these replaces the job):",
        SPOT,
    ]
    assert advice.take_new_advice_lines(jobs, LATER + 60) == []


def test_a_queued_job_has_its_quotas_named(advice: CapacityAdvice) -> None:
    lines = advice.take_new_advice_lines({"a": waiting("QUEUED")}, LATER)
    assert lines[:3] == [
        f"a: QUEUED for {LONG_WAIT_MINUTES} min, as quota or machines are short",
        "  it needs these quotas (aiplatform.googleapis.com/custom_model_training_NAME): cpus 4, pd_ssd 100",
        "  see and ask for more: https://console.cloud.google.com/iam-admin/quotas?project=acme-dev",
    ]
    assert SPOT in lines


def test_many_jobs_of_one_kind_have_one_advice(advice: CapacityAdvice) -> None:
    jobs = {f"j{number}": waiting("QUEUED", number) for number in range(200)}
    lines = advice.take_new_advice_lines(jobs, LATER)
    assert lines[0].startswith("j0, j1, j2, j3, j4 and 195 more: QUEUED for ")
    assert len(lines) < 10
    late = {"late": waiting("QUEUED", 201, createTime="2026-01-31T12:05:00Z")}
    assert advice.take_new_advice_lines({**jobs, **late}, LATER + 300) == []


@pytest.mark.parametrize("collection", ["hyperparameterTuningJobs", "trainingPipelines"])
def test_every_kind_of_job_has_advice(advice: CapacityAdvice, collection: str) -> None:
    assert SPOT in advice.take_new_advice_lines({"a": waiting("PENDING", collection=collection)}, LATER)


def test_jobs_on_this_machine_have_no_advice() -> None:
    assert CapacityAdvice(f"//local/{PARENT}").take_new_advice_lines({"a": waiting("QUEUED")}, LATER) == []
