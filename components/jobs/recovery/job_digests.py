"""Digests that tell jobs apart: the digest of a run, the token of a job, a name's mark in a ledger, declarations."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from vertex_api.job import Job

from ...schema.declared_job import DeclaredJob


def compute_run_digest(spec: Job, rerun: int, upstream_run_digests: Sequence[str] = ()) -> str:
    """Return eight hex digits that differ whenever the job would run anew: the folder of a run's outputs.

    `upstream_run_digests` are those of the jobs whose results it uses. Previews show the digest, so it does not depend
    on secrets.
    """
    return _compute_digest(spec.kind.collection, spec.fields, rerun, *upstream_run_digests)[:8]


def compute_idempotency_token(
    spec: Job,
    project_stack_and_job_name: str,
    secrets: Mapping[str, str],
    rerun: int,
    upstream_api_names_by_reference: Mapping[str, str],
) -> str:
    """Return 32 hex digits that are equal for equal jobs of one resource: the key of an idempotent create.

    `project_stack_and_job_name` is `<pulumi project>/<stack>/<resource name>`.
    `upstream_api_names_by_reference` are those of the jobs whose results it uses, and of its TensorBoard: when one of
    them is another one, this is another job.
    """
    upstream = [upstream_api_names_by_reference] if upstream_api_names_by_reference else []
    parts = [project_stack_and_job_name, spec.fields, secrets, rerun, *upstream]
    return _compute_digest(spec.kind.collection, *parts)[:32]


def compute_mark_label_value(ledger_id: str, job_name: str) -> str:
    """Return the label value that all jobs have which one state has submitted under one name."""
    return f"{ledger_id}-{_compute_digest(job_name)[:16]}"


def compute_declarations_digest(jobs: Iterable[DeclaredJob]) -> str:
    """Return 16 hex digits that differ whenever what is declared of any job differs, its lifecycle included."""
    return _compute_digest(
        {job.name: (job.kind.collection, job.required_valid_spec.fields, job.lifecycle) for job in jobs}
    )[:16]


def _compute_digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
