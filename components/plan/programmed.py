"""Program: the jobs that a Python program makes, judged together before any of them is submitted; and Foundation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Protocol

import pulumi

from vertex_api.errors import first_problems
from vertex_api.job import Job
from vertex_api.names import Kind, did_you_mean, join_names
from vertex_api.schedules import ScheduleRequest
from vertex_api.validation.formats import Violation

from ..errors import DeclarationErrors, Problem
from ..runtime import sdk
from ..runtime.resource import PerRun, has_output, when_known
from ..schema import formats, interpolation, shapes
from .plan import Plan
from .training import (
    LIFECYCLE,
    NOT_KNOWN,
    Defaults,
    Spec,
    Timetable,
    Training,
    parse_spec,
    place,
    title,
)

_TABLES = ("secrets", interpolation.JOBS)
Results = Mapping[str, Sequence[str] | None]
"""By name of a job whose results are used: the names of its results, None if they are not known yet."""


class Foundation(Protocol):
    """The ground that a target provides to images, packages and jobs.

    It is a protocol: any object with these attributes is one.
    """

    @property
    def image_uri_prefix(self) -> str:
        """What image URIs begin with."""

    @property
    def full_location_name(self) -> str:
        """Where jobs live, such as `//local/projects/P/locations/R`."""

    @property
    def defaults(self) -> Defaults:
        """What jobs have where they say nothing."""

    @property
    def tensorboard_name(self) -> pulumi.Input[str] | None:
        """The name of a TensorBoard that is created here, for jobs that refer to it."""

    @property
    def image_builder_config(self) -> Mapping[str, Any] | None:
        """What builds images: None for this machine, or `{"cloudBuild": {…}}`.

        That has the fields of `shapes.CloudBuild`, the `project` of builds and a `sourceFolder` in a bucket.
        """

    @property
    def image_dependencies(self) -> Sequence[pulumi.Resource]:
        """What images are built after."""

    @property
    def job_dependencies(self) -> Sequence[pulumi.Resource]:
        """What jobs are submitted after."""

    @property
    def program(self) -> "Program":
        """What judges the jobs that a program makes by the rules of the stack: `Program(settings.plan)`."""

    def create_schedule(
        self, name: str, request: pulumi.Input[ScheduleRequest], opts: pulumi.ResourceOptions
    ) -> pulumi.Output[Mapping[str, Any]]:
        """Create what runs a schedule as the target has them, and return its status, that of `Schedule`."""


_programs: "PerRun[list[Program]]" = PerRun()
"""Those of the stacks of a run, whose sums are limited together."""
_foundation: PerRun[Foundation] = PerRun()
"""The foundation that a run of a program offers its resources."""


def offer_foundation(foundation: Foundation) -> None:
    """Let resources that are given no foundation take this one, unless another one has been offered before."""
    _foundation.get(lambda: foundation)


def default_foundation() -> Foundation:
    """Return the foundation that is offered; else that of the stack's configuration, made once in a run."""
    return _foundation.get(_create_foundation)


def _create_foundation() -> Foundation:
    package = __package__.rpartition(".")[0]  # of a higher floor, and only for programs without a TrainingStack
    made: Foundation = import_module(f"{package}.program").create_default_foundation()
    return made


def join(program: "Program") -> None:
    """Let the jobs of a stack count in the sums of all stacks of this run."""
    _programs.get(list).append(program)


def require_sums(plan: Plan) -> None:
    """Raise DeclarationErrors if the jobs of another stack of the program, and those so far, are too many together."""
    others = [each.plan for each in _programs.get(list)]
    if others and (problems := [*plan.sum_problems(others)]):
        raise DeclarationErrors(problems)


