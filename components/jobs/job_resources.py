"""Training jobs as Pulumi resources: CustomJob, HyperparameterTuningJob and TrainingPipeline."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import pulumi

from vertex_api import pipelines, types
from vertex_api.job import Job

from ..runtime.foundation import Foundation
from ..runtime.resource import DynamicResource, when_known
from ..schema import interpolation, shapes
from .job_argument_validation import canonicalize_spec_and_lifecycle_and_record_problems
from .named_job_adoption import expand_to_resource_name
from .provider import CustomJobProvider, HyperparameterTuningJobProvider, JobProvider, TrainingPipelineProvider
from .provider_inputs import REPLACING_INPUTS, REPLACING_INPUTS_OF_ADOPTED
from .recovery.job_digests import compute_run_digest
from .spec_defaults import copy_with_defaults_and_output_folder

CustomJobArgs = types.CustomJob
HyperparameterTuningJobArgs = types.HyperparameterTuningJob
TrainingPipelineArgs = pipelines.TrainingPipeline

Spec = TypeVar("Spec", CustomJobArgs, HyperparameterTuningJobArgs, TrainingPipelineArgs)


class _Job(DynamicResource, Generic[Spec]):
    """What all kinds share. The job's resource name is its `id`; `run` has its `name`, `state`, `page`, `logs`.

    As a refresh finds them `run` also has the `error` of a failed job, and of a tuning job or a pipeline that tunes its
    `trials` (`ended`, `of`) and its `bestTrial`. `jobs` are those whose results it uses, by the names that references
    in `spec` have for them, such as `${jobs.tune.bestTrial.parameters.lr}`: they must have succeeded when it is
    submitted, so let it depend on their Completion.
    """

    provider: type[JobProvider]
    output_names = ("run",)
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
    ) -> None:
        kind = self.provider.kind
        canonical: Any = spec
        # A declared job passes its canonical spec. The signature does not say so: a union would make type checkers
        # report a slip in a dict as one mismatch of the whole, without the field.
        is_validated = isinstance(canonical, Job | pulumi.Output)
        if not is_validated:
            canonical, lifecycle = canonicalize_spec_and_lifecycle_and_record_problems(
                kind,
                name,
                spec,
                lifecycle or {},
                foundation=foundation,
                secrets=secrets or {},
                result_names_by_job={name: job.available_result_names_or_none for name, job in (jobs or {}).items()},
            )
        rerun = (lifecycle or {}).get("rerun", 0)
        adopted_name = (lifecycle or {}).get("adopt")
        parent = foundation.full_location_name
        adopt: str | None = adopted_name and expand_to_resource_name(kind, parent, adopted_name)
        run_digests: list[pulumi.Input[str]] = [job.run_digest for _, job in sorted((jobs or {}).items())]
        self._is_adopted = adopt is not None
        # A job that is adopted anew is another upstream job.
        self._rerun, self._upstream_ids = rerun, [*run_digests, *([adopt] if adopt else [])]
        # What an adopted job has beside what is declared stays as it is.
        self._spec = canonical
        if not adopt:
            self._spec = when_known(
                lambda spec, digests: (
                    spec and copy_with_defaults_and_output_folder(spec, rerun, foundation, name, digests)
                ),
                canonical,
                run_digests,
            )
        props: dict[str, Any] = {
            "owner": f"{pulumi.get_project()}/{pulumi.get_stack()}/{name}",
            "parent": parent,
            "spec": when_known(lambda valid: valid.fields, self._spec)
            if is_validated
            else foundation.program_jobs.get_fields_once_all_jobs_are_valid(self._spec, foundation.job_dependencies),
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
        if foundation.tensorboard_name is not None:
            props["tensorboard"] = when_known(
                lambda spec: foundation.tensorboard_name if spec and _has_stack_tensorboard_reference(spec) else None,
                self._spec,
            )
        # Deleted before it is replaced: a running job's machines are free before the new one asks for them, and a
        # replacement that has the same token (`pulumi up --replace`) cannot adopt what is about to be deleted.
        ours = pulumi.ResourceOptions(
            replace_on_changes=list(REPLACING_INPUTS_OF_ADOPTED if adopt else REPLACING_INPUTS),
            delete_before_replace=True,
            depends_on=[*foundation.job_dependencies],
        )
        # A merge of nothing would be a thirtieth of a preview.
        super().__init__(self.provider(), name, props, pulumi.ResourceOptions.merge(ours, opts) if opts else ours)

    @property
    def run_digest(self) -> pulumi.Input[str]:
        """Eight hex digits, known in a preview, that differ whenever the job would run anew."""
        return when_known(
            lambda spec, ids: compute_run_digest(spec, self._rerun, ids) if spec else "", self._spec, self._upstream_ids
        )

    @property
    def available_result_names_or_none(self) -> Sequence[str] | None:
        """The names of the results that other jobs may refer to; None if they are not known yet."""
        if self._is_adopted or not isinstance(self._spec, Job):
            return None
        return self._spec.result_names

    @property
    def model_dir(self) -> pulumi.Input[str | None]:
        """The folder of the job's model, known in a preview; None for a tuning job and for a spec with problems."""
        return when_known(lambda spec: spec and spec.model_dir, self._spec)


class CustomJob(_Job[CustomJobArgs], module="vertex", name="CustomJob"):
    """A CustomJob of Vertex AI. `spec` has the API's fields; see `vertex_api.types.CustomJob`."""

    provider = CustomJobProvider


class HyperparameterTuningJob(_Job[HyperparameterTuningJobArgs], module="vertex", name="HyperparameterTuningJob"):
    """A HyperparameterTuningJob of Vertex AI. `spec` has the API's fields; see `vertex_api.types`."""

    provider = HyperparameterTuningJobProvider


class TrainingPipeline(_Job[TrainingPipelineArgs], module="vertex", name="TrainingPipeline"):
    """A TrainingPipeline of Vertex AI, which runs a job and may upload its model; see `TrainingPipelineArgs`."""

    provider = TrainingPipelineProvider


def _has_stack_tensorboard_reference(spec: Job) -> bool:
    return bool(spec.job_spec.get("tensorboard") == interpolation.TENSORBOARD_NAME)
