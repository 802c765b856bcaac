"""Training jobs as Pulumi resources: CustomJob, HyperparameterTuningJob and TrainingPipeline."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import pulumi
from pulumi import dynamic

from components import ownership, references, shapes
from components.foundation import Foundation
from components.job_provider import (
    CustomJobProvider,
    HyperparameterTuningJobProvider,
    JobProvider,
    TrainingPipelineProvider,
)
from vertex import types
from vertex.jobs import job_spec_path, validated
from vertex.kinds import Kind
from vertex.rules import KeyPath
from vertex.training_pipeline import TrainingPipeline as DeclaredPipeline
from vertex.validation import value_at

_REPLACE = ["spec", "secrets", "rerun", "parent"]


Spec = TypeVar("Spec", types.CustomJob, types.HyperparameterTuningJob, DeclaredPipeline)


class _Job(dynamic.Resource, Generic[Spec]):
    """What all kinds share. The job's resource name is its `id`; `run` has its `name`, `state`, `page`, `logs`."""

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
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        kind, rerun = self.provider.kind, (lifecycle or {}).get("rerun", 0)
        props: dict[str, Any] = {
            "owner": f"{pulumi.get_project()}/{pulumi.get_stack()}/{name}",
            "parent": foundation.parent,
            "spec": _whole(spec, lambda spec: completed(kind, spec, rerun, foundation, name)),
            "run": None,
        }
        if rerun:
            # By itself, as a first `lifecycle` would not be seen as a change of what is in it.
            props["rerun"] = rerun
        if others := {key: value for key, value in (lifecycle or {}).items() if key != "rerun"}:
            props["lifecycle"] = others
        if secrets:
            props["secrets"] = pulumi.Output.secret(dict(secrets))
        # Deleted before it is replaced: a running job's machines are free before the new one asks for them, and a
        # replacement that has the same token (`pulumi up --replace`) cannot adopt what is about to be deleted.
        ours = pulumi.ResourceOptions(
            replace_on_changes=_REPLACE, delete_before_replace=True, depends_on=[*foundation.for_jobs]
        )
        super().__init__(self.provider(), name, props, pulumi.ResourceOptions.merge(ours, opts))


class CustomJob(_Job[types.CustomJob], module="vertex", name="CustomJob"):
    """A CustomJob of Vertex AI. `spec` has the API's fields; see `vertex.types.CustomJob`."""

    provider = CustomJobProvider


class HyperparameterTuningJob(_Job[types.HyperparameterTuningJob], module="vertex", name="HyperparameterTuningJob"):
    """A HyperparameterTuningJob of Vertex AI. `spec` has the API's fields; see `vertex.types`."""

    provider = HyperparameterTuningJobProvider


class TrainingPipeline(_Job[DeclaredPipeline], module="vertex", name="TrainingPipeline"):
    """A TrainingPipeline of Vertex AI, which runs a job and may upload its model; see `vertex.training_pipeline`."""

    provider = TrainingPipelineProvider


def completed(kind: Kind, spec: Mapping[str, Any], rerun: int, foundation: Foundation, name: str) -> Mapping[str, Any]:
    """The spec with what it leaves out: one replica a pool, the foundation's defaults, and a folder for each run.

    A spec with problems is left as it is: the provider's `check` reports them all.
    """
    spec, problems = validated(kind, spec, open_text=references.is_open)
    if problems:
        return spec
    path = job_spec_path(kind, spec)
    job = {**foundation.job_defaults, **value_at(spec, path)}
    job["workerPoolSpecs"] = [{"replicaCount": 1, **pool} if pool else pool for pool in job["workerPoolSpecs"]]
    whole = _with(spec, path, job)
    if foundation.labels:
        whole["labels"] = {**foundation.labels, **spec.get("labels", {})}
    if foundation.encryption_key is not None:
        whole.setdefault("encryptionSpec", {"kmsKeyName": foundation.encryption_key})
    folder = f"{foundation.staging}/{name}/{ownership.run_id(kind, whole, rerun)}"
    job.setdefault("baseOutputDirectory", {"outputUriPrefix": folder})
    return whole


def _with(spec: Mapping[Any, Any], path: KeyPath, job: dict[str, Any]) -> dict[Any, Any]:
    """The spec with another CustomJobSpec at its path."""
    first, *rest = path
    return {**spec, first: _with(spec[first], tuple(rest), job) if rest else job}


def _whole(spec: Any, complete: Callable[[Any], Any]) -> Any:
    """Applies `complete` to a spec: at once, or when the outputs of other resources in it are known."""
    return pulumi.Output.from_input(spec).apply(complete) if _has_output(spec) else complete(spec)


def _has_output(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_output, value.values()))
    return any(map(_has_output, value)) if isinstance(value, list | tuple) else isinstance(value, pulumi.Output)
