"""Training: a job of a stack, whether it is declared, made by a program, scheduled, or read back from a preview.

What a job can have beside the API's message is here, in one place each: its lifecycle (`shapes.Lifecycle` has its
options), what it takes from its stack (`Defaults`), and when it runs again (`Timetable`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, cast
from zoneinfo import ZoneInfo

import pulumi
from pydantic.alias_generators import to_camel

from vertex_api.errors import Refusal
from vertex_api.job import MODEL_DIR, Job, parse_job
from vertex_api.messages import KeyPath, show_path
from vertex_api.names import Kind, closest_name
from vertex_api.schedules import NAME_LABEL, RUN_ID, SCHEDULE_LABEL, Overlap, ScheduledJob
from vertex_api.validation.shape import FieldProblem, canonicalize

from ..errors import Problem
from ..schema import interpolation, shapes

LIFECYCLE, REHEARSE, SPEC, FORMERLY = "lifecycle", "rehearse", "spec", "formerly"
"""The keys of a declared job that are no fields of the API's message."""
ALLOW = "allow"
"""The key of a lifecycle that lists what the rules of the service refuse, and is submitted all the same."""
Place = Callable[[KeyPath, str], Problem]
"""Where a job stands: it makes a problem of a path in the job and a message."""
NOT_KNOWN: Any = object()
"""Stands for the body of a job that is read later."""
Spec = Job | pulumi.Output[Job | None] | None


@dataclass(frozen=True)
class Training:
    """One job.

    `spec` is None if it has problems, and an output as long as it has outputs of other resources in it. In a
    declaration's, references to images, packages, secrets and jobs are left. `referenced` are the jobs whose results
    it refers to. `region` is where a job of a preview runs; elsewhere its stack says so. `rehearse` makes it small.
    `data` are the names of the declared data that it refers to, `formerly` those that the job had before.
    """

    kind: Kind
    name: str
    spec: Spec
    lifecycle: shapes.Lifecycle = field(default_factory=lambda: shapes.Lifecycle())
    referenced: frozenset[str] = frozenset()
    place: Place = field(default=lambda path, message: Problem("", show_path(path), message), compare=False)
    region: str = ""
    rehearse: shapes.Rehearse = field(default_factory=lambda: shapes.Rehearse(), compare=False)
    data: frozenset[str] = frozenset()
    formerly: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls, kind: Kind, name: str, body: Any, lifecycle: Any, place: Place
    ) -> "tuple[Training, list[FieldProblem]]":
        """Return the job that somebody writes, and what is wrong with its lifecycle and its fields by themselves.

        A body that is `NOT_KNOWN` yet makes no spec.
        """
        valid, misshapen = canonicalize(shapes.Lifecycle, lifecycle)
        own = cast(shapes.Lifecycle, {} if misshapen else valid)
        problems = [FieldProblem((LIFECYCLE, *each.path), each.message) for each in misshapen]
        spec, wrong = (None, []) if body is NOT_KNOWN else parse_spec(kind, body, own)
        return cls(kind, name, spec, own, place=place), problems + wrong

    @property
    def job(self) -> Job:
        """The spec of a job without problems, once it is known."""
        assert isinstance(self.spec, Job), self.name
        return self.spec

    @property
    def title(self) -> str:
        """How messages name a job that has no place in a file: `CustomJob "train"`."""
        return title(self.kind, self.name)

    @property
    def is_adopted(self) -> bool:
        """Whether it names a job that exists already, instead of one to submit."""
        return "adopt" in self.lifecycle

    @property
    def allowed(self) -> Sequence[str]:
        """The places of what the rules of the service refuse, and the job has all the same."""
        return self.lifecycle.get("allow", ())

    @property
    def is_scheduled(self) -> bool:
        """Whether schedules alone submit it, and `pulumi up` does not."""
        return "run" in self.lifecycle

    @property
    def upstream(self) -> frozenset[str]:
        """The names of the jobs that must have succeeded before it is submitted."""
        return self.referenced.union(self.lifecycle.get("after", ()))

    @property
    def on_delete(self) -> str:
        """What happens to the job when it leaves its stack: `delete`, `cancel` or `keep`."""
        return deletion_policy(self.lifecycle, self.is_adopted)

    def references(self) -> dict[str, set[str]]:
        """Return the names that the references in its spec have, by table."""
        names: dict[str, set[str]] = {"images": set(), "packages": set(), "secrets": set(), interpolation.JOBS: set()}
        for _, reference in interpolation.references(self.job.fields):
            table, _, name = reference.partition(".")
            names[table].add(name)
        return names