class Program:
    """Collects the problems of all jobs that a program makes, and keeps the jobs from being submitted.

    A preview registers all jobs, those with problems with an unknown spec, and fails once all specs are known that a
    preview can know. An update registers no job as long as the program has problems. A spec with outputs is checked
    when those are known, and always before its job is submitted.
    """

    def __init__(self, plan: Plan) -> None:
        #: What is called with the plan of all jobs whose specs are known: at the end of a preview without problems, and
        #: in an update before one of them is registered. It may raise a `pulumi.RunError`.
        self.on_valid: Callable[[Plan], object] = lambda _: None
        #: The URIs, without tags, of the images that the program builds.
        self.built: set[str] = set()
        #: The URIs of those images, and by URI the arguments of the packages that it uploads.
        self.images: set[str] = set()
        self.packages: dict[str, shapes.PythonPackage] = {}
        #: The jobs that have been asked for a result, by name.
        self.offered: dict[str, Any] = {}
        self._declared = plan
        self._trainings: dict[tuple[str, str], Training] = {}
        self._timetables: list[Timetable] = []
        self._problems: list[Problem] = []
        self._sum_problems: list[Problem] = []
        self._has_new_jobs = self._is_shown_with_errors = False
        self._refusal: pulumi.RunError | None = None
        self._unknown: dict[str, None] = {}
        self._awaited: list[pulumi.Output[Any]] = []
        self._end_of_preview: pulumi.Output[None] | None = None

    @property
    def plan(self) -> Plan:
        """All jobs that the stack declares or the program has made so far, as far as they are known."""
        return self._declared.with_program([*self._trainings.values()], self._timetables, self.built)

    @property
    def runs_relabelled(self) -> bool:
        """Whether an edit of labels or a display name runs a job again."""
        return bool(self._declared.stack.get("relabel") == "run")

    def make(
        self,
        kind: Kind,
        name: str,
        spec: Any,
        lifecycle: Mapping[str, Any],
        secrets: Iterable[str],
        results: Results,
        *,
        is_scheduled: bool = False,
    ) -> Training:
        """Return a job, and record every problem that it has; then its spec is None.

        `secrets` are the names of those that it is given, `results` those of the jobs that it may refer to. Of a spec
        that has outputs of other resources in it only the references are checked at once: it is an output too. A job
        that `is_scheduled` is one of a Schedule, which alone submits it.
        """
        refused = {
            key: each.in_program for key, each in shapes.LIFECYCLE.items() if each.in_program and key in lifecycle
        }
        own = {key: value for key, value in lifecycle.items() if key not in refused}
        own |= {"run": "scheduled"} if is_scheduled else {}
        problems: list[Violation] = []
        if problem := formats.output_name_problem(name):
            problems.append(((), problem))
        problems += [
            ((LIFECYCLE, key), f"is for files of declarations: in a program {advice}")
            for key, advice in refused.items()
        ]
        references = first_problems(_reference_violations(spec, [*secrets], results))
        at = place(title(kind, name))
        is_late = has_output(spec)
        training, wrong = Training.parse(kind, name, NOT_KNOWN if is_late else spec, own, at)
        problems += [(each.path, each.message) for each in wrong]
        is_valid = self._record(training, [*problems, *references])
        later: Spec = self._read_when_known(training, spec) if is_late else None
        if is_valid:
            return replace(training, spec=later) if is_late else training
        return replace(training, spec=later, lifecycle={})

    def _read_when_known(self, training: Training, spec: Any) -> Spec:
        def read_known(known: Any) -> Job | None:
            self._unknown.pop(training.title, None)
            job, wrong = parse_spec(training.kind, known, training.lifecycle)
            whole = replace(training, spec=job)
            return job if self._record(whole, [(each.path, each.message) for each in wrong], is_late=True) else None

        known: pulumi.Output[Job | None] = pulumi.Output.from_input(spec).apply(read_known)
        self._unknown[training.title] = None
        self._awaited.append(known)
        return known

    def _record(self, training: Training, violations: Sequence[Violation], *, is_late: bool = False) -> bool:
        """Record a job, its `violations` and the rules that it breaks. Return whether it is valid.

        The lifecycle of a late one, whose spec has become known, has been checked already.
        """
        plan = replace(self._declared, built=frozenset(self.built)) if self.built else self._declared
        known = {path for path, _ in violations}
        found = [*violations, *(each for each in plan.job_violations(training) if each[0] not in known)]
        if is_late:
            found = [each for each in found if each[0][:1] != (LIFECYCLE,)]
        if training.spec:
            self._trainings[training.kind.type, training.name] = training
            self._has_new_jobs = True
        self.refuse(training.place(path, message) for path, message in found)
        return not found

    def schedule(self, timetable: Timetable) -> None:
        """Record when jobs run that have been made."""
        self._timetables.append(timetable)

    def refuse(self, problems: Iterable[Problem]) -> None:
        """Record problems, and let a preview end with all that the program has."""
        self._problems += problems
        if self._problems and not self._is_shown_with_errors:
            self._is_shown_with_errors = True
            sdk.show_with_errors(lambda: self._refusal or DeclarationErrors(self._problems))
        if self._end_of_preview is None and pulumi.runtime.is_dry_run():
            self._end_of_preview = pulumi.Output.from_input(self._end())

    def fields(self, spec: Spec, upstream: Sequence[pulumi.Resource]) -> pulumi.Input[Any]:
        """Return the fields that a job is registered with, failing in an update if any job of the program is invalid.

        In a preview they wait for no other job, and are unknown if the spec is invalid.
        """
        if pulumi.runtime.is_dry_run():
            return when_known(lambda known: known.fields if known else pulumi.Output.from_input(pulumi.UNKNOWN), spec)

        def check(spec_and_urns: Sequence[Any]) -> Mapping[str, Any] | None:
            known: Job | None = spec_and_urns[0]
            self._check()
            return known.fields if known else None

        # An apply runs after the program's own statements, so all jobs that those create are recorded.
        # A program that ends while resources are being registered can crash, so those that the job needs come first.
        return pulumi.Output.all(spec, *(resource.urn for resource in upstream)).apply(check)

    async def _end(self) -> None:
        """Fail at the end of a preview with all problems, or report."""
        while self._awaited:
            await self._awaited.pop().future()
        self._end_of_preview = None  # a job that an apply creates after this is a reason to end once more
        if self._unknown:
            pulumi.log.info(
                f"not known in this preview: the specs of {join_names([*self._unknown])}. "
                "They are validated during the update, each before its job is submitted"
            )
        self._check()

    def _check(self) -> None:
        """Raise a `pulumi.RunError` if one job or all together break a rule; else call `on_valid`."""
        if self._refusal:
            raise self._refusal
        plan = self.plan if self._has_new_jobs else None
        if plan:
            others = [each.plan for each in _programs.get(list) if each is not self]
            self._sum_problems = [*plan.sum_problems(others)]
        try:
            if problems := [*self._problems, *self._sum_problems]:
                raise DeclarationErrors(problems)
            if plan:
                self._has_new_jobs = False
                self.on_valid(plan)
        except pulumi.RunError as refusal:
            self._refusal = refusal
            raise


def _reference_violations(spec: Any, secrets: Sequence[str], results: Results) -> Iterator[Violation]:
    """Find references that are not closed, or that lead to no secret, job or result that the job has been given."""
    unclosed = dict(interpolation.unclosed(spec))
    yield from unclosed.items()
    yield from interpolation.shell_violations(spec, lambda _: _TABLES, {"secrets": secrets})
    for path, reference in interpolation.references(spec):
        table, _, name = reference.partition(".")
        if path in unclosed:
            continue
        if table not in _TABLES:
            yield path, interpolation.not_allowed(reference, _TABLES, path)
        elif table == "secrets":
            if name not in secrets:
                suggestion = did_you_mean(name, secrets)
                yield path, f"${{{reference}}} is not among the secrets of this job{suggestion}"
        else:
            job, result = interpolation.split_result(name, results)
            if job not in results:
                yield path, f"${{{reference}}} is of none of the jobs of this job{did_you_mean(job, results)}"
            elif interpolation.is_own_metric(result):
                yield path, interpolation.unknown_result(name, job, result, ())
            elif (known := results[job]) is not None and result not in known:
                yield path, interpolation.unknown_result(name, job, result, known)
