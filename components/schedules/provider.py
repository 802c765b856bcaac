"""The resources behind a Schedule: EmulatorSchedule on the target local, ScheduleStatus on Google Cloud.

The status says when a schedule runs next, what its last run was, and how the last execution of its workflow ended. A
run is what its jobs are. An execution that submits none, such as one that is refused, is seen by itself only.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api.job import MODEL_DIR, TUNING_JOB, job_results, parse_job, stored_job
from vertex_api.messages import show_path
from vertex_api.names import KINDS, SUCCEEDED_STATES, TERMINAL_STATES
from vertex_api.schedules import NAME_LABEL, RUN_ID_LENGTH, SCHEDULE_LABEL, ScheduleRequest

from .. import providers
from ..errors import SubmitFailed
from ..jobs import enforcement
from ..jobs.lookup import tuning_job
from ..plan.training import job_label
from ..runtime import engine, holders, target
from ..runtime.emulator import request
from ..runtime.resource import DynamicResource, Provider, item, when_known
from ..runtime.target import LOCAL_PREFIX, Target, one_line_errors

_IDENTITY = ("parent", "scheduleId")
_REQUEST = ("cron", "timeZone", "paused", "overlap", "jobs")
Job = Mapping[str, Any]
_UNENDED_EXECUTIONS = ("ACTIVE", "QUEUED")
_RUN_ID = re.compile(rf"-(\d{{4}}-\d\d-\d\dT[\w-]{{{RUN_ID_LENGTH - 11}}})$")


class EmulatorScheduleProvider(Provider):
    """Puts a schedule to the emulator. What it keeps is read again, so a refresh shows what others have changed."""

    input_names = (*_IDENTITY, *_REQUEST)

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        inputs = {name: news[name] for name in self.input_names if name in news}
        if _moved_from(olds, news):
            holders.current().goes_on(news["scheduleId"], engine.requested_urn())
        return dynamic.CheckResult(inputs, [*_check_jobs(inputs)])

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        body = _body(props)
        answer = request("PUT", _path(props), body, f"{props['scheduleId']}: not scheduled")
        if answer is None:
            raise SubmitFailed(f"{props['scheduleId']}: not scheduled: this emulator has no schedules; update it")
        holders.current().take(engine.requested_urn(), props["scheduleId"])
        return dynamic.CreateResult(props["scheduleId"], {**props, "status": emulator_status(answer)})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        answer = request("GET", _path(props), None, f"{id_}: not read")
        if answer is None:
            return dynamic.ReadResult(None, {})
        actual = {name: answer.get(name, props.get(name)) for name in _REQUEST}
        actual["jobs"] = _body(actual)["jobs"]
        return self.read_result(id_, {**props, **actual}, status=emulator_status(answer))

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Delete the schedule, unless it goes on under another URN. Jobs of its runs stay."""
        others = holders.current().release(engine.requested_urn(), id_)
        if others.holder:
            holders.current().goes_on(id_, others.holder)
        elif others.is_known:
            request("DELETE", _path(props), None, f"{id_}: not deleted")
        else:
            print(f"{id_}: stays: the state cannot be read, and may have it elsewhere", flush=True)  # noqa: T201


