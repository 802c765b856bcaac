"""The request that creates or changes a schedule: its shape, its rules, and those of the jobs in it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Required

from vertex_api.names import KINDS, either
from vertex_api.scalars import Boolean, String
from vertex_api.schedules import ScheduledJob, ScheduleRequest
from vertex_api.types import Message
from vertex_api.validation.shape import FieldProblem, canonicalize
from vertex_emulator.errors import ApiError
from vertex_emulator.http.invalid_request_errors import build_invalid_argument_error
from vertex_emulator.names import Location
from vertex_emulator.schedules.job_methods_protocol import JobMethods

_ID = re.compile(r"[A-Za-z0-9_-]{1,500}")
_SAMPLE_RUN_ID = "2026-11-22T02-00-00-1a2b3c4d"


class _JobMessage(Message, total=False):
    name: Required[String]
    collection: Required[String]
    body: Required[dict[str, Any]]


class _ScheduleMessage(Message, total=False):
    cron: Required[String]
    timeZone: String  # noqa: N815 - as in the request
    paused: Boolean
    overlap: Literal["skip", "allow"]
    jobs: Required[list[_JobMessage]]


def require_schedule_id(schedule_id: str) -> str:
    """Return an id that a schedule can have. Raises ApiError."""
    if _ID.fullmatch(schedule_id):
        return schedule_id
    message = (
        f"The schedule's id is {schedule_id[:100]!a}; it must be 1 to 500 letters, digits, hyphens or underscores."
    )
    raise ApiError("INVALID_ARGUMENT", message)


def parse_schedule_request(
    jobs: JobMethods, location: Location, schedule_id: str, body: Mapping[str, Any]
) -> ScheduleRequest:
    """Return the schedule that a request describes. Raises ApiError with the problems of its fields or of a job.

    A job that refers to results of earlier ones is checked when a run submits it.
    """
    fields, problems = canonicalize(_ScheduleMessage, body)
    if not problems:
        problems = [*_iterate_field_problems(fields)]
    if problems:
        raise build_invalid_argument_error(problems)
    scheduled_jobs = tuple(ScheduledJob(**job) for job in fields["jobs"])
    for index, job in enumerate(scheduled_jobs):
        _validate_job_body_unless_it_has_references(jobs, location, index, job)
    paused, overlap = fields.get("paused", False), fields.get("overlap", "skip")
    return ScheduleRequest(schedule_id, fields["cron"], fields.get("timeZone", "UTC"), paused, overlap, scheduled_jobs)


def _iterate_field_problems(fields: Mapping[str, Any]) -> Iterator[FieldProblem]:
    # Imported here because an emulator without schedules needs no rules of cron.
    from vertex_api.cron import cron_problem, zone_problem
    from vertex_api.schedules import result_references

    if problem := cron_problem(fields["cron"]):
        yield FieldProblem(("cron",), problem)
    if problem := zone_problem(fields.get("timeZone", "UTC")):
        yield FieldProblem(("timeZone",), problem)
    if not fields["jobs"]:
        yield FieldProblem(("jobs",), "must have at least one job")
    names: list[str] = []
    for index, job in enumerate(fields["jobs"]):
        path = ("jobs", index)
        if job["collection"] not in KINDS:
            yield FieldProblem((*path, "collection"), f'is "{job["collection"]}"; it must be {either(KINDS)}')
        if not job["name"] or job["name"] in names:
            yield FieldProblem((*path, "name"), f'is "{job["name"]}"; it must be a name that no other job has')
        for reference in result_references(job["body"]):
            if not any(reference.startswith(f"{name}.") for name in names):
                message = f"refers to ${{jobs.{reference}}}, which is not a result of an earlier job of the schedule"
                yield FieldProblem((*path, "body"), message)
        names.append(job["name"])


def _validate_job_body_unless_it_has_references(
    jobs: JobMethods, location: Location, index: int, job: ScheduledJob
) -> None:
    from vertex_api.schedules import fill_run_id, result_references

    if result_references(job.body):
        return
    try:
        jobs.validate_job_request(KINDS[job.collection], location, fill_run_id(job.body, _SAMPLE_RUN_ID))
    except ApiError as error:
        path = f"jobs[{index}].body"
        violations = [(f"{path}.{field}", text) for field, text in error.violations]
        raise ApiError(error.status, f"{path} ({job.name}): {error.message}", violations) from error
