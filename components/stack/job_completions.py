"""The completions of a stack's jobs: resources that wait for jobs, and the results and final states that they know."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import pulumi

from vertex_api.names import SUCCEEDED_STATES

from ..jobs.resources import Completion, CustomJob, HyperparameterTuningJob, TrainingPipeline
from ..runtime.foundation import Foundation
from ..settings.settings import Settings

JobResource = CustomJob | HyperparameterTuningJob | TrainingPipeline
Results = pulumi.Output[Mapping[str, Any]]
_RUN_KEYS = ("name", "page", "logs")


class JobCompletions:
    """Creates a stack's Completions, and keeps the results of the jobs that they wait for, by name."""

    def __init__(self, settings: Settings, foundation: Foundation) -> None:
        self._lifecycles = {job.name: job.lifecycle for job in settings.jobs}
        self._foundation = foundation
        self._results_by_waited_job: dict[str, Results] = {}

    def create_completion(self, name: str, jobs: Mapping[str, JobResource]) -> Completion:
        """Create the Completion that waits for these jobs, each until its own deadline if it has one."""
        lifecycles = {job_name: self._lifecycles[job_name] for job_name in jobs}
        deadlines = {name: lifecycle["deadline"] for name, lifecycle in lifecycles.items() if "deadline" in lifecycle}
        completion = Completion(name, jobs, foundation=self._foundation, deadlines=deadlines, omit_failed=True)
        self._results_by_waited_job.update(dict.fromkeys(jobs, completion.results_so_far()))
        return completion

    @property
    def results_of_succeeded_jobs(self) -> Results:
        """The results of all jobs that were waited for and have succeeded, by name."""
        by_completion = dict.fromkeys(self._results_by_waited_job.values())
        merged: Results = reduce(_merge_outputs_of_dicts, by_completion, pulumi.Output.from_input({}))
        return merged.apply(
            lambda results: {name: each for name, each in results.items() if each["state"] in SUCCEEDED_STATES}
        )

    def get_run_summary_with_final_state_if_awaited(
        self, job_name: str, job: JobResource
    ) -> pulumi.Output[Mapping[str, Any]]:
        """Return a job's run, with the final state of a job that was waited for; `None` if it was not submitted."""
        run = job.recovered("run")
        if job_name not in self._results_by_waited_job:
            return run
        completed = self._results_by_waited_job[job_name]
        state = completed.apply(lambda results: {"state": results[job_name]["state"]} if job_name in results else {})
        return run.apply(
            lambda run: run and state.apply(lambda state: {**{key: run[key] for key in (*_RUN_KEYS, "state")}, **state})
        )


def _merge_outputs_of_dicts(first: Results, second: Results) -> Results:
    return first.apply(lambda first: second.apply(lambda second: {**first, **second}))
