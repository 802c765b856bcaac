"""What a program writes: the three kinds of jobs as Pulumi resources, and Completion, which waits for jobs."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar

import pulumi
from pulumi import dynamic

from vertex_api import pipelines, types
from vertex_api.errors import VertexError
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind

from .. import providers
from ..plan.program import Foundation
from ..plan.rules import expand_name
from ..plan.training import Defaults, Training
from ..runtime.resource import DynamicResource, when_known
from ..schema import interpolation, shapes
from .identity import run_digest
from .inputs import REPLACING, REPLACING_ADOPTED

CustomJobArgs = types.CustomJob
HyperparameterTuningJobArgs = types.HyperparameterTuningJob
TrainingPipelineArgs = pipelines.TrainingPipeline

Spec = TypeVar("Spec", CustomJobArgs, HyperparameterTuningJobArgs, TrainingPipelineArgs)


class _Job(DynamicResource, Generic[Spec]):
    """What all kinds share. The job's resource name is its `id`; `run` has its `name`, `state`, `page`, `logs`.

    As a refresh finds them `run` also has the `error` of a failed job, and of a tuning job or a pipeline that tunes its
    `trials` (`ended`, `of`) and its `bestTrial`. `jobs` are those whose results it uses, by the names that references
    in `args` have for them, such as `${jobs.tune.bestTrial.parameters.lr}`: they must have succeeded when it is
    submitted, so let it depend on their Completion.
    """

    kind: ClassVar[Kind]
    provider: ClassVar[type[dynamic.ResourceProvider]]
    output_names = ("run",)
    run: pulumi.Output[Mapping[str, Any]]

    def __init__(
        self,
        name: str,
        args: Spec,
        opts: pulumi.ResourceOptions | None = None,
        *,
        foundation: Foundation,
        lifecycle: shapes.Lifecycle | None = None,
        secrets: Mapping[str, pulumi.Input[str]] | None = None,
        jobs: "Mapping[str, CustomJob | HyperparameterTuningJob | TrainingPipeline] | None" = None,
    ) -> None:
        given: Any = args
        # A declared job is made already. The signature does not say so: a union would make type checkers report a slip
        # in a dict as one mismatch of the whole, without the field.
        is_declared = isinstance(given, Training)
        results = {name: job.result_names for name, job in (jobs or {}).items()}
        training: Training = (
            given
            if is_declared
            else foundation.program.make(self.kind, name, args, lifecycle or {}, secrets or {}, results)
        )
        rerun: int = training.lifecycle.get("rerun", 0)
        parent = foundation.full_location_name
        adopt: str | None = expand_name(self.kind, parent, training.lifecycle["adopt"]) if training.is_adopted else None
        upstream: list[pulumi.Input[str]] = [job.run_digest for _, job in sorted((jobs or {}).items())]
        self._is_adopted: bool = training.is_adopted
        # A job that is adopted anew is another upstream job.
        self._rerun, self._upstream = rerun, [*upstream, *([adopt] if adopt else [])]
        # What an adopted job has beside what is declared stays as it is.
        self._spec: Any = training.spec
        if not adopt:
            self._spec = when_known(
                lambda job, digests: job and complete(job, foundation.defaults, name, rerun, digests),
                training.spec,
                upstream,
            )
        props: dict[str, Any] = {
            "owner": f"{pulumi.get_project()}/{pulumi.get_stack()}/{name}",
            "parent": parent,
            "spec": when_known(lambda valid: valid.fields, self._spec)
            if is_declared
            else foundation.program.fields(self._spec, foundation.job_dependencies),
            "run": None,
        }
        if rerun:
            # By itself, as a first `lifecycle` would not be seen as a change of what is in it.
            props["rerun"] = rerun
        if adopt:
            props["adopt"] = adopt
        if others := {key: value for key, value in training.lifecycle.items() if key not in ("rerun", "adopt")}:
            props["lifecycle"] = others
        if secrets:
            props["secrets"] = pulumi.Output.secret(dict(secrets))
        if jobs:
            props["jobs"] = {name: job.id for name, job in jobs.items()}
        if foundation.tensorboard_name is not None:
            props["tensorboard"] = when_known(
                lambda spec: foundation.tensorboard_name if spec and _uses_tensorboard(spec) else None, self._spec
            )
        # Deleted before it is replaced: a running job's machines are free before the new one asks for them, and a
        # replacement that has the same token (`pulumi up --replace`) cannot adopt what is about to be deleted.
        ours = pulumi.ResourceOptions(
            replace_on_changes=list(REPLACING_ADOPTED if adopt else REPLACING),
            delete_before_replace=True,
            depends_on=[*foundation.job_dependencies],
        )
        # A merge of nothing would be a thirtieth of a preview.
        super().__init__(self.provider(), name, props, pulumi.ResourceOptions.merge(ours, opts) if opts else ours)

    @property
    def run_digest(self) -> pulumi.Input[str]:
        """Eight hex digits, known in a preview, that differ whenever the job would run anew."""
        return when_known(
            lambda spec, ids: run_digest(spec, self._rerun, ids) if spec else "", self._spec, self._upstream
        )

    @property
    def result_names(self) -> Sequence[str] | None:
        """The names of the results that other jobs may refer to; None if they are not known yet."""
        if self._is_adopted or not isinstance(self._spec, Job):
            return None
        return self._spec.result_names

    @property
    def model_dir(self) -> pulumi.Input[str | None]:
        """The folder of the job's model, known in a preview; None for a tuning job and for a spec with problems."""
        return when_known(lambda spec: spec and spec.model_dir, self._spec)


