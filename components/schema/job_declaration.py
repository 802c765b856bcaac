"""JobDeclaration: a job as it is declared, and what it has to do with others."""

from dataclasses import dataclass
from typing import Any

from vertex_api.kinds import HYPERPARAMETER_TUNING_JOB, Kind
from vertex_api.validation.jobs import training

from . import shapes


@dataclass(frozen=True)
class JobDeclaration:
    """One declared job: `spec` is canonical, with references to images, packages, secrets and jobs still in it.

    Empty for a job with problems. `uses` are the jobs that it refers to.
    """

    kind: Kind
    name: str
    spec: dict[str, Any]
    lifecycle: shapes.Lifecycle
    uses: frozenset[str] = frozenset()

    @property
    def tunes(self) -> bool:
        """Whether it is a search in many trials, or a pipeline that runs one."""
        return training(self.kind, self.spec)[0] == HYPERPARAMETER_TUNING_JOB

    @property
    def above(self) -> frozenset[str]:
        """The jobs that have succeeded before it is submitted."""
        return self.uses.union(self.lifecycle.get("after", ()))
