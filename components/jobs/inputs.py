"""Inputs: what Pulumi's engine gives the provider of a job, parsed once for each call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vertex_api.job import Job, stored_job
from vertex_api.names import Kind

from ..plan.training import ALLOW, deletion_policy
from ..schema import interpolation
from ..schema.interpolation import Tables
from . import identity

REPLACING = ("spec", "secrets", "jobs", "tensorboard", "data", "rerun", "parent", "adopt")
"""An edit of one of these replaces a submitted job."""
REPLACING_ADOPTED = ("parent",)
"""An edit of what is declared of an adopted job compares it anew, and replaces nothing.

Whether `adopt` is another job than the one at hand is for `JobProvider.diff` to say: the state has that one's name.
"""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a job whose `check` has passed.

    `owner` is `<pulumi project>/<stack>/<resource name>`, `parent` the full resource name of the job's location,
    `upstream` the resource names of the jobs whose results it uses, `on_delete` one of delete, cancel and keep, `adopt`
    the resource name of a job to adopt, None for a job to submit. `tensorboard` is the name of the TensorBoard that the
    stack creates, None if the job does not use it. `data` is what the lock has of the data that the job refers to, by
    name (`data.lock.Locked.summary`), and `verify` what a difference from it means where that is not an error.
    `allowed` are the places of what the rules of the service refuse in the spec.
    """

    spec: Job
    owner: str
    parent: str
    secrets: Mapping[str, str]
    upstream: Mapping[str, str]
    rerun: str
    on_delete: str
    adopt: str | None
    tensorboard: str | None
    data: Mapping[str, Mapping[str, Any]]
    verify: Mapping[str, str]
    allowed: Sequence[str] = ()

    @classmethod
    def parse(cls, kind: Kind, props: Mapping[str, Any]) -> "Inputs":
        """Parse the properties of a resource. The engine hands whole numbers over as floats."""
        return cls(
            spec=stored_job(kind, props["spec"]),
            owner=props["owner"],
            parent=props["parent"],
            secrets=props.get("secrets") or {},
            upstream=props.get("jobs") or {},
            rerun=props.get("rerun") or "",
            on_delete=deletion_policy(props.get("lifecycle") or {}, is_adopted=bool(props.get("adopt"))),
            adopt=props.get("adopt"),
            tensorboard=props.get("tensorboard"),
            data=props.get("data") or {},
            verify=props.get("verify") or {},
            allowed=(props.get("lifecycle") or {}).get(ALLOW, ()),
        )

    @property
    def name(self) -> str:
        """The name of the resource."""
        return self.owner.rpartition("/")[2]

    @property
    def stack(self) -> str:
        """The name of the stack with its project, `<pulumi project>/<stack>`."""
        return self.owner.rpartition("/")[0]

    @property
    def digests(self) -> list[str]:
        """The digests of its data, each with its name."""
        return [f"{name} {summary['digest']}" for name, summary in sorted(self.data.items())]

    @property
    def token(self) -> str:
        """What is equal for equal jobs of one resource, as `identity.job_token` says."""
        return identity.job_token(self.spec, self.owner, self.secrets, self.rerun, self.referenced, self.digests)

    @property
    def error_prefix(self) -> str:
        """What has failed if the job cannot be created, as messages begin."""
        return f"{self.name}: {f'{self.adopt} is not adopted' if self.adopt else 'not submitted'}"

    @property
    def referenced(self) -> Mapping[str, str]:
        """The resource names of the jobs and of the TensorBoard that its references lead to, by name or reference."""
        board = {interpolation.TENSORBOARD_NAME: self.tensorboard} if self.tensorboard else {}
        return {**self.upstream, **board}

    def tables(self, results: Mapping[str, str]) -> Tables:
        """Return the values of all references in the spec; `results` are those to results of upstream jobs."""
        board = {interpolation.TENSORBOARD: {"name": self.tensorboard}} if self.tensorboard else {}
        return {"secrets": self.secrets, interpolation.JOBS: results, **board}