def parse_spec(
    kind: Kind, body: Any, lifecycle: Mapping[str, Any] | None = None
) -> tuple[Job | None, list[FieldProblem]]:
    """Return the canonical form of a job with a valid lifecycle, None if it has problems, and those.

    One to adopt has a name already. What `allow` lists that lifts none of the problems is one of them: it is misspelt.
    """
    own = lifecycle or {}
    places = own.get(ALLOW, ())
    job, problems = parse_job(
        kind,
        body,
        is_name_required="adopt" not in own,
        is_unresolved_value=interpolation.is_unresolved,
        allowed=[place for place in places if not _is_own(place)],
    )
    return job, [*_wrong_places(places, problems), *problems]


def _is_own(place: str) -> bool:
    """Return whether a field at the top of a job is a key of declarations, or one that is misspelt."""
    return to_camel(place) in shapes.LIFECYCLE or closest_name(place, (LIFECYCLE, REHEARSE, SPEC, FORMERLY)) is not None


def _wrong_places(allowed: Sequence[str], problems: Sequence[FieldProblem]) -> Iterator[FieldProblem]:
    """Find the places that lift none of the problems which a job is refused for."""
    others = {problem.place: problem for problem in problems}
    liftable = [place for place, problem in others.items() if isinstance(problem.message, Refusal)]
    for index, place in enumerate(allowed):
        closest = closest_name(place, liftable)
        if place in others:
            yield FieldProblem((LIFECYCLE, ALLOW, index), f'"{place}" cannot be lifted: that is no rule of the service')
        elif closest:
            yield FieldProblem((LIFECYCLE, ALLOW, index), f'"{place}" lifts nothing; did you mean {closest}?')


def title(kind: Kind, name: str) -> str:
    """Return how messages name a job or a schedule of a program: `CustomJob "train"`."""
    return f'{kind.type} "{name}"'


def place(text: str) -> Place:
    """Return the place that a text names: a job of a program, or a resource."""
    return lambda path, message: Problem(text, show_path(path), message)


def deletion_policy(lifecycle: Mapping[str, Any], is_adopted: bool) -> str:
    """Return what happens to a job that leaves its stack: `delete`, `cancel` or `keep`, the default of adopted jobs."""
    return str(lifecycle.get("onDelete", "keep" if is_adopted else shapes.LIFECYCLE["onDelete"].default))


@dataclass(frozen=True)
class Defaults:
    """What the jobs of a stack have where they say nothing."""

    folder: str
    """The `gs://` folder in which each run has a folder for its outputs."""
    job_spec: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a CustomJobSpec, such as `serviceAccount`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels, beside those of the job."""
    kms_key: str | None = None
    """The key that encrypts the job."""

    def complete(self, job: Job, folder: Callable[[Job, str], str]) -> Job:
        """Return a job with all that it leaves out, one replica a pool included.

        `folder` says where its outputs go: of the job, complete but for that, and the folder that it declares, or "".
        """
        job_spec = {**self.job_spec, **job.job_spec}
        pools = job_spec["workerPoolSpecs"]
        job_spec["workerPoolSpecs"] = [{"replicaCount": 1, **pool} if pool else pool for pool in pools]
        fields = replaced(job.fields, job.job_spec_path, job_spec)
        if self.labels:
            fields["labels"] = labels_of(job, self.labels)
        if self.kms_key is not None:
            fields.setdefault("encryptionSpec", {"kmsKeyName": self.kms_key})
        whole = Job(job.kind, fields)
        uri = folder(whole, job_spec.get("baseOutputDirectory", {}).get("outputUriPrefix", ""))
        job_spec = {**job_spec, "baseOutputDirectory": {"outputUriPrefix": uri}}
        return Job(job.kind, replaced(fields, job.job_spec_path, job_spec))


def labels_of(job: Job, stack: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that a job is submitted with, but for `job_rules.OWN_LABELS`: its own, and its stack's."""
    return {**stack, **job.fields.get("labels", {})}


