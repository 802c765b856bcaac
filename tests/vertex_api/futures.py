"""Jobs of the future, for tests: with a machine type, an accelerator and a field that came after these types."""

from typing import Any

from tests.vertex_api.jobs import edited, job_of
from vertex_api.names import CUSTOM_JOB, Kind

FIELD = {"warmUp": {"rounds": 2, "mode": "FAST"}}
MACHINE = {"machineType": "z9-giga-96", "acceleratorType": "NVIDIA_RUBIN", "acceleratorCount": 8}


def future_job(kind: Kind = CUSTOM_JOB) -> tuple[dict[str, Any], list[str]]:
    """A job of the future, and the places of what is new in it."""
    spec = (kind.spec_field,)
    job = edited(
        edited(job_of(kind), *spec, "workerPoolSpecs", 0, "machineSpec", to=MACHINE), *spec, "pacing", to=FIELD
    )
    machine = f"{kind.spec_field}.workerPoolSpecs[0].machineSpec"
    return job, [f"{machine}.machineType", f"{machine}.acceleratorType", f"{kind.spec_field}.pacing"]
