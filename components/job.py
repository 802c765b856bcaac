"""Training jobs as Pulumi resources: CustomJob and HyperparameterTuningJob."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import pulumi
from pulumi import dynamic

from components import adoption, ownership, references, shapes
from components.foundation import Foundation
from components.job_provider import CustomJobProvider, HyperparameterTuningJobProvider, JobProvider
from vertex import types
from vertex.kinds import CUSTOM_JOB, Kind
from vertex.validation import validate

_REPLACE = ["spec", "secrets", "rerun", "parent", "adopt"]
_REPLACE_ADOPTED = ["parent", "adopt"]
"""An edit of what is declared of an adopted job compares it anew, and replaces nothing."""


Spec = TypeVar("Spec", types.CustomJob, types.HyperparameterTuningJob)


class _Job(dynamic.Resource, Generic[Spec]):
    """What both kinds share. The job's resource name is its `id`; `run` has its `name`, `state`, `page`, `logs`.

    As a refresh finds them `run` also has the `error` of a failed job, and of a tuning job its `trials` (`ended`, `of`)
    and its `bestTrial`.
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
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        kind, rerun = self.provider.kind, (lifecycle or {}).get("rerun", 0)
        adopt = (lifecycle or {}).get("adopt")
        props: dict[str, Any] = {
            "owner": f"{pulumi.get_project()}/{pulumi.get_stack()}/{name}",
            "parent": foundation.parent,
            # What an adopted job has beside what is declared stays as it is.
            "spec": spec if adopt else _whole(spec, lambda spec: completed(kind, spec, rerun, foundation, name)),
            "run": None,
        }
        if rerun:
            # By itself, as a first `lifecycle` would not be seen as a change of what is in it.
            props["rerun"] = rerun
        if adopt:
            props["adopt"] = adoption.resource_name(kind, foundation.parent, adopt)
        if others := {key: value for key, value in (lifecycle or {}).items() if key not in ("rerun", "adopt")}:
            props["lifecycle"] = others
        if secrets:
            props["secrets"] = pulumi.Output.secret(dict(secrets))
        # Deleted before it is replaced: a running job's machines are free before the new one asks for them, and a
        # replacement that has the same token (`pulumi up --replace`) cannot adopt what is about to be deleted.
        ours = pulumi.ResourceOptions(
            replace_on_changes=_REPLACE_ADOPTED if adopt else _REPLACE,
            delete_before_replace=True,
            depends_on=[*foundation.for_jobs],
        )
        super().__init__(self.provider(), name, props, pulumi.ResourceOptions.merge(ours, opts))


class CustomJob(_Job[types.CustomJob], module="vertex", name="CustomJob"):
    """A CustomJob of Vertex AI. `spec` has the API's fields; see `vertex.types.CustomJob`."""

    provider = CustomJobProvider


class HyperparameterTuningJob(_Job[types.HyperparameterTuningJob], module="vertex", name="HyperparameterTuningJob"):
    """A HyperparameterTuningJob of Vertex AI. `spec` has the API's fields; see `vertex.types`."""

    provider = HyperparameterTuningJobProvider


def completed(kind: Kind, spec: Mapping[str, Any], rerun: int, foundation: Foundation, name: str) -> Mapping[str, Any]:
    """The spec with what it leaves out: one replica a pool, the foundation's defaults, and a folder for each run.

    A spec with problems is left as it is: the provider's `check` reports them all.
    """
    spec, problems = validate(kind, spec, open_text=references.is_open)
    if problems:
        return spec
    field = "jobSpec" if kind == CUSTOM_JOB else "trialJobSpec"
    job = {**foundation.job_defaults, **spec[field]}
    job["workerPoolSpecs"] = [{"replicaCount": 1, **pool} if pool else pool for pool in job["workerPoolSpecs"]]
    whole = {**spec, field: job}
    if foundation.labels:
        whole["labels"] = {**foundation.labels, **spec.get("labels", {})}
    if foundation.encryption_key is not None:
        whole.setdefault("encryptionSpec", {"kmsKeyName": foundation.encryption_key})
    folder = f"{foundation.staging}/{name}/{ownership.run_id(kind, whole, rerun)}"
    job.setdefault("baseOutputDirectory", {"outputUriPrefix": folder})
    return whole


def _whole(spec: Any, complete: Callable[[Any], Any]) -> Any:
    """Applies `complete` to a spec: at once, or when the outputs of other resources in it are known."""
    return pulumi.Output.from_input(spec).apply(complete) if _has_output(spec) else complete(spec)


def _has_output(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_output, value.values()))
    return any(map(_has_output, value)) if isinstance(value, list | tuple) else isinstance(value, pulumi.Output)
