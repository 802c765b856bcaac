"""The source of the workflow that runs a schedule on Google Cloud, as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from vertex_api.catalog.output_directories import get_model_directory_or_none
from vertex_api.job_kinds import KINDS, TRAINING_PIPELINE
from vertex_api.job_states import TERMINAL_STATES
from vertex_api.resource_names import build_parent
from vertex_api.schedules.run_placeholders import (
    JOB_LABEL,
    RESULTS_TABLE,
    RUN_ID,
    SCHEDULE_LABEL,
    list_result_references,
)
from vertex_api.schedules.schedule_request_types import ScheduledJob, ScheduleRequest
from vertex_api.validation.canonical_spec import CanonicalSpec

from . import best_trial_steps
from .placeholder_expressions import build_expression, convert_placeholder_texts_to_expressions, quote_text
from .shared_subworkflows import Steps, build_read_step_fields, build_shared_subworkflows

MAX_REDELIVERY_WINDOW = timedelta(minutes=10)
"""Longer than Cloud Scheduler delivers one time again, with the retries that the stack asks for."""
_RUN = RUN_ID[2:-1]
_BEST_TRIAL, _MODEL_DIR = "bestTrial.", "modelDir"
_TUNING_JOB_FIELD = "backingHyperparameterTuningJob"


@dataclass(frozen=True)
class WorkflowPlace:
    """Where the jobs of a schedule run, and the name of its workflow, which is in the same region."""

    project: str
    region: str
    name: str

    @property
    def location_url(self) -> str:
        """The URL of the location, below which collections of jobs are."""
        return f"{self.api_url}{build_parent(self.project, self.region)}"

    @property
    def api_url(self) -> str:
        """The URL that resource names follow."""
        return f"https://{self.region}-aiplatform.googleapis.com/v1/"

    @property
    def executions_url(self) -> str:
        """The URL of the executions of the workflow."""
        parent = f"{build_parent(self.project, self.region)}/workflows/{self.name}"
        return f"https://workflowexecutions.googleapis.com/v1/{parent}/executions"


def compute_redelivery_window(shortest_gap: timedelta) -> timedelta:
    """Return for how long after a run a further delivery counts as one of the same time."""
    return min(MAX_REDELIVERY_WINDOW, shortest_gap / 2)


def build_workflow_source_text(schedule: ScheduleRequest, place: WorkflowPlace, redelivery_window: timedelta) -> str:
    """Return the source of the workflow of a schedule, as JSON.

    It names the run, ends if another execution or a job of the schedule shows that there is nothing to do, and submits
    the jobs one after another. `redelivery_window` is that of `compute_redelivery_window`.
    """
    subworkflows = build_shared_subworkflows(is_sequence=len(schedule.jobs) > 1)
    steps = [*_build_assign_run_variables_steps(redelivery_window), *_build_end_if_redelivered_steps(schedule, place)]
    if schedule.overlap == "skip":
        steps += _build_end_if_overlapping_steps(schedule, place)
    for index, job in enumerate(schedule.jobs):
        steps.append(_build_submit_step(schedule, index, place))
        if index + 1 < len(schedule.jobs):
            steps.append(_build_wait_step(schedule, index, place))
        if is_best_trial_used_later(schedule, job):
            steps += _build_best_trial_steps(index, job, place)
            subworkflows |= best_trial_steps.build_subworkflows()
    names = {job.name: f"${{job_{index}.name}}" for index, job in enumerate(schedule.jobs)}
    steps.append({"done": {"return": {"run": "${run}", "jobs": names}}})
    return json.dumps({"main": {"steps": steps}, **subworkflows}, indent=1, ensure_ascii=False)


def build_expressions_by_placeholder(schedule: ScheduleRequest, job_index: int) -> dict[str, str]:
    """Return the expressions of the placeholders in a job: the run's id, and results of earlier jobs."""
    variables = {_RUN: "run"}
    for reference in list_result_references(schedule.jobs[job_index].body):
        for earlier, job in enumerate(schedule.jobs[:job_index]):
            result = reference.removeprefix(f"{job.name}.")
            if result != reference and (expression := _build_result_expression_or_none(earlier, job, result)):
                variables[f"{RESULTS_TABLE}.{reference}"] = expression
    return variables


