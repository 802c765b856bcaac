"""The quota error, which only an injected fault causes: the emulator itself has no quotas."""

from collections.abc import Mapping
from typing import Any

from vertex_api.estimates import quota
from vertex_api.kinds import TRAINING_PIPELINE, Kind
from vertex_api.validation.pipeline_tasks import build_backing_job
from vertex_emulator.database import Database
from vertex_emulator.errors import ApiError


def check_quota(database: Database, kind: Kind, spec: Mapping[str, Any]) -> None:
    """Use up a pending quota fault of a job. Raises ApiError RESOURCE_EXHAUSTED if there is one."""
    with database.write_transaction() as transaction:
        is_exceeded = transaction.injected_faults.use_quota_fault(spec["displayName"])
    if is_exceeded:
        metrics = ", ".join(list_quota_metrics(build_backing_job(spec) if kind == TRAINING_PIPELINE else spec))
        raise ApiError("RESOURCE_EXHAUSTED", f"The following quota metrics exceed quota limits: {metrics}")


def list_quota_metrics(spec: Mapping[str, Any]) -> list[str]:
    """Return the quota metrics that a custom or tuning job uses, under their names in the service's errors."""
    job_spec = spec.get("jobSpec") or spec.get("trialJobSpec") or {}
    is_preemptible = quota.is_preemptible(job_spec)
    machines = [pool.get("machineSpec", {}) for pool in job_spec.get("workerPoolSpecs", []) if pool]
    accelerators = {machine["acceleratorType"] for machine in machines if machine.get("acceleratorType")}
    names = [quota.get_gpu_metric(accelerator, is_preemptible) for accelerator in sorted(accelerators)]
    metrics = [name for name in names if name] or ["preemptible_cpus" if is_preemptible else "cpus"]
    return [f"{quota.METRIC_PREFIX}{name}" for name in metrics]
