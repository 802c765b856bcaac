"""The jobs of a stack, submitted in the order of their dependencies: after images, packages and upstream jobs."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import pulumi

from vertex_api.job import MODEL_DIR
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE

from ..jobs.references import levels
from ..jobs.resources import Completion, CustomJob, HyperparameterTuningJob, TrainingPipeline
from ..runtime.foundation import Foundation
from ..schema.declared_job import DeclaredJob
from ..schema.interpolation import split_result
from ..settings.settings import Settings
from .images_and_packages import Images, Packages
from .job_completions import JobCompletions, JobResource, Results
from .job_spec_references import (
    collect_referenced_names_by_table,
    resolve_references_now_or_when_known,
    select_built_resources,
    select_uris_by_table,
)

RESOURCE_TYPES: dict[str, type[JobResource]] = {
    CUSTOM_JOB.collection: CustomJob,
    HYPERPARAMETER_TUNING_JOB.collection: HyperparameterTuningJob,
    TRAINING_PIPELINE.collection: TrainingPipeline,
}


class Jobs:
    """A stack's jobs: submitted after their images, packages and upstream jobs, and waited for.

    Each stage of jobs that have downstream jobs has a Completion of its own. All other jobs with `lifecycle.wait` have
    one together.
    """

    def __init__(self, settings: Settings, foundation: Foundation, images: Images, packages: Packages) -> None:
        self._settings, self._foundation, self._images, self._packages = settings, foundation, images, packages
        self._declarations = {job.name: job for job in settings.jobs}
        self.resources: dict[str, JobResource] = {}
        self._completions = JobCompletions(settings, foundation)
        stage_completions: list[Completion] = []
        level = levels({job.name: job.upstream_job_names for job in settings.jobs})
        upstream_jobs = frozenset().union(*(job.upstream_job_names for job in settings.jobs))
        in_order = sorted(settings.jobs, key=lambda job: level[job.name])
        for depth, group in groupby(in_order, lambda job: level[job.name]):
            waited_jobs: dict[str, JobResource] = {}
            for declaration in group:
                earlier_levels = sorted({level[name] for name in declaration.upstream_job_names})
                job = self._create_job(declaration, [stage_completions[earlier] for earlier in earlier_levels])
                self.resources[declaration.name] = job
                if declaration.name in upstream_jobs:
                    waited_jobs[declaration.name] = job
            if waited_jobs:
                stage_completions.append(
                    self._completions.create_completion(f"wait-for-upstream-{depth + 1}", waited_jobs)
                )
        last_names = [job.name for job in settings.jobs if job.lifecycle.get("wait") and job.name not in upstream_jobs]
        if last_names:
            self._completions.create_completion("wait-for-jobs", {name: self.resources[name] for name in last_names})

    @property
    def results_of_succeeded_waited_jobs(self) -> Results:
        """The results of all jobs that were waited for and have succeeded, by name."""
        return self._completions.results_of_succeeded_jobs

    def get_run_summary_with_final_state_if_awaited(self, job_name: str) -> pulumi.Output[Mapping[str, Any]]:
        """Return a job's run. Of a job that was waited for, it has the final state, and the rest is in its results.

        With `--continue-on-error`, a job that could not be submitted has `None`.
        """
        return self._completions.get_run_summary_with_final_state_if_awaited(job_name, self.resources[job_name])

    def _create_job(self, declaration: DeclaredJob, completions: Sequence[Completion]) -> JobResource:
        names = collect_referenced_names_by_table(declaration)
        tables = {
            **select_uris_by_table(names, self._images, self._packages),
            "jobs": self._get_model_dirs_known_in_preview(names["jobs"]),
        }
        dependencies: list[pulumi.Resource] = [
            *select_built_resources(names, self._images, self._packages),
            *completions,
            *(self.resources[name] for name in sorted(declaration.upstream_job_names)),
        ]
        return RESOURCE_TYPES[declaration.kind.collection](
            declaration.name,
            cast(Any, resolve_references_now_or_when_known(declaration.required_valid_spec, tables)),
            foundation=self._foundation,
            lifecycle=declaration.lifecycle,
            secrets={name: self._settings.secrets[name] for name in sorted(names["secrets"])},
            jobs={name: self.resources[name] for name in sorted(declaration.referenced_jobs)},
            opts=pulumi.ResourceOptions(depends_on=dependencies) if dependencies else None,
        )

    def _get_model_dirs_known_in_preview(self, result_references: Iterable[str]) -> dict[str, pulumi.Input[str]]:
        """Return those results that a preview knows: model folders of jobs that are neither tuning jobs nor adopted."""
        model_dirs: dict[str, pulumi.Input[str]] = {}
        for reference in result_references:
            name, result = split_result(reference, self.resources)
            job = self._declarations[name]
            if result == MODEL_DIR and not job.required_valid_spec.study_spec and not job.is_adopted:
                model_dirs[reference] = cast(pulumi.Input[str], self.resources[name].model_dir)
        return model_dirs
