import pytest

from tests.vertex_emulator.jobs import custom_job_spec, pool, tuning_job_spec
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.scheduling import lifecycle


def test_unsupported_field_is_rejected_by_name() -> None:
    problems = lifecycle.violations(CUSTOM_JOB, custom_job_spec(models=["m"]))
    assert [problem.place for problem in problems] == ["jobSpec.models"]


def test_trial_spec_obeys_same_rules() -> None:
    spec = tuning_job_spec(trialJobSpec={"workerPoolSpecs": [pool()], "models": ["m"]})
    problems = lifecycle.violations(HYPERPARAMETER_TUNING_JOB, spec)
    assert [problem.place for problem in problems] == ["trialJobSpec.models"]


def test_approximated_field_is_warned_about_once() -> None:
    found = lifecycle.approximations(CUSTOM_JOB, custom_job_spec(pool(), pool(), network="n", enableWebAccess=True))
    assert [note.partition(":")[0] for note in found] == ["network", "enableWebAccess"]


def test_plain_job_is_neither_refused_nor_noted() -> None:
    assert lifecycle.violations(CUSTOM_JOB, custom_job_spec()) == []
    assert lifecycle.approximations(CUSTOM_JOB, custom_job_spec()) == []


@pytest.mark.parametrize("replicas", [-1, 0, 101, 10**18])
def test_excessive_number_of_replicas_is_rejected(replicas: int) -> None:
    (problem,) = lifecycle.violations(CUSTOM_JOB, custom_job_spec(pool(), pool(replicas), {}))
    assert problem.place == "jobSpec.workerPoolSpecs[1].replicaCount"
