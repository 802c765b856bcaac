"""Schedule: jobs that run again at the times of a cron expression, as a component for all targets."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Required, TypedDict

import pulumi

from vertex_api.job import Job
from vertex_api.messages import show_path
from vertex_api.names import Kind
from vertex_api.schedules import Overlap, ScheduleRequest
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import canonicalize

from ..errors import DeclarationErrors, Problem
from ..jobs.job_argument_validation import canonicalize_spec_and_lifecycle_and_record_problems
from ..jobs.resources import (
    CustomJob,
    CustomJobArgs,
    HyperparameterTuningJob,
    HyperparameterTuningJobArgs,
    TrainingPipeline,
    TrainingPipelineArgs,
)
from ..runtime.foundation import Foundation
from ..runtime.program_job_validation import format_kind_and_name
from ..runtime.resource import when_known
from ..schema import formats, scheduled_job_rules, shapes
from .lines import next_times_line
from .scheduled_job_requests import build_scheduled_jobs

_SCHEDULE = Kind("schedules", "Schedule", "")
"""Names schedules in messages, as the kinds of the API name jobs."""
_MAX_ID_LENGTH = 63
_DIGEST_LENGTH = 8
_MAX_SLUG_LENGTH = _MAX_ID_LENGTH - _DIGEST_LENGTH - 1


@dataclass(frozen=True)
class JobTemplate:
    """A job of a schedule, which `pulumi up` does not submit: the `type` of its resource, and the API's fields."""

    type: type[CustomJob] | type[HyperparameterTuningJob] | type[TrainingPipeline]
    spec: CustomJobArgs | HyperparameterTuningJobArgs | TrainingPipelineArgs | pulumi.Input[Job]


class ScheduleArgs(TypedDict, total=False):
    """`cron` has five fields and follows the clocks of `time_zone`, by default UTC.

    A run submits the `jobs` in their order, one after another; a later one may refer to results of an earlier one, such
    as `${jobs.train.model}`. Unless `overlap` is "allow", there is no run while the last one is under way. A `paused`
    schedule stays and does not run.
    """

    cron: Required[str]
    jobs: Required[Mapping[str, JobTemplate]]
    time_zone: str
    paused: bool
    overlap: Overlap


class Schedule(pulumi.ComponentResource):
    """Jobs that run again and again: on Google Cloud by Cloud Scheduler and Workflows, locally by the emulator.

        jobs = {"train": JobTemplate(CustomJob, {"displayName": "train", "jobSpec": {…}})}
        Schedule("nightly", {"cron": "0 2 * * *", "time_zone": "Europe/Berlin", "jobs": jobs}, foundation=foundation)

    `status` has the `nextTime` in UTC unless it is paused, and the `lastRun` if there was one: its `runId`, `state`
    and `modelDirs` by job. On Google Cloud it has the `lastExecution` too, which has no run if it fails early: its
    `state`, its `start`, and its `error` or why it was `skipped`. The status is that of the last `pulumi up` that
    changed the schedule, or of the last refresh.
    """

    status: pulumi.Output[Mapping[str, Any]]

    def __init__(
        self,
        name: str,
        args: ScheduleArgs,
        opts: pulumi.ResourceOptions | None = None,
        *,
        foundation: Foundation,
    ) -> None:
        cron, jobs, time_zone = args["cron"], args["jobs"], args.get("time_zone", "UTC")
        paused, overlap = args.get("paused", False), args.get("overlap", "skip")
        super().__init__("vertex-training:index:Schedule", name, None, opts)
        fields = {"cron": cron, "timeZone": time_zone, "paused": paused, "overlap": overlap}
        violations = _argument_violations(name, fields, jobs)
        if violations:
            foundation.program_jobs.apply_rules_record_and_get_validity(_SCHEDULE, name, None, violations)
        elif pulumi.runtime.is_dry_run():
            pulumi.log.info(next_times_line(cron, time_zone, paused, datetime.now(UTC)), self)
        id_ = schedule_id(pulumi.get_project(), pulumi.get_stack(), name)
        specs = _specs(name, jobs, foundation)

        def build_request(known_specs: Mapping[str, Any], tensorboard_name: str | None) -> Any:
            """Return the ScheduleRequest; for invalid jobs one unknown in a preview, or failing in an update."""
            if violations or not all(known_specs.values()):
                return foundation.program_jobs.get_fields_once_all_jobs_are_valid(None, foundation.job_dependencies)
            canonical = {job: _require_schedulable(name, job, spec) for job, spec in known_specs.items()}
            scheduled = build_scheduled_jobs(name, id_, canonical, foundation, tensorboard_name)
            return ScheduleRequest(id_, cron, time_zone, paused, overlap, scheduled)

        request = when_known(build_request, specs, foundation.tensorboard_name)
        upstream = pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
        ours = pulumi.ResourceOptions(parent=self, depends_on=[*foundation.job_dependencies])
        self.status = foundation.create_schedule(name, request, pulumi.ResourceOptions.merge(ours, upstream))
        self.register_outputs({"status": self.status})


