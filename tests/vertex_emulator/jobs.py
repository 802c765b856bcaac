"""Jobs as the unit tests need them."""

from typing import Any

from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database.records import RUNNING, Job
from vertex_emulator.names import Location

LOCATION = Location("my-project", "us-central1")
IMAGE = "trainer:1"


def pool(replicas: int = 1, **container: Any) -> dict[str, Any]:
    """A worker pool of one container."""
    return {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": replicas,
        "containerSpec": {"imageUri": IMAGE, **container},
    }


def custom_job_spec(*pools: dict[str, Any], **job_spec: Any) -> dict[str, Any]:
    """A custom job in canonical form."""
    return {"displayName": "a job", "jobSpec": {"workerPoolSpecs": list(pools) or [pool()], **job_spec}}


def tuning_job_spec(trials: int = 3, parallel: int = 2, **fields: Any) -> dict[str, Any]:
    """A tuning job of one DOUBLE parameter `x` and one metric `acc`, by random search."""
    return {
        "displayName": "a study",
        "studySpec": {
            "algorithm": "RANDOM_SEARCH",
            "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}],
            "parameters": [{"parameterId": "x", "doubleValueSpec": {"maxValue": 1.0}}],
        },
        "maxTrialCount": trials,
        "parallelTrialCount": parallel,
        "trialJobSpec": {"workerPoolSpecs": [pool()]},
        **fields,
    }


def custom_job(spec: dict[str, Any] | None = None, **fields: Any) -> Job:
    """A custom job that runs."""
    known = {"id": "42", "sequence": 1, "state": RUNNING, "created": 10**9, "updated": 10**9, "started": 2 * 10**9}
    return Job(kind=CUSTOM_JOB, location=LOCATION, spec=spec or custom_job_spec(), **known | fields)


def tuning_job(spec: dict[str, Any] | None = None, **fields: Any) -> Job:
    """A tuning job that runs."""
    known = {"id": "7", "sequence": 1, "state": RUNNING, "created": 10**9, "updated": 10**9, "started": 2 * 10**9}
    return Job(kind=HYPERPARAMETER_TUNING_JOB, location=LOCATION, spec=spec or tuning_job_spec(), **known | fields)
