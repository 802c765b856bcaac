"""Training jobs as Pulumi resources: CustomJob, HyperparameterTuningJob and TrainingPipeline."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pulumi
from pulumi import dynamic

from vertex_api.kinds import Kind
from vertex_api.training_pipeline import TrainingPipeline as TrainingPipelineArgs
from vertex_api.types import CustomJob as CustomJobArgs
from vertex_api.types import HyperparameterTuningJob as HyperparameterTuningJobArgs
from vertex_api.validation.jobs import job_spec_path, validated
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape import get_value_at

from ..runtime.foundation import Foundation
from ..schema import references, shapes
from . import adoption, results
from . import arguments as job_arguments
from .provider import CustomJobProvider, HyperparameterTuningJobProvider, JobProvider, TrainingPipelineProvider
from .recovery import ownership

_REPLACE = ["spec", "secrets", "jobs", "rerun", "parent", "adopt"]
_REPLACE_ADOPTED = ["parent"]
"""An edit of what is declared of an adopted job compares it anew, and replaces nothing.

Whether `adopt` is another job than the one at hand is for `JobProvider.diff` to say: the state has that one's name.
"""

Spec = TypeVar("Spec", CustomJobArgs, HyperparameterTuningJobArgs, TrainingPipelineArgs)


class _Job(dynamic.Resource, Generic[Spec]):
    """What all kinds share. The job's resource name is its `id`; `run` has its `name`, `state`, `page`, `logs`.

    As a refresh finds them `run` also has the `error` of a failed job, and of a tuning job or a pipeline that tunes its
    `trials` (`ended`, `of`) and its `bestTrial`. `jobs` are those whose results it uses, by the names that references
    in `spec` have for them, such as `${jobs.tune.bestTrial.parameters.lr}`: they must have succeeded when it is
    submitted, so let it depend on their Completion.
    """

    provider: type[JobProvider]
    run: pulumi.Output[Mapping[str, Any]]

    def __init__(
        self,
        name: str,
        spec: Spec,
        *,
        foundation: Foundation,
        lifecycle: shapes.Lifecycle | None = None,
        secrets: Mapping[str, pulumi.Input[str]] | None = None,
        jobs: "Mapping[str, CustomJob | HyperparameterTuningJob | TrainingPipeline] | None" = None,
        opts: pulumi.ResourceOptions | None = None,
        _is_declared: bool = False,
    ) -> None:
        kind = self.provider.kind
        if not _is_declared:  # else it has been judged there, with its file and line
            lifecycle = job_arguments.judged(
                kind,
                name,
                spec,
                lifecycle or {},
                labels=foundation.labels,
                secrets=secrets or {},
                above={name: job.offered for name, job in (jobs or {}).items()},
                is_known=not _has_output(spec),
            )
        rerun = (lifecycle or {}).get("rerun", 0)
        given = (lifecycle or {}).get("adopt")
        adopt: str | None = given and adoption.resource_name(kind, foundation.parent, given)
        above: list[pulumi.Input[str]] = [job.run_id for _, job in sorted((jobs or {}).items())]
        self._is_adopted = adopt is not None
        # What an adopted job has beside what is declared stays as it is.
        self._spec: Any = (
            spec
            if adopt
            else _whole(spec, above, lambda spec, above: completed(kind, spec, rerun, foundation, name, above))
        )
        self._rerun, self._above = rerun, [*above, *([adopt] if adopt else [])]
        props: dict[str, Any] = {
            "owner": f"{pulumi.get_project()}/{pulumi.get_stack()}/{name}",
            "parent": foundation.parent,
            "spec": self._spec,
            "run": None,
        }
        if rerun:
            # By itself, as a first `lifecycle` would not be seen as a change of what is in it.
            props["rerun"] = rerun
        if adopt:
            props["adopt"] = adopt
        if others := {key: value for key, value in (lifecycle or {}).items() if key not in ("rerun", "adopt")}:
            props["lifecycle"] = others
        if secrets:
            props["secrets"] = pulumi.Output.secret(dict(secrets))
        if jobs:
            props["jobs"] = {name: job.id for name, job in jobs.items()}
        # Deleted before it is replaced: a running job's machines are free before the new one asks for them, and a
        # replacement that has the same token (`pulumi up --replace`) cannot adopt what is about to be deleted.
        ours = pulumi.ResourceOptions(
            replace_on_changes=_REPLACE_ADOPTED if adopt else _REPLACE,
            delete_before_replace=True,
            depends_on=[*foundation.for_jobs],
        )
        # A merge of nothing would be a thirtieth of a preview.
        super().__init__(self.provider(), name, props, pulumi.ResourceOptions.merge(ours, opts) if opts else ours)

    @property
    def run_id(self) -> pulumi.Input[str]:
        """Eight hex digits, known in a preview, that differ whenever the job would run anew."""
        kind, rerun = self.provider.kind, self._rerun
        found: pulumi.Input[str] = _whole(
            self._spec, self._above, lambda spec, above: ownership.run_id(kind, spec, rerun, above)
        )
        return found

    @property
    def offered(self) -> Sequence[str] | None:
        """What references of other jobs may name of it; None where that is not known yet."""
        if self._is_adopted or _has_output(self._spec):
            return None
        return results.offered(self.provider.kind, self._spec)

    @property
    def model_dir(self) -> pulumi.Input[str | None]:
        """The folder of the job's model, known in a preview; None for a search, whose best trial has it.

        None too for a spec with problems, which the provider's `check` reports.
        """
        kind = self.provider.kind

        def folder(spec: Mapping[str, Any], _: object) -> str | None:
            return (
                None
                if validated(kind, spec, has_unresolved_references=references.is_open)[1]
                else results.folder(kind, spec)
            )

        found: pulumi.Input[str | None] = _whole(self._spec, [], folder)
        return found


class CustomJob(_Job[CustomJobArgs], module="vertex", name="CustomJob"):
    """A CustomJob of Vertex AI. `spec` has the API's fields; see `vertex_api.types.CustomJob`."""

    provider = CustomJobProvider


