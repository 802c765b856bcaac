"""DeclaredJob: a job as it is declared, the other jobs that it depends on, and what deleting it does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.job import Job, parse_job
from vertex_api.names import Kind
from vertex_api.validation.shape import FieldProblem

from . import interpolation, shapes

LIFECYCLE_KEY, SPEC_KEY = "lifecycle", "spec"  # the keys that are no fields of the API's message


@dataclass(frozen=True)
class DeclaredJob:
    """One declared job.

    `valid_spec` is None if the spec has problems; else references to images, packages, secrets and jobs are still in
    it. `referenced_jobs` are the jobs whose results it refers to.
    """

    kind: Kind
    name: str
    valid_spec: Job | None
    lifecycle: shapes.Lifecycle
    referenced_jobs: frozenset[str] = frozenset()

    @property
    def required_valid_spec(self) -> Job:
        """The spec of a job without problems, as are all jobs of a `Settings`."""
        assert self.valid_spec is not None, self.name
        return self.valid_spec

    @property
    def is_adopted(self) -> bool:
        """Whether it names a job that exists already, instead of one to submit."""
        return "adopt" in self.lifecycle

    @property
    def is_scheduled(self) -> bool:
        """Whether schedules alone submit it, and `pulumi up` does not."""
        return "run" in self.lifecycle

    @property
    def upstream_job_names(self) -> frozenset[str]:
        """The names of the jobs that must have succeeded before it is submitted."""
        return self.referenced_jobs.union(self.lifecycle.get("after", ()))


def canonicalize_declared_spec_and_find_problems(
    kind: Kind, body: Any, *, is_name_required: bool
) -> tuple[Job | None, list[FieldProblem]]:
    """Return the canonical form of a job, None if it has problems, and the problems."""
    return parse_job(kind, body, is_name_required=is_name_required, is_unresolved_value=interpolation.is_unresolved)


def get_deletion_policy(lifecycle: Mapping[str, Any], is_adopted: bool) -> str:
    """Return what happens to a job that leaves its stack: `delete`, `cancel` or `keep`, the default of adopted jobs."""
    return str(lifecycle.get("onDelete", "keep" if is_adopted else shapes.LIFECYCLE_DEFAULTS["onDelete"]))