def schedule_id(project: str, stack: str, name: str) -> str:
    """Return the id of a schedule, which names its Pulumi project, stack and itself: `team_dev_nightly`.

    It is a label's value, and an id of Cloud Scheduler and of Workflows: at most 63 lower-case letters, digits, `-` and
    `_`, a letter first. A digest follows where this changes a name, so that no two schedules have one id.
    """
    parts = (project, stack, name)
    slug = _slug(*parts)
    if slug == "_".join(parts) and len(slug) <= _MAX_ID_LENGTH:
        return slug
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{slug[:_MAX_SLUG_LENGTH]}-{digest}"


def schedule_id_prefix(project: str, stack: str) -> str:
    """Return what the ids of all schedules of a stack begin with."""
    return _slug(project, stack, "")[:_MAX_SLUG_LENGTH]


def _slug(*parts: str) -> str:
    slug = "_".join(re.sub(r"[^a-z0-9-]", "-", part.lower()) for part in parts)
    return slug if slug[:1].isalpha() else f"s{slug}"


def _argument_violations(name: str, fields: Mapping[str, Any], jobs: Mapping[str, JobTemplate]) -> list[Violation]:
    """Find what is wrong with the arguments of a schedule, apart from its jobs' specs."""
    _, problems = canonicalize(shapes.Schedule, {**fields, "jobs": [*jobs]})
    violations: list[Violation] = [(problem.path, problem.message) for problem in problems]
    if problem := formats.find_output_name_problem(name):
        violations.append(((), problem))
    if not jobs:
        violations.append((("jobs",), "needs a job"))
    return violations


def _specs(
    schedule_name: str, templates: Mapping[str, JobTemplate], foundation: Foundation
) -> dict[str, pulumi.Input[Job | None]]:
    """Return the specs of jobs by name: those of declarations as they are, those of programs validated."""
    specs: dict[str, pulumi.Input[Job | None]] = {}
    result_names_by_job: dict[str, Any] = {}
    for job_name, template in templates.items():
        spec: Any = template.spec
        if not isinstance(spec, Job | pulumi.Output):
            spec = _validate(f"{schedule_name}.{job_name}", template, foundation, result_names_by_job)
        specs[job_name] = spec
        is_known = isinstance(spec, Job)
        result_names_by_job[job_name] = spec.result_names if is_known else None
    return specs


def _validate(
    name: str, template: JobTemplate, foundation: Foundation, result_names_by_job: Mapping[str, Any]
) -> pulumi.Input[Job | None]:
    kind, program_jobs = template.type.kind, foundation.program_jobs
    spec, _ = canonicalize_spec_and_lifecycle_and_record_problems(
        kind, name, template.spec, {}, foundation=foundation, secrets={}, result_names_by_job=result_names_by_job
    )
    if isinstance(spec, Job):
        is_valid = program_jobs.apply_rules_record_and_get_validity(
            kind, name, None, scheduled_job_rules.find_unschedulable_content_violations(spec)
        )
        spec = spec if is_valid else None
    if pulumi.runtime.is_dry_run():
        return spec
    registered = program_jobs.get_fields_once_all_jobs_are_valid(spec, foundation.job_dependencies)
    return when_known(lambda fields: fields and Job(kind, fields), registered)


def _require_schedulable(schedule_name: str, job_name: str, spec: Job) -> Job:
    """Return a spec without violations that a schedule alone has. Raises DeclarationErrors.

    Only specs with outputs of other resources in them can have one here: all others were checked before.
    """
    place = format_kind_and_name((spec.kind.type, f"{schedule_name}.{job_name}"))
    problems = [
        Problem(place, show_path(path), message)
        for path, message in scheduled_job_rules.find_unschedulable_content_violations(spec)
    ]
    if problems:
        raise DeclarationErrors(problems)
    return spec
