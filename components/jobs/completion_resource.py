"""Completion: a resource that waits for jobs and has their results."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api.client_errors import VertexError
from vertex_api.scalar_types import parse_seconds

from ..errors import TrainingFailed
from ..runtime import api_target
from ..runtime.foundation_protocol import Foundation
from ..runtime.provider_base import Provider
from . import waiting
from .job_resources import CustomJob, HyperparameterTuningJob, TrainingPipeline
from .recovery.orphans import find_pulumi_names_of_undeclared_active_jobs
from .recovery.submitted_jobs_cache import get_submitted_jobs_cache
from .results import build_job_results

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
        jobs = waiting.fetch_existing_jobs_with_tuning_jobs(props["parent"], props["owner"], props["jobs"])
        results = {name: build_job_results(job) for name, job in jobs.items()}
        return self.build_read_result_with_inputs(id_, props, results=results)

    def _await_results_by_job_name(self, props: dict[str, Any]) -> dict[str, Any]:
        deadlines = {name: parse_seconds(deadline) for name, deadline in (props.get("deadlines") or {}).items()}
        try:
            return waiting.poll_until_all_succeed(props["parent"], props["owner"], props["jobs"], deadlines)
        except TrainingFailed as error:
            undeclared: list[str] = []
            with suppress(VertexError):  # the failure to report is the training's
                if ledger := get_submitted_jobs_cache().find_current_ledger(props["owner"]):
                    api = api_target.resolve_target_and_start_emulator(props["parent"])
                    undeclared = find_pulumi_names_of_undeclared_active_jobs(api, ledger)
            if undeclared:
                raise TrainingFailed(f"{error}\n{UNDECLARED_MESSAGE.format(', '.join(undeclared))}") from error
            raise


class Completion(dynamic.Resource, module="vertex", name="Completion"):
    """Waits for `jobs`, a map by name; `results` has the results of each (see `build_job_results` in `results.py`).

    `deadlines` are durations ("7200s") by name: if a job takes longer, the Completion fails, and the job stays active.
    """

    results: pulumi.Output[Mapping[str, Any]]

    def __init__(
        self,
        name: str,
        jobs: Mapping[str, CustomJob | HyperparameterTuningJob | TrainingPipeline],
        *,
        foundation: Foundation,
        deadlines: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props: dict[str, Any] = {
            "jobs": {name: job.id for name, job in jobs.items()},
            "owner": f"{pulumi.get_project()}/{pulumi.get_stack()}",
            "parent": foundation.full_location_name,
            "results": None,
        }
        if deadlines:
            props["deadlines"] = dict(deadlines)
        super().__init__(CompletionProvider(), name, props, opts)