class EmulatorSchedule(DynamicResource):
    """A schedule of the emulator in `parent`, `//local/projects/P/locations/R`. `status` is that of `Schedule`."""

    output_names = ("status",)
    status: pulumi.Output[Mapping[str, Any]]

    def __init__(
        self, name: str, parent: str, request: pulumi.Input[ScheduleRequest], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        fields: Any = when_known(lambda known: {"scheduleId": known.id, **known.to_json()}, request)
        inputs = {key: item(fields, key) for key in ("scheduleId", *_REQUEST)}
        ours = pulumi.ResourceOptions(replace_on_changes=list(_IDENTITY), delete_before_replace=True)
        super().__init__(
            providers.EmulatorSchedule(),
            name,
            {"parent": parent, **inputs, "status": None},
            pulumi.ResourceOptions.merge(ours, opts),
        )


def _moved_from(olds: Mapping[str, Any], news: Mapping[str, Any]) -> str:
    """Return the URN under which the state has the schedule of a resource that is new; "" if there is none."""
    held, urn = holders.current(), engine.requested_urn()
    if olds:
        held.see(urn)
    return "" if olds else held.moved_from(urn, str(news.get("scheduleId")))


def _check_jobs(inputs: Mapping[str, Any]) -> Iterator[dynamic.CheckFailure]:
    """Find the guardrails that the jobs of a schedule break, as far as they are known."""
    jobs = inputs.get("jobs")
    for index, each in enumerate(jobs if isinstance(jobs, list) else []):
        job, _ = parse_job(KINDS[each["collection"]], each["body"], allowed=each.get("allow", ()))
        for path, message in enforcement.violations(job, inputs["parent"], each["name"]) if job else ():
            yield dynamic.CheckFailure(show_path(("jobs", index, "body", *path)), message)


def emulator_status(emulator_answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a schedule from the emulator's answer, as `Schedule.status` describes it."""
    times, runs = emulator_answer.get("nextTimes", []), emulator_answer.get("runs", [])
    next_time = {"nextTime": times[0]} if times and not emulator_answer.get("paused") else {}
    return next_time | ({"lastRun": {key: runs[0][key] for key in ("runId", "state", "modelDirs")}} if runs else {})


def _path(props: Mapping[str, Any]) -> str:
    return f"{props['parent'].removeprefix(LOCAL_PREFIX)}/schedules/{props['scheduleId']}"


def _body(props: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the emulator takes; the engine hands whole numbers over as floats."""
    jobs = [{**job, "body": stored_job(KINDS[job["collection"]], job["body"]).fields} for job in props["jobs"]]
    return {**{name: props[name] for name in _REQUEST}, "jobs": jobs}


class ScheduleStatusProvider(Provider):
    """Looks at the schedule's jobs and executions when it is created, changed or refreshed; it creates nothing."""

    input_names = ("parent", "scheduleId", "cron", "timeZone", "paused", "jobs")

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        failures = []
        if other := _moved_from(olds, news):
            where = holders.tail(other).replace(f"${ScheduleStatus.__name__}", "")
            reason = (
                f"{news['scheduleId']}: is {where} in the state, and Google Cloud has its workflow once; to go on with "
                "it, give the Schedule aliases=[pulumi.Alias(parent=…)] with the parent that it had, None for the stack"
            )
            failures.append(dynamic.CheckFailure("scheduleId", reason))
        return dynamic.CheckResult({name: news[name] for name in self.input_names if name in news}, failures)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(props["scheduleId"], {**props, "status": _status(props)})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        return self.read_result(id_, props, status=_status(props))


class ScheduleStatus(DynamicResource):
    """The `status` of a schedule, as `Schedule` describes it. `parent` is the full name of its jobs' location."""

    output_names = ("status",)
    status: pulumi.Output[Mapping[str, Any]]

    def __init__(
        self, name: str, parent: str, request: pulumi.Input[ScheduleRequest], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        fields: Any = when_known(_inputs, request)
        inputs = {key: item(fields, key) for key in ScheduleStatusProvider.input_names[1:]}
        super().__init__(providers.ScheduleStatus(), name, {"parent": parent, **inputs, "status": None}, opts)


def last_run(jobs: Iterable[Job]) -> tuple[str, list[Job]]:
    """Return the id of the last run and its jobs, an empty id if there was none.

    `jobs` are those with the schedule's label; their display names end with the ids of their runs.
    """
    runs: dict[str, list[Job]] = {}
    for job in jobs:
        if match := _RUN_ID.search(job["displayName"]):
            runs.setdefault(match[1], []).append(job)
    last = max(runs, default="")
    return last, runs.get(last, [])


def run_status(
    run_id: str, jobs: Iterable[Job], expected_job_names: Iterable[str], executions: Iterable[Job] = ()
) -> dict[str, Any]:
    """Return what a status says of a run: it has succeeded when all expected jobs have, and has failed when one has.

    It has failed too when its execution, if that is one of `executions`, has ended and submits no further job.
    """
    has_ended = any(_began(run_id, each) and each["state"] not in _UNENDED_EXECUTIONS for each in executions)
    names = {job_label(name): name for name in expected_job_names}
    by_name = {names[label]: job for job in jobs if (label := job["labels"].get(NAME_LABEL)) in names}
    succeeded = {name: job for name, job in by_name.items() if job["state"] in SUCCEEDED_STATES}
    state = "RUNNING"
    if any(job["state"] in TERMINAL_STATES for name, job in by_name.items() if name not in succeeded):
        state = "FAILED"
    elif succeeded.keys() == set(names.values()):
        state = "SUCCEEDED"
    elif has_ended and by_name.keys() != set(names.values()):
        state = "FAILED"
    folders = {name: job_results(job).get(MODEL_DIR) for name, job in succeeded.items()}
    return {"runId": run_id, "state": state, "modelDirs": {name: folder for name, folder in folders.items() if folder}}


def execution_status(execution: Job) -> dict[str, Any]:
    """Return what a status says of an execution: its `state` and `start`, its `error`, or why it was `skipped`."""
    status = {"state": execution["state"], "start": execution["startTime"]}
    if "error" in execution:
        status["error"] = _read_error(execution["error"].get("payload", ""))
    if skipped := _parse_map(execution.get("result", "")).get("skipped"):
        status["skipped"] = skipped
    return status


def _read_error(payload: str) -> str:
    """Return the message of an error that a workflow ended with, and that of the answer which is the cause."""
    error = _parse_map(payload)
    answer = error.get("answer") or error.get("body") or error.get("error")
    cause = answer.get("error", answer) if isinstance(answer, Mapping) else answer
    cause = cause.get("message") if isinstance(cause, Mapping) else cause
    return ": ".join(str(part) for part in (error.get("message"), cause) if part) or payload


def _parse_map(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


def _began(run_id: str, execution: Job) -> bool:
    return str(execution["name"]).rpartition("/")[2].startswith(run_id.rpartition("-")[2])


def next_time(cron: str, time_zone: str, paused: bool, now: datetime) -> str | None:
    """Return when a schedule runs next, in UTC as RFC 3339; None for a paused one."""
    # Imported here, because most stacks have no schedules.
    from vertex_api.cron import cron_times

    if paused:
        return None
    time = next(cron_times(cron, time_zone, now), None)
    return f"{time:%Y-%m-%dT%H:%M:%SZ}" if time else None


def _status(props: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a schedule, by one list call for each collection of its jobs, and one for executions.

    Raises SubmitFailed.
    """
    with one_line_errors(f"{props['scheduleId']}: its runs are not read"):
        api = target.resolve(props["parent"])
        filter_ = f'labels.{SCHEDULE_LABEL}="{props["scheduleId"]}"'
        jobs = [
            job
            for collection in sorted({job["collection"] for job in props["jobs"]})
            for job in api.client.find(KINDS[collection], api.parent, filter_)
        ]
        run_id, last_jobs = last_run(jobs)
        attached = [_with_tuning_job(api, job) for job in last_jobs]
        executions = api.client.list_executions(f"{api.parent}/workflows/{props['scheduleId']}")
    time = next_time(props["cron"], props["timeZone"], props["paused"], datetime.now(UTC))
    status: dict[str, Any] = {"nextTime": time} if time else {}
    if run_id:
        status["lastRun"] = run_status(run_id, attached, [job["name"] for job in props["jobs"]], executions)
    if executions:
        status["lastExecution"] = execution_status(executions[0])
    return status


def _with_tuning_job(api: Target, job: Job) -> Job:
    """Return a pipeline with the tuning job that it runs, which has the best trial; any other job as it is."""
    found = tuning_job(api, job)
    return job if found is job else {**job, TUNING_JOB: found}


def _inputs(request: ScheduleRequest) -> dict[str, Any]:
    jobs = [{"name": job.name, "collection": job.collection} for job in request.jobs]
    fields = request.to_json()
    return {"scheduleId": request.id, **{key: fields[key] for key in ("cron", "timeZone", "paused")}, "jobs": jobs}
