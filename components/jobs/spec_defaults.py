"""Defaults of a job's spec: what it leaves out is filled in from the foundation, with an output folder for each run."""

from collections.abc import Mapping, Sequence
from typing import Any

from vertex_api.job import Job
from vertex_api.messages import KeyPath

from ..runtime.foundation import Foundation
from .identity import run_digest


def copy_with_defaults_and_output_folder(
    spec: Job, rerun: int, foundation: Foundation, job_name: str, upstream_run_digests: Sequence[str] = ()
) -> Job:
    """Return the spec with what it leaves out: the foundation's defaults, and a folder for each run."""
    whole = copy_with_defaults(spec, foundation)
    if "baseOutputDirectory" in whole.job_spec:
        return whole
    digest = run_digest(whole, rerun, upstream_run_digests)
    return copy_with_output_folder(whole, f"{foundation.staging_folder_uri}/{job_name}/{digest}")


def copy_with_defaults(spec: Job, foundation: Foundation) -> Job:
    """Return the spec with one replica a pool, and the foundation's fields, labels and encryption key."""
    job_spec = {**foundation.job_spec_defaults, **spec.job_spec}
    pools = job_spec["workerPoolSpecs"]
    job_spec["workerPoolSpecs"] = [{"replicaCount": 1, **pool} if pool else pool for pool in pools]
    fields = _copy_with_value(spec.fields, spec.job_spec_path, job_spec)
    if foundation.job_labels:
        fields["labels"] = {**foundation.job_labels, **fields.get("labels", {})}
    if foundation.encryption_key is not None:
        fields.setdefault("encryptionSpec", {"kmsKeyName": foundation.encryption_key})
    return Job(spec.kind, fields)


def copy_with_output_folder(spec: Job, folder_uri: str) -> Job:
    """Return the spec with another output folder."""
    job_spec = {**spec.job_spec, "baseOutputDirectory": {"outputUriPrefix": folder_uri}}
    return spec.replace(_copy_with_value(spec.fields, spec.job_spec_path, job_spec))


def _copy_with_value(fields: Mapping[Any, Any], path: KeyPath, value: Any) -> dict[Any, Any]:
    first, *rest = path
    return {**fields, first: _copy_with_value(fields[first], tuple(rest), value) if rest else value}