class HyperparameterTuningJob(_Job[HyperparameterTuningJobArgs], module="vertex", name="HyperparameterTuningJob"):
    """A HyperparameterTuningJob of Vertex AI. `spec` has the API's fields; see `vertex_api.types`."""

    provider = HyperparameterTuningJobProvider


class TrainingPipeline(_Job[TrainingPipelineArgs], module="vertex", name="TrainingPipeline"):
    """A TrainingPipeline of Vertex AI, which runs a job and may upload its model; see `TrainingPipelineArgs`."""

    provider = TrainingPipelineProvider


def completed(
    kind: Kind, spec: Mapping[str, Any], rerun: int, foundation: Foundation, name: str, above: Sequence[str] = ()
) -> Mapping[str, Any]:
    """The spec with what it leaves out: one replica a pool, the foundation's defaults, and a folder for each run.

    `above` are the ids of the runs whose results it uses. A spec with problems is left as it is: the provider's `check`
    reports them all.
    """
    spec, problems = validated(kind, spec, has_unresolved_references=references.is_open)
    if problems:
        return spec
    path = job_spec_path(kind, spec)
    job = {**foundation.job_defaults, **get_value_at(spec, path)}
    job["workerPoolSpecs"] = [{"replicaCount": 1, **pool} if pool else pool for pool in job["workerPoolSpecs"]]
    whole = _with(spec, path, job)
    if foundation.labels:
        whole["labels"] = {**foundation.labels, **spec.get("labels", {})}
    if foundation.encryption_key is not None:
        whole.setdefault("encryptionSpec", {"kmsKeyName": foundation.encryption_key})
    folder = f"{foundation.staging}/{name}/{ownership.run_id(kind, whole, rerun, above)}"
    job.setdefault("baseOutputDirectory", {"outputUriPrefix": folder})
    return whole


def _with(spec: Mapping[Any, Any], path: KeyPath, job: dict[str, Any]) -> dict[Any, Any]:
    """The spec with another CustomJobSpec at its path."""
    first, *rest = path
    return {**spec, first: _with(spec[first], tuple(rest), job) if rest else job}


def _whole(spec: Any, above: Any, complete: Callable[[Any, Any], Any]) -> Any:
    """Applies `complete` to a spec and what it uses: at once, or when the outputs of other resources are known."""
    if _has_output(spec) or _has_output(above):
        return pulumi.Output.all(spec, above).apply(lambda known: complete(*known))
    return complete(spec, above)


def _has_output(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_output, value.values()))
    return any(map(_has_output, value)) if isinstance(value, list | tuple) else isinstance(value, pulumi.Output)
