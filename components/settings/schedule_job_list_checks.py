"""Checks of declared schedules: the jobs that they name, and the order in which those refer to one another."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from vertex_api.messages import KeyPath
from vertex_api.names import did_you_mean
from vertex_api.validation.formats import Violation

from ..jobs.references import JobViolation, ResultReferences
from ..schema import interpolation
from ..schema.declared_job import DeclaredJob
from ..schema.declared_schedule import list_job_names
from ..schema.interpolation import split_result

NamedSchedule = tuple[str, Sequence[str]]
"""A schedule's name and those of its jobs, as they are written."""


def find_missing_or_repeated_job_name_violations(value: Mapping[str, object]) -> Iterator[Violation]:
    """Find what is wrong with the names of jobs in a schedule by themselves: none, twice, or under both keys."""
    names = list_job_names(value)
    if value.get("job") is not None and value.get("jobs") is not None:
        yield ("jobs",), "is given beside job; keep one of the two"
    elif not names:
        yield (), "needs a job: write job: NAME, or jobs: [NAME, …] for several, one after another"
    for index, name in enumerate(names):
        if name in names[:index]:
            yield ("jobs", index), f'"{name}" is in the list already'


def find_job_name_violations(
    value: object, jobs: Mapping[str, DeclaredJob], invalid_lifecycles: Collection[str]
) -> Iterator[Violation]:
    """Find the jobs of a schedule, as it is written, that are not declared, or that `pulumi up` submits.

    `invalid_lifecycles` are the names of jobs of which it is not known who submits them.
    """
    is_alone = isinstance(value, Mapping) and isinstance(value.get("job"), str)
    for index, name in enumerate(list_job_names(value)):
        path: KeyPath = ("job",) if is_alone and index == 0 else ("jobs", index - is_alone)
        if interpolation.is_unresolved(name):
            continue
        if name not in jobs:
            yield path, f'"{name}" is not a declared job{did_you_mean(name, jobs)}'
        elif not jobs[name].is_scheduled and name not in invalid_lifecycles:
            yield path, f'"{name}" is a job that `pulumi up` submits; give it lifecycle: {{run: scheduled}}'


def find_unscheduled_job_and_reference_violations(
    jobs: Sequence[DeclaredJob], schedules: Iterable[NamedSchedule], result_references: ResultReferences
) -> Iterator[JobViolation]:
    """Find scheduled jobs that no schedule names, and references that no run can follow.

    A run knows the results of its own earlier jobs alone, and `pulumi up` those of the jobs that it submits.
    """
    by_name = {job.name: job for job in jobs}
    schedules = list(schedules)
    named = {name for _, job_names in schedules for name in job_names}
    for job in jobs:
        if job.is_scheduled and job.name not in named:
            yield job, ("lifecycle", "run"), "no schedule names this job; add it to one under schedules"
        for path, reference in result_references.get(job.name, ()):
            upstream, _ = split_result(reference, by_name)
            if upstream not in by_name:
                continue
            if job.is_scheduled:
                for message in _iterate_schedule_order_messages(job.name, upstream, schedules):
                    yield job, path, f"${{{interpolation.JOBS}.{reference}}}: {message}"
            elif by_name[upstream].is_scheduled:
                message = "runs by a schedule only, so `pulumi up` does not know its results"
                yield job, path, f"${{{interpolation.JOBS}.{reference}}}: {upstream} {message}"
        for index, name in enumerate(() if job.is_scheduled else job.lifecycle.get("after", ())):
            if name in by_name and by_name[name].is_scheduled:
                yield job, ("lifecycle", "after", index), f'"{name}" runs by a schedule only'


def _iterate_schedule_order_messages(
    job_name: str, upstream_name: str, schedules: Iterable[NamedSchedule]
) -> Iterator[str]:
    for schedule, names in schedules:
        if job_name in names and upstream_name not in names[: names.index(job_name)]:
            order = ", ".join([upstream_name, *(name for name in names if name != upstream_name)])
            yield f"schedule {schedule} has not run {upstream_name} before {job_name}; write jobs: [{order}]"
