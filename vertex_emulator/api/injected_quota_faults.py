"""Injected faults of kind `quota`: the creation of a job uses one up, and the error names the job's quota metrics."""

from collections.abc import Mapping
from typing import Any

from vertex_api.estimates.quota import METRIC_PREFIX, UNKNOWN_METRIC, quota_of_run
from vertex_api.job import Job
from vertex_api.names import Kind
from vertex_emulator.database import Database


def consume_quota_fault_and_get_message_or_none(database: Database, kind: Kind, spec: Mapping[str, Any]) -> str | None:
    """Use up a pending quota fault of a job, and return the service's message for it; None if there is none.

    The emulator itself has no quotas.
    """
    with database.write() as transaction:
        fault = transaction.faults.take("quota", spec["displayName"])
    if fault is None:
        return None
    metrics = ", ".join(list_quota_metrics_named_in_error(Job(kind, spec).backing.job_spec))
    return f"The following quota metrics exceed quota limits: {metrics}"


def list_quota_metrics_named_in_error(job_spec: Mapping[str, Any]) -> list[str]:
    """Return the quota metrics that the error for a CustomJobSpec names: those of its GPUs, else those of its CPUs.

    If the names of neither are on file, it is the metric of N1's CPUs.
    """
    amounts = quota_of_run(job_spec)
    known = [name for name in amounts if not name.endswith(UNKNOWN_METRIC)]
    names = [name for name in known if name.endswith("_gpus")] or [name for name in known if name.endswith("cpus")]
    return [f"{METRIC_PREFIX}{name}" for name in sorted(names) or ["cpus"]]
