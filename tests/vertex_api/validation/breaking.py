"""What the rules say of the jobs of `tests.vertex_api.jobs` with something changed."""

from typing import Any

from tests.vertex_api.jobs import custom_job, edited, tuning_job
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.validation.check import validate_job

SPEC = "jobSpec"
POOLS = "jobSpec.workerPoolSpecs"
STUDY = "studySpec"
Path = tuple[str | int, ...]


def said_of_custom_job(*path: str | int, to: Any) -> list[str]:
    """Problems of a custom job with another value at a path."""
    return [str(problem) for problem in validate_job(CUSTOM_JOB, edited(custom_job(), *path, to=to))[1]]


def said_of_spec(**fields: Any) -> list[str]:
    """Problems of a custom job with these fields in its jobSpec."""
    job = custom_job()
    job["jobSpec"] |= fields
    return [str(problem) for problem in validate_job(CUSTOM_JOB, job)[1]]


def said_of_pool(**fields: Any) -> list[str]:
    """Problems of a custom job whose only pool has these fields."""
    return said_of_spec(workerPoolSpecs=[pool(**fields)])


def said_of_machine(machine_type: str | None, **fields: Any) -> list[str]:
    """Problems of a custom job on this machine, whose path is cut off."""
    spec = fields if machine_type is None else {"machineType": machine_type, **fields}
    return [text.removeprefix(f"{POOLS}[0].machineSpec.") for text in said_of_pool(machineSpec=spec)]


def said_of_tuning_job(*path: str | int, to: Any) -> list[str]:
    """Problems of a tuning job with another value at a path."""
    return [str(problem) for problem in validate_job(HYPERPARAMETER_TUNING_JOB, edited(tuning_job(), *path, to=to))[1]]


def said_of_study(**fields: Any) -> list[str]:
    """Problems of a tuning job with these fields in its studySpec, whose path is cut off."""
    job = tuning_job()
    job["studySpec"] |= fields
    return [str(problem).removeprefix(f"{STUDY}.") for problem in validate_job(HYPERPARAMETER_TUNING_JOB, job)[1]]


def pool(**fields: Any) -> dict[str, Any]:
    """The pool of the custom job with other fields."""
    return {**custom_job()["jobSpec"]["workerPoolSpecs"][0], **fields}