def replaced(fields: Mapping[Any, Any], path: KeyPath, value: Any) -> dict[Any, Any]:
    """Return the fields of a job with another value at a path."""
    first, *rest = path
    return {**fields, first: replaced(fields[first], tuple(rest), value) if rest else value}


_SHOWN_TIMES = 3
_UPCOMING = {False: "next runs: ", True: "paused; without that, the next runs were: "}
"""What the line with the next times begins with, by whether the schedule is paused."""


def is_upcoming(text: str) -> bool:
    """Return whether a message of a preview is the line with the next times of a schedule."""
    return text.startswith(tuple(_UPCOMING.values()))


@dataclass(frozen=True)
class Timetable:
    """When a schedule runs, and its `jobs`, in the order in which a run submits them. It is valid."""

    name: str
    cron: str
    jobs: tuple[str, ...]
    time_zone: str = "UTC"
    paused: bool = False
    overlap: Overlap = "skip"
    formerly: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, fields: Mapping[str, Any]) -> "Timetable":
        """Return that of a canonical `shapes.Schedule`."""
        options = {"time_zone": "timeZone", "paused": "paused", "overlap": "overlap"}
        given = {argument: fields[key] for argument, key in options.items() if key in fields}
        return cls(name, fields["cron"], tuple(job_names(fields)), **given, formerly=tuple(fields.get(FORMERLY, ())))

    @property
    def runs_a_month(self) -> float:
        """How often it runs in a twelfth of an average year, paused or not."""
        # Imported here, because most stacks have no schedules.
        from vertex_api.cron import times_per_year

        return times_per_year(self.cron) / 12

    def upcoming(self, now: datetime) -> str:
        """Return the line of a preview with the next three times by the clocks of their zone."""
        # Imported here, because most stacks have no schedules.
        from vertex_api.cron import cron_times

        zone = ZoneInfo(self.time_zone)
        times = islice(cron_times(self.cron, self.time_zone, now), _SHOWN_TIMES)
        return _UPCOMING[self.paused] + ", ".join(f"{time.astimezone(zone):%a %Y-%m-%d %H:%M %Z}" for time in times)

    def requests(
        self,
        id_: str,
        jobs: Mapping[str, Job],
        defaults: Defaults,
        tensorboard: str | None = None,
        allowed: Mapping[str, Sequence[str]] | None = None,
    ) -> tuple[ScheduledJob, ...]:
        """Return the requests of the jobs, in their order: complete, and with a place for the id of each run.

        References to images and packages are resolved. For each run a job has a name and an output folder of its own.
        `tensorboard` is the name of the stack's TensorBoard, and `allowed` has by job what it lifts.
        """
        tables: dict[str, dict[str, str]] = {interpolation.JOBS: {}}
        if tensorboard:
            tables[interpolation.TENSORBOARD] = {"name": tensorboard}
        requests = []
        for name, job in jobs.items():
            whole = defaults.complete(
                job,
                lambda _, declared, name=name: (  # type: ignore[misc]
                    f"{declared.rstrip('/') or f'{defaults.folder}/{self.name}'}/{RUN_ID}/{name}"
                ),
            )
            labels = {SCHEDULE_LABEL: id_, NAME_LABEL: job_label(name)}
            fields = {
                **whole.fields,
                "displayName": f"{whole.fields['displayName']}-{RUN_ID}",
                "labels": {**whole.fields.get("labels", {}), **labels},
            }
            resolved = Job(job.kind, interpolation.resolve(fields, tables))
            if resolved.model_dir:
                tables[interpolation.JOBS][f"{name}.{MODEL_DIR}"] = resolved.model_dir
            requests.append(
                ScheduledJob(name, job.kind.collection, resolved.fields, tuple((allowed or {}).get(name, ())))
            )
        return tuple(requests)


def job_names(schedule: Any) -> list[str]:
    """Return the names of jobs in a schedule as it is written, valid or not."""
    if not isinstance(schedule, Mapping):
        return []
    names = schedule.get("jobs")
    listed = [schedule.get("job"), *(names if isinstance(names, list) else [])]
    return [name for name in listed if isinstance(name, str)]


def job_label(name: str) -> str:
    """Return the value of the label that names a job of a schedule."""
    return re.sub(r"[^a-z0-9_-]", "-", name)
