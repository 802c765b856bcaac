"""The source of the workflow that runs a schedule on Google Cloud, as JSON, and what Workflows would not take.

Source of the limits: Google's page "Quotas and limits" of Workflows.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from vertex_api.job import MODEL_DIR, Job
from vertex_api.jobspec import DEFAULT_MAX_WAIT, DEFAULT_TIMEOUT, model_folder
from vertex_api.messages import KeyPath
from vertex_api.names import KINDS, TERMINAL_STATES, TRAINING_PIPELINE, Kind, location_name
from vertex_api.pipelines import BACKING_TUNING_JOB
from vertex_api.scalars import to_seconds
from vertex_api.schedules import (
    NAME_LABEL,
    RESULTS_TABLE,
    RUN_ID,
    SCHEDULE_LABEL,
    ScheduledJob,
    ScheduleRequest,
    result_references,
)
from vertex_api.validation.formats import Violation

from ..schema import interpolation
from . import steps
from .steps import MAX_LOOKS, MIN_LAST_PAUSE_SECONDS, Steps, read_step, wait_step

MAX_REDELIVERY_WINDOW = timedelta(minutes=10)
"""Longer than Cloud Scheduler delivers one time again, with the retries that the stack asks for."""
_DAY_SECONDS = 86400
MAX_EXPRESSION_LENGTH = 400
"""Characters of an expression."""
MAX_SOURCE_BYTES = 128 * 1024
MAX_TEXT_BYTES = 256 * 1024
MAX_EXECUTION_HOURS = 365 * 24
_MAX_SHOWN = 60
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_SHOWN = 40
_RUN = RUN_ID[2:-1]
_SUBMIT_JOB = "submit_job"
_BEST_TRIAL = "bestTrial."


@dataclass(frozen=True)
class Place:
    """Where the jobs of a schedule run, and the name of its workflow, which is in the same region."""

    project: str
    region: str
    name: str

    @property
    def location_url(self) -> str:
        """The URL of the location, below which collections of jobs are."""
        return f"{self.api_url}{location_name(self.project, self.region)}"

    @property
    def api_url(self) -> str:
        """The URL that resource names follow."""
        return f"https://{self.region}-aiplatform.googleapis.com/v1/"

    @property
    def executions_url(self) -> str:
        """The URL of the executions of the workflow."""
        parent = f"{location_name(self.project, self.region)}/workflows/{self.name}"
        return f"https://workflowexecutions.googleapis.com/v1/{parent}/executions"


def redelivery_window(shortest_gap: timedelta) -> timedelta:
    """Return for how long after a run a further delivery counts as one of the same time."""
    return min(MAX_REDELIVERY_WINDOW, shortest_gap / 2)


def workflow_source(schedule: ScheduleRequest, place: Place, window: timedelta) -> str:
    """Return the source of the workflow of a schedule, as JSON.

    It names the run, ends if another execution or a job of the schedule shows that there is nothing to do, and submits
    the jobs one after another. `window` is that of `redelivery_window`.
    """
    subworkflows = steps.shared_subworkflows(is_sequence=len(schedule.jobs) > 1)
    main = [*_name_run(window), *_end_if_redelivered(schedule, place)]
    if schedule.overlap == "skip":
        main += _end_if_overlapping(schedule, place)
    for index, job in enumerate(schedule.jobs):
        main.append(_submit(schedule, index, place))
        if index + 1 < len(schedule.jobs):
            main.append(_wait(schedule, index, place))
        if uses_best_trial(schedule, job):
            main.append(_find_best_trial(index, job, place))
            subworkflows |= steps.best_trial_subworkflows()
    names = {job.name: f"${{job_{index}.name}}" for index, job in enumerate(schedule.jobs)}
    main.append({"done": {"return": {"run": "${run}", "jobs": names}}})
    return json.dumps({"main": {"steps": main}, **subworkflows}, indent=1, ensure_ascii=False)


def expressions(schedule: ScheduleRequest, job_index: int) -> dict[str, str]:
    """Return the expressions of the placeholders in a job: the run's id, and results of earlier jobs."""
    variables = {_RUN: "run"}
    for reference in result_references(schedule.jobs[job_index].body):
        for earlier, job in enumerate(schedule.jobs[:job_index]):
            result = reference.removeprefix(f"{job.name}.")
            if result != reference and (value := _result_expression(earlier, job, result)):
                variables[f"{RESULTS_TABLE}.{reference}"] = value
    return variables


