"""Facts that the components and the emulator both need: those of the API stand once, in vertex_api."""

from typing import Any

import pytest
from vertex_training.schema import shapes

from tests.vertex_api.jobs import custom_job, edited
from tests.vertex_emulator import jobs as emulator_jobs
from vertex_api.estimates.cost import estimate_cost
from vertex_api.estimates.prices import bundled_prices
from vertex_api.estimates.quota import METRIC_PREFIX, needed_quota
from vertex_api.job import Job, job_results
from vertex_api.jobspec import DEFAULT_TIMEOUT
from vertex_api.names import CUSTOM_JOB
from vertex_api.scalars import to_seconds
from vertex_api.validation.check import validate_job
from vertex_api.validation.shape import canonicalize
from vertex_emulator.api.faults import quota_metrics
from vertex_emulator.database.records import Replica
from vertex_emulator.replicas.environment import service_variables
from vertex_emulator.scheduling import outcome


@pytest.mark.parametrize(
    ("network", "is_valid"),
    [("projects/123456/global/networks/vpc", True), ("projects/acme-dev/global/networks/vpc", False), ("vpc", False)],
)
def test_stacks_and_jobs_take_the_same_networks(network: str, is_valid: bool) -> None:
    job = edited(custom_job(), "jobSpec", "network", to=network)
    in_job = [problem.message for problem in validate_job(CUSTOM_JOB, job)[1]]
    in_stack = [problem.message for problem in canonicalize(shapes.Peering, {"network": network})[1]]
    assert in_job == in_stack
    assert is_valid == (not in_job)


@pytest.mark.parametrize(
    ("machine", "metric"),
    [("n1-standard-4", "cpus"), ("n2-standard-4", "n2_cpus"), ("g2-standard-4", "nvidia_l4_gpus")],
)
def test_injected_quota_errors_name_metrics_of_estimates(machine: str, metric: str) -> None:
    spec: dict[str, Any] = {"machineType": machine}
    if machine.startswith("g2"):
        spec |= {"acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
    job = edited(custom_job(), "jobSpec", "workerPoolSpecs", 0, "machineSpec", to=spec)
    assert quota_metrics(job["jobSpec"]) == [METRIC_PREFIX + metric]
    assert metric in needed_quota(Job(CUSTOM_JOB, job))


def test_results_name_the_folder_that_the_trainer_gets() -> None:
    output = {"baseOutputDirectory": {"outputUriPrefix": "gs://b/run"}}
    job = emulator_jobs.custom_job(emulator_jobs.custom_job_spec(**output))
    environment = service_variables(job, Replica(0, 0))
    assert job_results({"state": "JOB_STATE_SUCCEEDED", **job.spec})["modelDir"] == environment["AIP_MODEL_DIR"]


def test_emulator_and_estimates_share_the_default_timeout() -> None:
    job = emulator_jobs.custom_job(started=1)
    cost = estimate_cost(Job(CUSTOM_JOB, custom_job()), "us-central1", bundled_prices())
    assert (outcome.deadline(job) - 1) / 1e9 == cost.max_seconds == to_seconds(DEFAULT_TIMEOUT)
