"""JobDeclaration: a job as it is declared, and the other jobs that it depends on."""

from dataclasses import dataclass

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