def max_hours(job: ScheduledJob) -> int:
    """Return after how many hours a job of a schedule is one that hangs: eight days unless it says otherwise.

    That is a day, to wait for machines and quota, more than `scheduling` lets it run and wait. A tuning job has its
    trials one after another, except for those in parallel. Nothing ends by itself that waits for quota (QUEUED), or for
    machines with a `maxWaitDuration` of 0, which counts as a week.
    """
    spec = _job(job)
    scheduling, seconds = spec.job_spec.get("scheduling", {}), spec.max_seconds
    if scheduling.get("strategy") == "FLEX_START":
        seconds += to_seconds(scheduling.get("maxWaitDuration", DEFAULT_MAX_WAIT)) or to_seconds(DEFAULT_TIMEOUT)
    rounds = -(-spec.trials // spec.parallel_trials)
    return math.ceil((rounds * seconds + _DAY_SECONDS) / 3600)


def uses_best_trial(schedule: ScheduleRequest, job: ScheduledJob) -> bool:
    """Return whether a job of a schedule is a tuning job of whose best trial another one uses something."""
    later = schedule.jobs[schedule.jobs.index(job) + 1 :]
    used = {reference for each in later for reference in result_references(each.body)}
    prefixes = (f"{job.name}.{_BEST_TRIAL}", f"{job.name}.{MODEL_DIR}")
    return bool(_job(job).study_spec) and any(reference.startswith(prefixes) for reference in used)


def study_spec_of(job: ScheduledJob) -> Mapping[str, Any]:
    """Return the StudySpec of a tuning job, or of a pipeline that runs one."""
    study_spec = _job(job).study_spec
    assert study_spec is not None, job.name
    return study_spec


def _job(job: ScheduledJob) -> Job:
    return Job(KINDS[job.collection], job.body)


def _result_expression(index: int, job: ScheduledJob, result: str) -> str | None:
    variable, spec = f"job_{index}", _job(job)
    kind, _, name = result.removeprefix(_BEST_TRIAL).partition(".")
    if result == MODEL_DIR:
        trial = "${trial}" if spec.study_spec else ""
        folder = model_folder(spec.job_spec, trial)
        variables = {_RUN: "run", "trial": f"best_{index}.id"}
        return expression(folder, variables)[2:-1] if folder else None
    if spec.study_spec and result == f"{_BEST_TRIAL}id":
        return f"best_{index}.id"
    if spec.study_spec and result.startswith(_BEST_TRIAL) and kind in ("parameters", "metrics") and name:
        return f"best_{index}.{kind}[{quote_literal(name)}]"
    field = BACKING_TUNING_JOB if spec.study_spec else "backingCustomJob"
    fields = {"name": "name", "backingJob": f"trainingTaskMetadata.{field}", "model": "modelToUpload.name"}
    return f"{variable}.{fields[result]}" if result in fields else None


def _name_run(window: timedelta) -> Steps:
    execution = '${sys.get_env("GOOGLE_CLOUD_WORKFLOW_EXECUTION_ID")}'
    stamp = '${text.replace_all(text.substring(time.format(started), 0, 19), ":", "-")}'
    run = '${stamp + "-" + text.substring(execution, 0, 8)}'
    since = f"${{time.format(started - {window.total_seconds():g})}}"
    names = [{"execution": execution}, {"started": "${sys.now()}"}, {"stamp": stamp}, {"run": run}, {"since": since}]
    return [{"name_the_run": {"assign": [*names, {"nothing": []}]}}]


def _end_if_redelivered(schedule: ScheduleRequest, place: Place) -> Steps:
    """End if this is a second delivery: of the same time, another execution is at work or has submitted its first job.

    An execution that began long ago counts too, unless runs may overlap: between two jobs of its run no job runs.
    The jobs themselves are looked for as well, for an execution that has failed after it; one that has succeeded just
    now may have submitted a job that is not listed yet.
    """
    times = {"own": "own.startTime", "since": "since"}
    recent = 'startTime<"${own}" AND startTime>"${since}"'
    earlier = recent if schedule.overlap == "allow" else 'startTime<"${own}"'
    under_way = expression(f'state="ACTIVE" AND {earlier}', times)
    done = expression(f'state="SUCCEEDED" AND {recent}', times)
    first = schedule.jobs[0]
    url, created = f"{place.location_url}/{first.collection}", _recent_jobs(schedule, first)
    own_url = f'${{"{place.executions_url}/" + execution}}'
    one = {"pageSize": 1, "fields": "executions/name"}
    submitted = {"filter": created, "pageSize": 1, "fields": f"{first.collection}/name"}
    return [
        {"get_own_execution": read_step("own", own_url, fields="startTime")},
        {"list_active": read_step("active", place.executions_url, filter=under_way, **one)},
        _end_if_any("active", "executions", "another execution of this schedule is under way"),
        {"list_done": read_step("done_before", place.executions_url, filter=done, **one)},
        _end_if_any("done_before", "executions", "this time has been delivered before"),
        {"list_submitted": read_step("submitted", url, **submitted)},
        _end_if_any("submitted", first.collection, "this time has been delivered before"),
    ]


def _end_if_overlapping(schedule: ScheduleRequest, place: Place) -> Steps:
    """End if a job of the schedule has not ended, and fail if it has not for so long that it hangs.

    A run that ends has succeeded, so that a job that hangs would silence its schedule and nobody were told.
    """
    steps: Steps = []
    for collection in dict.fromkeys(job.collection for job in schedule.jobs):
        prefix = "PIPELINE_STATE_" if collection == TRAINING_PIPELINE.collection else "JOB_STATE_"
        ended = sorted(state for state in TERMINAL_STATES if state.startswith(prefix))
        conditions = [f'labels.{SCHEDULE_LABEL}="{schedule.id}"', *(f'state!="{state}"' for state in ended)]
        running, url = " AND ".join(conditions), f"{place.location_url}/{collection}"
        hours = max(max_hours(job) for job in schedule.jobs if job.collection == collection)
        times = [{"unended": running}, {"then": f"${{time.format(started - {hours * 3600})}}"}]
        hanging = {
            "filter": '${unended + " AND create_time<\\"" + then + "\\""}',
            "pageSize": 1,
            "fields": f"{collection}(name,displayName)",
        }
        at_work, result = {"filter": running, "pageSize": 1, "fields": f"{collection}/name"}, f"running_{collection}"
        steps += [
            {f"begin_{collection}": {"assign": times}},
            {f"list_hanging_{collection}": read_step("hanging", url, **hanging)},
            _raise_if_hanging(collection, hours),
            {f"list_running_{collection}": read_step(result, url, **at_work)},
            _end_if_any(result, collection, "the last run is still under way"),
        ]
    return steps


def _raise_if_hanging(collection: str, hours: int) -> dict[str, Any]:
    first = f"hanging.{collection}[0]"
    reason = f" has not ended in {hours} hours; no run begins before it has: cancel it"
    error = {"message": f'${{{first}.displayName + "{reason}"}}', "job": f"${{{first}.name}}"}
    condition = f'${{len(default(map.get(hanging, "{collection}"), nothing)) > 0}}'
    return {f"raise_if_hanging_{collection}": {"switch": [{"condition": condition, "raise": error}]}}


def _end_if_any(answer: str, list_key: str, reason: str) -> dict[str, Any]:
    condition = f'${{len(default(map.get({answer}, "{list_key}"), nothing)) > 0}}'
    result = {"run": "${run}", "skipped": reason}
    return {f"end_if_any_{answer}": {"switch": [{"condition": condition, "return": result}]}}


def _submit(schedule: ScheduleRequest, index: int, place: Place) -> dict[str, Any]:
    job = schedule.jobs[index]
    args = {
        "job": job.name,
        "url": f"{place.location_url}/{job.collection}",
        "collection": job.collection,
        "filter": _recent_jobs(schedule, job),
        "body": to_expressions(job.body, expressions(schedule, index)),
    }
    return {f"submit_{index}": {"call": _SUBMIT_JOB, "args": args, "result": f"job_{index}"}}


def submitted(source: Any) -> Iterator[tuple[str, Kind, Mapping[str, Any]]]:
    """Yield the name, the kind and the request of each job that a parsed source submits, with expressions in it."""
    if isinstance(source, Mapping):
        if source.get("call") == _SUBMIT_JOB:
            args = source["args"]
            yield args["job"], KINDS[args["collection"]], args["body"]
        source = [*source.values()]
    if isinstance(source, list):
        for each in source:
            yield from submitted(each)


def _wait(schedule: ScheduleRequest, index: int, place: Place) -> dict[str, Any]:
    """Return the step that waits for the end of a job before the next one is submitted."""
    job, waited = schedule.jobs[index], [max_hours(each) for each in schedule.jobs[:-1]]
    url = f'${{"{place.api_url}" + job_{index}.name}}'
    pause = max(MIN_LAST_PAUSE_SECONDS, math.ceil(sum(waited) * 3600 / MAX_LOOKS))
    later = schedule.jobs[index + 1].name
    wait = wait_step(f"job_{index}", url, job.name, later, job.collection, waited[index], pause)
    return {f"wait_{index}": wait}


def _recent_jobs(schedule: ScheduleRequest, job: ScheduledJob) -> str:
    """Return the expression of the filter for the jobs of a schedule that are not older than the redelivery window."""
    labels = f'labels.{SCHEDULE_LABEL}="{schedule.id}" AND labels.{NAME_LABEL}="{job.body["labels"][NAME_LABEL]}"'
    return expression(f'{labels} AND create_time>"${{since}}"', {"since": "since"})


def _find_best_trial(index: int, job: ScheduledJob, place: Place) -> dict[str, Any]:
    name = f"job_{index}.name"
    if KINDS[job.collection] == TRAINING_PIPELINE:
        name = f"job_{index}.trainingTaskMetadata.{BACKING_TUNING_JOB}"
    metric = steps.metric_args(study_spec_of(job))
    args = {"job": job.name, "url": f'${{"{place.api_url}" + {name}}}', **metric}
    return {f"find_best_trial_{index}": {"call": "find_best_trial", "args": args, "result": f"best_{index}"}}


def to_expressions(value: Any, variables: Mapping[str, str]) -> Any:
    """Return a request with an expression in place of each text that has placeholders; all else stays as it is.

    `variables` has the expression of each placeholder: `{"run.id": "run"}`.
    """
    return interpolation.map_texts(value, lambda text: expression(text, variables) if "${" in text else text)


def expression(text: str, variables: Mapping[str, str]) -> str:
    """Return the expression that yields a text once its placeholders are known: `${"gs://b/" + run}`."""
    parts: list[str] = []
    for index, part in enumerate(_PLACEHOLDER.split(text)):
        if index % 2:
            parts.append(variables[part])
        elif part:
            parts.append(quote_literal(part))
    return f"${{{' + '.join(parts)}}}"


def unknown_placeholders(text: str, variables: Mapping[str, str]) -> list[str]:
    """Return what Workflows would evaluate in a text although it is no placeholder: each `${` that is not known."""
    rest = _PLACEHOLDER.sub(lambda match: "" if match[1] in variables else match[0], text)
    return [rest[start.start() :][:_SHOWN] for start in re.finditer(r"\$\{", rest)]


def quote_literal(text: str) -> str:
    """Return a text as a literal in an expression."""
    return json.dumps(text, ensure_ascii=False)


def request_violations(schedule: ScheduleRequest) -> Iterator[Violation]:
    """Find the texts that a workflow cannot send, by the name of the job and the field in it.

    A preview reports what Workflows would refuse or misread, so that no run fails by it.
    """
    for index, job in enumerate(schedule.jobs):
        variables = expressions(schedule, index)
        for path, text in _texts(job.body, (job.name,)):
            if unknown := unknown_placeholders(text, variables):
                yield (
                    path,
                    f'"{unknown[0]}" would be evaluated by Workflows, which has no escape; move it into the image',
                )
            elif (size := len(text.encode())) > MAX_TEXT_BYTES:
                yield path, f'"{text[:_MAX_SHOWN]}…" has {size} bytes; Workflows allows {MAX_TEXT_BYTES}: shorten it'
            elif "${" in text and (length := len(expression(text, variables))) > (limit := MAX_EXPRESSION_LENGTH):
                reason = f"becomes an expression of {length} characters, and Workflows allows {limit}"
                yield path, f'"{text[:_MAX_SHOWN]}…" {reason}; shorten it, or pass the reference as a text of its own'
        if uses_best_trial(schedule, job) and (metrics := steps.unsupported_metrics(study_spec_of(job))):
            reason = "a workflow finds the best trial by one metric only"
            yield (job.name, "studySpec", "metrics"), f"has {metrics}, and {reason}; refer to no result of its trials"


def length_violation(schedule: ScheduleRequest) -> str | None:
    """Return what is wrong with how long a run may wait for its jobs, None if an execution can last as long."""
    hours = sum(max_hours(job) for job in schedule.jobs[:-1])
    if hours <= MAX_EXECUTION_HOURS:
        return None
    reason = f"a run may wait {hours // 24} days for its jobs, and Workflows ends an execution after a year"
    return f"{reason}; shorten scheduling.timeout, or give some of the jobs a schedule of their own"


def size_violation(source: str) -> str | None:
    """Return what is wrong with the size of a source, None if Workflows takes it."""
    size = len(source.encode())
    if size <= MAX_SOURCE_BYTES:
        return None
    advice = "shorten arguments, or give each job a schedule of its own"
    return f"its workflow has {size} bytes, and Workflows allows {MAX_SOURCE_BYTES}; {advice}"


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(child, (*path, key))
