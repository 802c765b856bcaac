"""Conflicts of a new job's mounts with those of unfinished jobs; replicas/nfs_and_lustre_mounts.py says why."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job_kinds import TRAINING_PIPELINE, Kind
from vertex_api.training_pipelines.backing_job import get_backing_job_kind
from vertex_api.validation import pipeline_validation
from vertex_emulator.database import Transaction
from vertex_emulator.errors import ApiError
from vertex_emulator.replicas.nfs_and_lustre_mounts import SharedFolder, describe_nesting_problem, list_shared_folders


def raise_if_folders_nest_with_unfinished_jobs(transaction: Transaction, kind: Kind, spec: Mapping[str, Any]) -> None:
    """Raise ApiError if a canonical job mounts a folder in or around one that an unfinished job mounts."""
    own = list(_iterate_shared_folders(kind, spec))
    if not own:
        return
    for job_id in transaction.list_unfinished_job_ids():
        job = transaction.get_job(job_id)
        if job is None:
            continue
        for other in _iterate_shared_folders(job.kind, job.spec):
            for share in own:
                if share.is_ancestor_or_descendant_of(other):
                    text = f"{describe_nesting_problem(share, other)}; wait for the end of {job.name}"
                    raise ApiError(
                        "FAILED_PRECONDITION", f"{share.kind}_mounts: {text}.", [(f"{share.kind}_mounts", text)]
                    )


def _iterate_shared_folders(kind: Kind, spec: Mapping[str, Any]) -> Iterator[SharedFolder]:
    if kind == TRAINING_PIPELINE:
        kind, spec = (
            get_backing_job_kind(spec),
            pipeline_validation.convert_pipeline_to_backing_job(spec),
        )
    for pool in spec[kind.spec_field]["workerPoolSpecs"]:
        yield from list_shared_folders(pool)