def complete(job: Job, defaults: Defaults, name: str, rerun: int = 0, upstream: Sequence[str] = ()) -> Job:
    """Return a job with what it leaves out: the defaults of its stack, and a folder for the outputs of each run.

    `upstream` are the run digests of the jobs whose results it uses.
    """

    def folder(whole: Job, declared: str) -> str:
        return declared or f"{defaults.folder}/{name}/{run_digest(whole, rerun, upstream)}"

    return defaults.complete(job, folder)


def _uses_tensorboard(spec: Job) -> bool:
    """Return whether a spec refers to the stack's TensorBoard."""
    return bool(spec.job_spec.get("tensorboard") == interpolation.TENSORBOARD_NAME)


class CustomJob(_Job[CustomJobArgs]):
    """A CustomJob of Vertex AI. `args` have the API's fields; see `vertex_api.types.CustomJob`."""

    kind, provider = CUSTOM_JOB, providers.CustomJob


class HyperparameterTuningJob(_Job[HyperparameterTuningJobArgs]):
    """A HyperparameterTuningJob of Vertex AI. `args` have the API's fields; see `vertex_api.types`."""

    kind, provider = HYPERPARAMETER_TUNING_JOB, providers.HyperparameterTuningJob


class TrainingPipeline(_Job[TrainingPipelineArgs]):
    """A TrainingPipeline of Vertex AI, which runs a job and may upload its model; see `TrainingPipelineArgs`."""

    kind, provider = TRAINING_PIPELINE, providers.TrainingPipeline


class Completion(DynamicResource):
    """Waits for `jobs`, a map by name; `results` has the results of each (see `build_job_results`).

    `deadlines` are durations ("7200s") by name: if a job takes longer, the Completion fails, and the job stays active.
    If a job cannot be submitted, `pulumi up --continue-on-error` skips the Completion. With `omit_failed`, it waits for
    the other jobs, and `results` lacks the failed one.
    """

    output_names = ("results",)
    results: pulumi.Output[Mapping[str, Any]]

    def __init__(
        self,
        name: str,
        jobs: Mapping[str, CustomJob | HyperparameterTuningJob | TrainingPipeline],
        opts: pulumi.ResourceOptions | None = None,
        *,
        foundation: Foundation,
        deadlines: Mapping[str, str] | None = None,
        omit_failed: bool = False,
    ) -> None:
        self._submitted = {name: job.recovered("id") for name, job in jobs.items()}
        self._parent, self._owner = foundation.full_location_name, f"{pulumi.get_project()}/{pulumi.get_stack()}"
        props: dict[str, Any] = {
            "jobs": self._submitted if omit_failed else {name: job.id for name, job in jobs.items()},
            "owner": self._owner,
            "parent": self._parent,
            "results": None,
        }
        if deadlines:
            props["deadlines"] = dict(deadlines)
        super().__init__(providers.Completion(), name, props, opts)

    def results_so_far(self) -> pulumi.Output[Mapping[str, Any]]:
        """Return the results of the jobs, and if the wait has failed, what the API says of each submitted job now."""

        def fetch(ids: Mapping[str, Any]) -> dict[str, Any]:
            from . import lookup

            with suppress(VertexError):  # `pulumi up` reports why the wait has failed
                return lookup.results(self._parent, self._owner, ids)
            return {}

        return self.recovered("results", lambda _: pulumi.Output.all(**self._submitted).apply(fetch))
