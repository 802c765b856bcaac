"""Schedule: jobs that run again at the times of a cron expression, as a component for all targets."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Required, TypedDict

import pulumi

from vertex_api.job import Job
from vertex_api.names import Kind, closest_name, did_you_mean
from vertex_api.schedules import Overlap, ScheduleRequest
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import MUST_BE_OBJECT, canonicalize

from ..jobs.job import (
    CustomJob,
    HyperparameterTuningJob,
    TrainingPipeline,
)
from ..plan.arguments import checked, read_arguments
from ..plan.programmed import Foundation, default_foundation
from ..plan.training import Timetable, Training, place, title
from ..runtime.resource import refuse_options, when_known
from ..schema import formats, shapes

if TYPE_CHECKING:
    from ..args import CustomJobArgs, HyperparameterTuningJobArgs, TrainingPipelineArgs

_SCHEDULE = Kind("schedules", "Schedule", "")
"""Names schedules in messages, as the kinds of the API name jobs."""
_MAX_ID_LENGTH = 63
_DIGEST_LENGTH = 8
_MAX_SLUG_LENGTH = _MAX_ID_LENGTH - _DIGEST_LENGTH - 1


@dataclass(frozen=True)
class JobTemplate:
    """A job of a schedule, which `pulumi up` does not submit."""

    type: type[CustomJob] | type[HyperparameterTuningJob] | type[TrainingPipeline]
    """The class of the job: `CustomJob`, `HyperparameterTuningJob` or `TrainingPipeline`."""
    spec: "CustomJobArgs | HyperparameterTuningJobArgs | TrainingPipelineArgs | Training"
    """The API's fields, as that class takes them."""
    lifecycle: "shapes.Lifecycle | None" = None
    """Its `allow` lists places that a rule of the service refuses, and runs have all the same."""


class ScheduleArgs(TypedDict, total=False):
    """When the jobs of a `Schedule` run, and which."""

    cron: Required[str]
    """When it runs: minute, hour, day of the month, month and day of the week."""
    jobs: Required[Mapping[str, JobTemplate]]
    """What a run submits, in this order, one after another.

    A later job may refer to the results of an earlier one, such as `${jobs.train.model}`.
    """
    time_zone: str
    """The clocks that `cron` follows, such as `Europe/Berlin`; by default UTC."""
    paused: bool
    """Whether the schedule stays without running."""
    overlap: Overlap
    """`allow` begins a run while the last one is under way; `skip`, the default, does not."""


class Schedule(pulumi.ComponentResource):
    """Jobs that run again and again: on Google Cloud by Cloud Scheduler and Workflows, locally by the emulator.

        jobs = {"train": JobTemplate(CustomJob, {"displayName": "train", "jobSpec": {…}})}
        Schedule("nightly", {"cron": "0 2 * * *", "time_zone": "Europe/Berlin", "jobs": jobs}, foundation=foundation)

    - `args`: when it runs, and which jobs (`ScheduleArgs`).
    - `opts`: Pulumi's options. Let the schedule depend on the images that its jobs run.
    - `foundation`: where it and its jobs run; by default as for `CustomJob`.

    Output: `status`.

    Errors: what breaks a rule is reported as for `CustomJob`, with the problems of all other jobs. A run that fails
    does not fail `pulumi up`: `status` has it.
    """

    status: pulumi.Output[Mapping[str, Any]]
    """The `nextTime` in UTC unless it is paused, and the `lastRun` if there was one.

    A run has its `runId`, its `state` and `modelDirs` by job. On Google Cloud there is the `lastExecution` too, which
    has no run if it fails early: its `state`, its `start`, and its `error` or why it was `skipped`. All this is as of
    the last `pulumi up` that changed the schedule, or of the last refresh.
    """

    @checked
    def __init__(
        self,
        name: str,
        args: ScheduleArgs,
        opts: pulumi.ResourceOptions | None = None,
        *,
        foundation: Foundation | None = None,
    ) -> None:
        plain = {key: each for key, each in args.items() if key != "jobs"} if isinstance(args, Mapping) else args
        read_arguments(plain, place(title(_SCHEDULE, name)), lambda _: _key_violations(args))
        foundation = foundation or default_foundation()
        cron, jobs, time_zone = args["cron"], args["jobs"], args.get("time_zone", "UTC")
        paused, overlap = args.get("paused", False), args.get("overlap", "skip")
        refuse_options(f'Schedule "{name}"', opts)
        super().__init__("vertex-training:index:Schedule", name, None, opts)
        fields = {"cron": cron, "timeZone": time_zone, "paused": paused, "overlap": overlap}
        violations = _argument_violations(name, fields, jobs)
        id_ = schedule_id(pulumi.get_project(), pulumi.get_stack(), _first_name(name, opts))
        trainings = _trainings(name, jobs, foundation)
        timetable = Timetable(name, cron, tuple(each.name for each in trainings.values()), time_zone, paused, overlap)
        if not violations and pulumi.runtime.is_dry_run():
            pulumi.log.info(timetable.upcoming(datetime.now(UTC)), self)
        if violations:
            at = place(title(_SCHEDULE, name))
            foundation.program.refuse([at(*violation) for violation in violations])
        elif not any(isinstance(template.spec, Training) for template in jobs.values()):
            foundation.program.schedule(timetable)

        def build_request(known: Mapping[str, Job | None], tensorboard: str | None) -> Any:
            """Return the ScheduleRequest; for invalid jobs one unknown in a preview, or failing in an update."""
            valid = {job: spec for job, spec in known.items() if spec}
            if violations or len(valid) < len(known):
                return foundation.program.fields(None, foundation.job_dependencies)
            allowed = {job: each.allowed for job, each in trainings.items()}
            requests = timetable.requests(id_, valid, foundation.defaults, tensorboard, allowed)
            return ScheduleRequest(id_, cron, time_zone, paused, overlap, requests)

        request = when_known(build_request, _specs(trainings, jobs, foundation), foundation.tensorboard_name)
        upstream = pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
        ours = pulumi.ResourceOptions(parent=self, depends_on=[*foundation.job_dependencies])
        self.status = foundation.create_schedule(name, request, pulumi.ResourceOptions.merge(ours, upstream))
        self.register_outputs({"status": self.status})


