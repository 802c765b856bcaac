"""Completion: a resource that waits for jobs and has their results."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api.errors import VertexError
from vertex_api.job import job_results
from vertex_api.names import KINDS, TERMINAL_STATES
from vertex_api.scalars import to_seconds

from ..errors import TrainingFailed
from ..runtime import target
from ..runtime.foundation import Foundation
from ..runtime.provider import Provider
from ..runtime.resource import DynamicResource
from ..runtime.target import Target
from . import waiting
from .job_resources import CustomJob, HyperparameterTuningJob, TrainingPipeline
from .pipeline_tuning_job_fetching import fetch_existing_jobs_with_tuning_jobs_in_pipelines
from .recovery.current_ledger_contents import LedgerContents, get_current_ledger
from .recovery.job_labels import MARK_LABEL, build_stack_filter

UNDECLARED_MESSAGE = (
    "still running, though no longer declared: {}. Pulumi deletes such resources last, and not after a failure: "
    "`pulumi up --continue-on-error` deletes them all the same"
)


class CompletionProvider(Provider):
    """Waits while it is created or updated. If it fails the jobs stay recorded, and the next run waits again."""

    input_names = ("owner", "parent", "jobs", "deadlines")

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult("completion", {**props, "results": self._await_results_by_job_name(props)})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        results = _fetch_results_of_existing_jobs_by_name(props["parent"], props["owner"], props["jobs"])
        return self.read_result(id_, props, results=results)

    def _await_results_by_job_name(self, props: dict[str, Any]) -> dict[str, Any]:
        deadlines = {name: to_seconds(deadline) for name, deadline in (props.get("deadlines") or {}).items()}
        jobs = {name: id_ for name, id_ in props["jobs"].items() if id_ is not None}
        try:
            return waiting.print_progress_until_all_succeed_and_get_results(
                props["parent"], props["owner"], jobs, deadlines
            )
        except TrainingFailed as error:
            undeclared: list[str] = []
            with suppress(VertexError):  # the failure to report is the training's
                if ledger := get_current_ledger().get_contents_or_none(props["owner"]):
                    api = target.resolve(props["parent"])
                    undeclared = _find_pulumi_names_of_undeclared_active_jobs(api, ledger)
            if undeclared:
                raise TrainingFailed(f"{error}\n{UNDECLARED_MESSAGE.format(', '.join(undeclared))}") from error
            raise


class Completion(DynamicResource, module="vertex", name="Completion"):
    """Waits for `jobs`, a map by name; `results` has the results of each (see `job_results`).

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
        *,
        foundation: Foundation,
        deadlines: Mapping[str, str] | None = None,
        omit_failed: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        self._submitted_ids = {name: job.recovered("id") for name, job in jobs.items()}
        self._parent, self._owner = foundation.full_location_name, f"{pulumi.get_project()}/{pulumi.get_stack()}"
        props: dict[str, Any] = {
            "jobs": self._submitted_ids if omit_failed else {name: job.id for name, job in jobs.items()},
            "owner": self._owner,
            "parent": self._parent,
            "results": None,
        }
        if deadlines:
            props["deadlines"] = dict(deadlines)
        super().__init__(CompletionProvider(), name, props, opts)

    def get_results_even_if_failed(self) -> pulumi.Output[Mapping[str, Any]]:
        """Return the results of the jobs, and if the wait has failed, what the API says of each submitted job now."""

        def fetch_results_or_empty(ids: Mapping[str, Any]) -> dict[str, Any]:
            with suppress(VertexError):  # `pulumi up` reports why the wait has failed
                return _fetch_results_of_existing_jobs_by_name(self._parent, self._owner, ids)
            return {}

        return self.recovered(
            "results", lambda _: pulumi.Output.all(**self._submitted_ids).apply(fetch_results_or_empty)
        )


def _fetch_results_of_existing_jobs_by_name(
    parent: str, project_and_stack_name: str, ids_by_job: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the results of the jobs that have an id and exist."""
    ids = {name: id_ for name, id_ in ids_by_job.items() if id_ is not None}
    jobs = fetch_existing_jobs_with_tuning_jobs_in_pipelines(parent, project_and_stack_name, ids)
    return {name: job_results(job) for name, job in jobs.items()}


def _find_pulumi_names_of_undeclared_active_jobs(api: Target, ledger: LedgerContents) -> list[str]:
    """Return the Pulumi names of a ledger's active jobs that are no longer declared. Raises VertexError.

    Pulumi removes them at the end of a run, unless something has failed before.
    """
    declared_marks = {ledger.compute_mark_label_value(name) for name in ledger.names | ledger.kept_names}
    undeclared = set()
    for kind in KINDS.values():
        for job in api.client.list(kind, api.parent, build_stack_filter(ledger.project_and_stack_name)):
            mark = job["labels"].get(MARK_LABEL, "")
            is_ours = mark.startswith(f"{ledger.id}-")
            if is_ours and mark not in declared_marks and job["state"] not in TERMINAL_STATES:
                undeclared.add(str(job["labels"]["pulumi_name"]))
    return sorted(undeclared)