def is_best_trial_used_later(schedule: ScheduleRequest, job: ScheduledJob) -> bool:
    """Return whether a job of a schedule is a tuning job of whose best trial another one uses something."""
    later = schedule.jobs[schedule.jobs.index(job) + 1 :]
    used = {reference for each in later for reference in list_result_references(each.body)}
    prefixes = (f"{job.name}.{_BEST_TRIAL}", f"{job.name}.{_MODEL_DIR}")
    return bool(_build_canonical_spec(job).study_spec) and any(reference.startswith(prefixes) for reference in used)


def require_study_spec(job: ScheduledJob) -> Mapping[str, Any]:
    """Return the StudySpec of a tuning job, or of a pipeline that runs one."""
    study_spec = _build_canonical_spec(job).study_spec
    assert study_spec is not None, job.name
    return study_spec


def _build_canonical_spec(job: ScheduledJob) -> CanonicalSpec:
    return CanonicalSpec(KINDS[job.collection], job.body)


def _build_result_expression_or_none(index: int, job: ScheduledJob, result: str) -> str | None:
    variable, spec = f"job_{index}", _build_canonical_spec(job)
    kind, _, name = result.removeprefix(_BEST_TRIAL).partition(".")
    if result == _MODEL_DIR:
        trial = "${trial}" if spec.study_spec else ""
        folder = get_model_directory_or_none(spec.job_spec, trial)
        variables = {_RUN: "run", "trial": f"best_{index}.id"}
        return build_expression(folder, variables)[2:-1] if folder else None
    if spec.study_spec and result == f"{_BEST_TRIAL}id":
        return f"best_{index}.id"
    if spec.study_spec and result.startswith(_BEST_TRIAL) and kind in ("parameters", "metrics") and name:
        return f"best_{index}.{kind}[{quote_text(name)}]"
    field = _TUNING_JOB_FIELD if spec.study_spec else "backingCustomJob"
    fields = {"name": "name", "backingJob": f"trainingTaskMetadata.{field}", "model": "modelToUpload.name"}
    return f"{variable}.{fields[result]}" if result in fields else None


def _build_assign_run_variables_steps(redelivery_window: timedelta) -> Steps:
    execution = '${sys.get_env("GOOGLE_CLOUD_WORKFLOW_EXECUTION_ID")}'
    stamp = '${text.replace_all(text.substring(time.format(started), 0, 19), ":", "-")}'
    run = '${stamp + "-" + text.substring(execution, 0, 8)}'
    since = f"${{time.format(started - {redelivery_window.total_seconds():g})}}"
    names = [{"execution": execution}, {"started": "${sys.now()}"}, {"stamp": stamp}, {"run": run}, {"since": since}]
    return [{"name_the_run": {"assign": [*names, {"nothing": []}]}}]


def _build_end_if_redelivered_steps(schedule: ScheduleRequest, place: WorkflowPlace) -> Steps:
    """End if this is a second delivery: of the same time, another execution is at work or has submitted its first job.

    An execution that began long ago counts too, unless runs may overlap: between two jobs of its run no job runs.
    """
    earlier = 'state="ACTIVE" AND startTime<"${own}"'
    if schedule.overlap == "allow":
        earlier += ' AND startTime>"${since}"'
    executions = build_expression(earlier, {"own": "own.startTime", "since": "since"})
    first = schedule.jobs[0]
    url, created = f"{place.location_url}/{first.collection}", _build_recent_jobs_filter_expression(schedule, first)
    return [
        {"get_own_execution": build_read_step_fields("own", f'${{"{place.executions_url}/" + execution}}')},
        {
            "list_executions": build_read_step_fields(
                "active", place.executions_url, {"filter": executions, "pageSize": 1}
            )
        },
        _build_end_if_any_step("active", "executions", "another execution of this schedule is under way"),
        {"list_submitted": build_read_step_fields("submitted", url, {"filter": created, "pageSize": 1})},
        _build_end_if_any_step("submitted", first.collection, "this time has been delivered before"),
    ]