def _first_name(name: str, opts: pulumi.ResourceOptions | None) -> str:
    """Return the name that a schedule had first, the last of its aliases: its runs have the label of that."""
    aliases: Any = (opts.aliases if opts else None) or ()
    names = [each.name for each in aliases if isinstance(each, pulumi.Alias) and isinstance(each.name, str)]
    return names[-1] if names else name


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


def _key_violations(args: Mapping[str, Any]) -> Iterator[Violation]:
    """Find arguments that are missing, unknown or of another type than what reads them expects."""
    known = ScheduleArgs.__annotations__
    unknown = [key for key in args if key not in known]
    yield from (((key,), f"unknown field{did_you_mean(key, known)}") for key in unknown)
    missing = {"cron", "jobs"} - args.keys() - {closest_name(key, known) for key in unknown}
    yield from (((key,), "is required") for key in sorted(missing))
    jobs = args.get("jobs", {})
    if not isinstance(jobs, Mapping):
        yield ("jobs",), MUST_BE_OBJECT
    else:
        wrong = [job for job, template in jobs.items() if not isinstance(template, JobTemplate)]
        yield from ((("jobs", job), "must be a JobTemplate, of the job's class and its fields") for job in wrong)


def _argument_violations(name: str, fields: Mapping[str, Any], jobs: Mapping[str, JobTemplate]) -> list[Violation]:
    """Find what is wrong with the arguments of a schedule, apart from its jobs' specs."""
    _, problems = canonicalize(shapes.Schedule, {**fields, "jobs": [*jobs]})
    violations: list[Violation] = [(problem.path, problem.message) for problem in problems]
    if problem := formats.output_name_problem(name):
        violations.append(((), problem))
    if not jobs:
        violations.append((("jobs",), "needs a job"))
    return violations


def _trainings(schedule: str, templates: Mapping[str, JobTemplate], foundation: Foundation) -> dict[str, Training]:
    """Return the jobs by name: those of declarations as they are, those of programs validated."""
    trainings: dict[str, Training] = {}
    results: dict[str, Sequence[str] | None] = {}
    for name, template in templates.items():
        spec: Any = template.spec
        if not isinstance(spec, Training):
            kind = template.type.kind
            spec = foundation.program.make(
                kind, f"{schedule}.{name}", spec, template.lifecycle or {}, (), results, is_scheduled=True
            )
        trainings[name] = spec
        results[name] = spec.spec.result_names if isinstance(spec.spec, Job) else None
    return trainings


def _specs(
    trainings: Mapping[str, Training], templates: Mapping[str, JobTemplate], foundation: Foundation
) -> dict[str, Any]:
    """Return the specs of jobs by name. In an update, those of a program are known once all its jobs are valid."""
    specs: dict[str, Any] = {}
    for name, training in trainings.items():
        specs[name] = training.spec
        if not isinstance(templates[name].spec, Training) and not pulumi.runtime.is_dry_run():
            fields = foundation.program.fields(training.spec, foundation.job_dependencies)
            specs[name] = when_known(lambda fields, kind=training.kind: fields and Job(kind, fields), fields)
    return specs
