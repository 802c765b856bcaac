"""JobDeclaration: a job as it is declared, the other jobs that it depends on, and what deleting it does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.kinds import Kind
from vertex_api.validation.canonical import CanonicalSpec

from . import shapes


@dataclass(frozen=True)
class JobDeclaration:
    """One declared job.

    `valid_spec` is None if the spec has problems; else references to images, packages, secrets and jobs are still in
    it. `referenced_jobs` are the jobs whose results it refers to.
    """

    kind: Kind
    name: str
    valid_spec: CanonicalSpec | None
    lifecycle: shapes.Lifecycle
    referenced_jobs: frozenset[str] = frozenset()

    @property
    def spec(self) -> CanonicalSpec:
        """The spec of a job without problems, as are all jobs of a `Settings`."""
        assert self.valid_spec is not None, self.name
        return self.valid_spec

    @property
    def is_adopted(self) -> bool:
        """Whether it names a job that exists already, instead of one to submit."""
        return "adopt" in self.lifecycle

    @property
    def upstream_jobs(self) -> frozenset[str]:
        """The jobs that must have succeeded before it is submitted."""
        return self.referenced_jobs.union(self.lifecycle.get("after", ()))


def get_deletion_policy(lifecycle: Mapping[str, Any], is_adopted: bool) -> str:
    """Return what happens to a job that leaves its stack: `delete`, `cancel` or `keep`, the default of adopted jobs."""
    return str(lifecycle.get("onDelete", "keep" if is_adopted else shapes.LIFECYCLE["onDelete"]))