def _build_end_if_overlapping_steps(schedule: ScheduleRequest, place: WorkflowPlace) -> Steps:
    """End if a job of the schedule has not ended."""
    steps: Steps = []
    for collection in dict.fromkeys(job.collection for job in schedule.jobs):
        prefix = "PIPELINE_STATE_" if collection == TRAINING_PIPELINE.collection else "JOB_STATE_"
        ended = sorted(state for state in TERMINAL_STATES if state.startswith(prefix))
        conditions = [f'labels.{SCHEDULE_LABEL}="{schedule.id}"', *(f'state!="{state}"' for state in ended)]
        query = {"filter": " AND ".join(conditions), "pageSize": 1}
        step, result = f"list_running_{collection}", f"running_{collection}"
        steps += [
            {step: build_read_step_fields(result, f"{place.location_url}/{collection}", query)},
            _build_end_if_any_step(result, collection, "the last run is still under way"),
        ]
    return steps


def _build_end_if_any_step(answer: str, list_key: str, reason: str) -> dict[str, Any]:
    condition = f'${{len(default(map.get({answer}, "{list_key}"), nothing)) > 0}}'
    result = {"run": "${run}", "skipped": reason}
    return {f"end_if_any_{answer}": {"switch": [{"condition": condition, "return": result}]}}


def _build_submit_step(schedule: ScheduleRequest, index: int, place: WorkflowPlace) -> dict[str, Any]:
    job = schedule.jobs[index]
    args = {
        "job": job.name,
        "url": f"{place.location_url}/{job.collection}",
        "collection": job.collection,
        "filter": _build_recent_jobs_filter_expression(schedule, job),
        "body": convert_placeholder_texts_to_expressions(job.body, build_expressions_by_placeholder(schedule, index)),
    }
    return {f"submit_{index}": {"call": "submit_job", "args": args, "result": f"job_{index}"}}


def _build_wait_step(schedule: ScheduleRequest, index: int, place: WorkflowPlace) -> dict[str, Any]:
    """Return the step that waits for the end of a job before the next one is submitted."""
    url = f'${{"{place.api_url}" + job_{index}.name}}'
    args = {"job": schedule.jobs[index].name, "url": url, "later": schedule.jobs[index + 1].name}
    return {f"wait_{index}": {"call": "wait_for_job", "args": args, "result": f"job_{index}"}}


def _build_recent_jobs_filter_expression(schedule: ScheduleRequest, job: ScheduledJob) -> str:
    """Return the expression of the filter for the jobs of a schedule that are not older than the redelivery window."""
    labels = f'labels.{SCHEDULE_LABEL}="{schedule.id}" AND labels.{JOB_LABEL}="{job.body["labels"][JOB_LABEL]}"'
    return build_expression(f'{labels} AND create_time>"${{since}}"', {"since": "since"})


def _build_best_trial_steps(index: int, job: ScheduledJob, place: WorkflowPlace) -> Steps:
    steps, tuning_job = Steps(), f"${{job_{index}}}"
    if KINDS[job.collection] == TRAINING_PIPELINE:
        url = f'${{"{place.api_url}" + job_{index}.trainingTaskMetadata.{_TUNING_JOB_FIELD}}}'
        steps.append({f"get_tuning_job_{index}": build_read_step_fields(f"tuning_job_{index}", url)})
        tuning_job = f"${{tuning_job_{index}}}"
    study_spec = require_study_spec(job)
    args = {"job": job.name, "tuning_job": tuning_job, **best_trial_steps.build_metric_and_loss_sign_args(study_spec)}
    call = {"call": "find_best_trial", "args": args, "result": f"best_{index}"}
    return [*steps, {f"find_best_trial_{index}": call}]
