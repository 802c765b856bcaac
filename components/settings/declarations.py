"""Declarations: the images, packages, data, jobs and schedules of a stack, with vars filled in, and their problems."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from vertex_api import jobspec, types
from vertex_api.errors import Refusal, first_problems, too_many
from vertex_api.messages import KeyPath, message_fields, value_at
from vertex_api.names import KINDS, TRAINING_PIPELINE, Kind, did_you_mean
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import MUST_BE_OBJECT, canonicalize, unknown_field

from ..data.listing import uri_violations
from ..data.lock import Data
from ..errors import Problem
from ..images.declaration import image_violations
from ..jobs.references import link_jobs, order_violations
from ..packages import violations as package_violations
from ..plan.training import (
    FORMERLY,
    LIFECYCLE,
    NOT_KNOWN,
    REHEARSE,
    SPEC,
    Place,
    Timetable,
    Training,
    job_names,
    parse_spec,
)
from ..schema import interpolation, shapes
from ..schema.source import SourceFile
from . import builders
from .entries import SECTIONS, Entries, Entry

_JOB_TABLES = ("vars", "images", "packages", interpolation.DATA, "secrets", interpolation.JOBS)
_OWN_KEYS = (LIFECYCLE, REHEARSE, SPEC, FORMERLY)
_COMMAND_LINE = SourceFile("--set")
"""In place of the file, as the place of problems with its vars."""
_RESULT_AS_VALUE = "is known only after that job, so it can be used in texts only"
# In the API, the inputs of a pipeline's task are free JSON.
_TASK_INPUTS = (types.CustomJobSpec, types.HyperparameterTuningJob)
JobViolation = tuple[Training, KeyPath, str]
Names = Mapping[str, Collection[str] | None]
"""The names that are declared, by table; None for an invalid table, in which all names pass."""


@dataclass
class Declared:
    """What a stack declares, with vars filled in, and its `problems`. Invalid jobs have no spec.

    Of too many problems, the rest of the declarations is missing.
    """

    images: dict[str, shapes.Image] = field(default_factory=dict)
    packages: dict[str, shapes.PythonPackage] = field(default_factory=dict)
    data: dict[str, Data] = field(default_factory=dict)
    trainings: list[Training] = field(default_factory=list)
    timetables: list[Timetable] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    variables: Mapping[str, Any] = field(default_factory=dict)


def parse(
    entries: Entries, stack_file: SourceFile, stack: Mapping[str, Any], root: Path, given: Collection[str] = ()
) -> Declared:
    """Fill in the vars of all entries and validate them, each alone and the jobs together.

    `stack` has the values of the stack file by key, of which `vars`, `secrets`, `region` and `builder` count. `root` is
    the project's folder, in which images and packages must have their files. The vars that are `given` have the values
    of the option `--set`.
    """
    parser = _Parser(entries, stack_file, stack, root, given)
    for entry in (entry for section in SECTIONS[1:] for entry in entries[section].values()):
        if too_many(parser.declared.problems):
            return parser.declared  # what is not parsed would seem to be missing
        parser.parse(entry)
    if not too_many(parser.declared.problems):
        parser.check_together()
    return parser.declared


class _Parser:
    """Parses entries one by one into what is `declared`."""

    def __init__(
        self, entries: Entries, stack_file: SourceFile, stack: Mapping[str, Any], root: Path, given: Collection[str]
    ) -> None:
        self.declared = Declared()
        self._entries, self._stack_file, self._stack, self._root = entries, stack_file, stack, root
        self._resolved: list[Resolved] = []
        self._unknown_lifecycles: set[str] = set()
        """The jobs of which it is not known who submits them."""
        overrides = stack.get("vars") or {}
        is_valid = isinstance(overrides, Mapping)
        if not is_valid:
            self.declared.problems.append(stack_file.problem(("vars",), MUST_BE_OBJECT))
        self._own_vars = {
            name: Entry(_COMMAND_LINE if name in given else stack_file, "vars", name, value)
            for name, value in (overrides.items() if is_valid else ())
        }
        for entry in (*entries["vars"].values(), *self._own_vars.values()):
            if too_many(self.declared.problems):
                break
            self._refuse(entry, first_problems(_var_violations(entry.value)))
        variables = {name: entry.value for name, entry in {**entries["vars"], **self._own_vars}.items()}
        self.declared.variables = variables
        # Their URI depends on the region alone. Names of images are in lower case, so none can be equal.
        google_images = {"reductionServer": jobspec.reduction_server_image(stack.get("region", ""))}
        self._names: Names = {
            "vars": variables if is_valid else None,
            "images": [*entries["images"], *google_images],
            "packages": entries["packages"],
            interpolation.DATA: entries["data"],
            "secrets": stack.get("secrets", {}),
        }
        # A secret that only builds read may be in Secret Manager alone.
        remote = value_at(stack, ("builder", "cloudBuild", "secrets")) or {}
        self._image_names: Names = {**self._names, "secrets": {**remote, **stack.get("secrets", {})}}
        self._tables = {"vars": variables, "images": google_images, interpolation.DATA: {}}

    def _refuse(self, entry: Entry, violations: Iterable[Violation]) -> None:
        self.declared.problems += [entry.problem(*violation) for violation in violations]

    def parse(self, entry: Entry) -> None:
        """Parse an image, a package, data, a job or a schedule."""
        declared, root = self.declared, self._root
        each = resolve(entry, self._image_names if entry.section == "images" else self._names, self._tables)
        self._resolved.append(each)
        if entry.section == "images":
            image, violations = _read(each, shapes.Image, lambda image: image_violations(root, image))
            declared.images[entry.name] = image
            violations = violations or [*builders.image_violations(image, self._stack)]
        elif entry.section == "packages":
            package, violations = _read(each, shapes.PythonPackage, lambda package: package_violations(root, package))
            declared.packages[entry.name] = package
        elif entry.section == "data":
            fields, violations = _read(
                each, shapes.Data, lambda item: uri_violations(root, item["uri"], item.get("grant", False))
            )
            if not violations and not each.violations:
                item = Data(
                    entry.name,
                    fields["uri"],
                    fields.get("verify", "error"),
                    entry.problem,
                    _formerly(fields),
                    fields.get("grant", False),
                )
                declared.data[entry.name], self._tables[interpolation.DATA][entry.name] = item, item.uri
        elif entry.section == "schedules":
            timetable, violations = _timetable(each)
            declared.timetables += [timetable] if timetable else []
        else:
            training, violations = _training(each)
            declared.trainings.append(training)
            if any(path[:1] == (LIFECYCLE,) for path, _ in violations):
                self._unknown_lifecycles.add(entry.name)
        self._refuse(entry, [*each.violations, *violations])

    def check_together(self) -> None:
        """Check jobs and schedules with one another, link jobs to those that they refer to, and find unused vars."""
        declared, problems = self.declared, self.declared.problems
        trainings = declared.trainings
        problems += first_problems(self._wrongly_former())
        results = {each.entry.name: each.results for each in self._resolved if each.results}
        found: Iterable[JobViolation] = order_violations(trainings, results)
        problems += [job.place(path, message) for job, path, message in first_problems(found)]
        if self._entries["schedules"] or any(training.is_scheduled for training in trainings):
            written = [each for each in self._resolved if each.entry.section == "schedules"]
            problems += first_problems(_schedule_problems(written, trainings, results, self._unknown_lifecycles))
        if results and not problems:
            # A run of a schedule has folders of its own, which are known once it starts.
            linked = link_jobs([training for training in trainings if not training.is_scheduled], results)
            declared.trainings = [*linked, *(training for training in trainings if training.is_scheduled)]
        known = self._entries["vars"].keys() | set[str]().union(*(each.used_vars for each in self._resolved))
        for name in first_problems(self._own_vars.keys() - known):
            self._refuse(self._own_vars[name], [((), f"nothing uses it{did_you_mean(name, known)}")])
        sizes: list[tuple[Place, Any]] = [(each.place, each.rehearse) for each in trainings]
        sizes.append((self._stack_file.problem, self._stack.get(REHEARSE) or {}))
        for place, size in sizes:
            for name in first_problems(size.get("vars", {}).keys() - known):
                problems.append(place((REHEARSE, "vars", name), f"is no var{did_you_mean(name, known)}"))

    def _wrongly_former(self) -> Iterator[Problem]:
        """Find former names that are declared still, or that two of a kind claim: which of them goes on is not said."""
        claims: dict[tuple[str, str], str] = {}
        for entry in (entry for section in SECTIONS[1:] for entry in self._entries[section].values()):
            value = entry.value.get(FORMERLY) if isinstance(entry.value, Mapping) else None
            kinds = tuple(KINDS) if entry.section in KINDS else (entry.section,)
            for name in [value] if isinstance(value, str) else value if isinstance(value, list) else []:
                other = next((kind for kind in kinds if name in self._entries[kind]), None)
                if other and name != entry.name:  # its own: it was moved here by `pulumi state move`
                    place = self._entries[other][name].source.line((other, name))
                    message = f'"{name}" is declared, at {place}; formerly is for a name that is gone'
                    yield entry.problem((FORMERLY,), message)
                elif (first := claims.setdefault((kinds[0], str(name)), entry.name)) != entry.name:
                    yield entry.problem(
                        (FORMERLY,), f'"{name}" is what {first} was formerly; keep it in one of the two'
                    )


def _formerly(fields: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(fields.get(FORMERLY, ()))


def _var_violations(value: Any) -> Iterator[Violation]:
    for path, reference in (*interpolation.references(value), *interpolation.shell(value)):
        yield path, f"${{{reference}}} must be written where the var is used; vars hold plain values"
    yield from interpolation.unclosed(value)


@dataclass(frozen=True)
class Resolved:
    """The `value` of an entry with its vars filled in, the `used_vars`, and the `violations` of its references.

    `used_data` are the names of the data that it refers to.
    `results` are the references to results of jobs with their paths: `(("jobSpec", …), "tune.modelDir")`.
    """

    entry: Entry
    value: Any
    violations: list[Violation]
    used_vars: set[str]
    results: list[tuple[KeyPath, str]]
    used_data: frozenset[str]


def resolve(entry: Entry, names: Names, tables: interpolation.Tables) -> Resolved:
    """Fill in the references of an entry into `tables`, and check all others by the `names` that are declared."""
    unclosed = dict(interpolation.unclosed(entry.value))
    violations = first_problems(unclosed.items())
    used_vars, used_data, results = set[str](), set[str](), list[tuple[KeyPath, str]]()
    for path, reference in interpolation.references(entry.value):
        if path in unclosed:
            continue
        if too_many(violations):
            break
        table, _, name = reference.partition(".")
        allowed = _allowed_tables(entry.section, path)
        if table == "vars":
            used_vars.add(name)
        if table == interpolation.DATA:
            used_data.add(name)
        if table not in allowed:
            violations.append((path, interpolation.not_allowed(reference, allowed, path)))
        elif table == interpolation.JOBS:
            results.append((path, name))
        elif (known := names[table]) is not None and name not in known:
            violations.append((path, f"${{{reference}}} is not declared{did_you_mean(name, known)}"))
    bare = interpolation.shell_violations(entry.value, lambda path: _allowed_tables(entry.section, path), names)
    violations = first_problems([*violations, *bare])
    value = interpolation.resolve(entry.value, tables)
    return Resolved(entry, value, violations, used_vars, results, frozenset(used_data))


def _allowed_tables(section: str, path: KeyPath) -> tuple[str, ...]:
    """Return the tables that a reference at a path of an image, a package or a job may name.

    Secrets are for a container's environment and command line. All other fields end in plain places: names and labels
    in lists and links, output folders in outputs and logs.
    """
    if section in KINDS and path[:1] not in ((LIFECYCLE,), (REHEARSE,)):
        may_have_secrets = interpolation.is_command_line(path)
        return _JOB_TABLES if may_have_secrets else tuple(table for table in _JOB_TABLES if table != "secrets")
    return ("vars", "secrets") if section == "images" and path[:1] == ("secrets",) else ("vars",)


def _read(resolved: Resolved, shape: Any, rules: Callable[[Any], Iterable[Violation]]) -> tuple[Any, list[Violation]]:
    """Return an image, a package or data, and every rule that it breaks."""
    value, misshapen = canonicalize(shape, interpolation.expand(resolved.value, {}))
    return value, [(each.path, each.message) for each in misshapen] or list(rules(value))


def _timetable(resolved: Resolved) -> tuple[Timetable | None, list[Violation]]:
    """Return when a schedule runs, None if it is invalid, and every rule that it breaks by itself."""
    value = interpolation.expand(resolved.value, {})
    fields, misshapen = canonicalize(shapes.Schedule, value)
    violations: list[Violation] = [(each.path, each.message) for each in misshapen]
    if isinstance(value, Mapping) and not {("job",), ("jobs",)} & {path[:1] for path, _ in violations}:
        names = job_names(value)
        if value.get("job") is not None and value.get("jobs") is not None:
            violations.append((("jobs",), "is given beside job; keep one of the two"))
        elif not names:
            violations.append(((), "needs a job: write job: NAME, or jobs: [NAME, …] for several, one after another"))
        violations += [
            (("jobs", index), f'"{name}" is in the list already')
            for index, name in enumerate(names)
            if name in names[:index]
        ]
    return (None, violations) if violations else (Timetable.of(resolved.entry.name, fields), [])


def _training(resolved: Resolved) -> tuple[Training, list[Violation]]:
    """Return a job, without a spec if it is invalid, and all that is wrong with it by itself."""
    entry, declared = resolved.entry, resolved.value
    kind = KINDS[entry.section]
    if not isinstance(declared, Mapping):
        return Training(kind, entry.name, None, place=entry.problem), [((), MUST_BE_OBJECT)]
    lifecycle = {} if declared.get(LIFECYCLE) is None else declared[LIFECYCLE]
    if isinstance(lifecycle, Mapping) and "rerun" in lifecycle:  # the only free text: all others are names and numbers
        lifecycle = {**lifecycle, "rerun": interpolation.expand(lifecycle["rerun"], {})}
    training, problems = Training.parse(kind, entry.name, NOT_KNOWN, lifecycle, entry.problem)
    if training.allowed:  # as problems show the places, or without the section and the name of the job
        places = [place.removeprefix(f"{entry.section}.{entry.name}.") for place in training.allowed]
        training = replace(training, lifecycle={**training.lifecycle, "allow": places})
    written = {} if declared.get(REHEARSE) is None else declared[REHEARSE]
    size, misshapen = canonicalize(shapes.Rehearse, interpolation.expand(written, {}))
    former, wrong_names = canonicalize(shapes.Former, {FORMERLY: declared[FORMERLY]} if declared.get(FORMERLY) else {})
    # The fields of a spec file have been merged.
    body = {key: value for key, value in declared.items() if key not in _OWN_KEYS}
    if not training.is_adopted and not body.keys() & {"displayName", "display_name"}:
        body = {"displayName": entry.name, **body}
    spec, wrong = parse_spec(kind, body, training.lifecycle)
    if wrong:
        _quote_numbers(entry.value, body, [problem.path for problem in wrong])
        spec, wrong = parse_spec(kind, body, training.lifecycle)
    results = dict(resolved.results)
    violations: list[Violation] = [(problem.path, problem.message) for problem in problems]
    violations += [((REHEARSE, *each.path), each.message) for each in misshapen]
    violations += [(each.path, each.message) for each in wrong_names]
    for problem in wrong:
        message = problem.message
        if explained := _explain_unknown(kind, problem.path):
            message = Refusal(explained) if isinstance(message, Refusal) else explained
        if result := results.get(problem.path):
            message = f"${{{interpolation.JOBS}.{result}}} {_RESULT_AS_VALUE}"
        violations.append((problem.path, message))
    names = () if wrong_names else _formerly(former)
    training = replace(training, spec=spec, data=resolved.used_data, rehearse={} if misshapen else size, formerly=names)
    return training, violations


def _quote_numbers(source: Any, body: Any, paths: Iterable[KeyPath]) -> None:
    """Make numbers at those of `paths` texts where `source` is one reference: `args: ["${vars.n}"]`."""
    for *parents, last in interpolation.lone_paths(source).intersection(paths):
        holder = reduce(getitem, parents, body)
        if isinstance(holder[last], bool | int | float):
            holder[last] = interpolation.as_text(holder[last])


def _explain_unknown(kind: Kind, path: KeyPath) -> str | None:
    """Return the message for an unknown key at the top of a job, which says where it belongs; None for other paths."""
    name = to_camel(str(path[0])) if len(path) == 1 else ""
    if not name or name in message_fields(kind.typed_dict):
        return None
    if name in message_fields(shapes.Lifecycle):
        return f"unknown field; it belongs under {LIFECYCLE}"
    if kind == TRAINING_PIPELINE and any(name in message_fields(inputs) for inputs in _TASK_INPUTS):
        return f"unknown field; it belongs under {kind.spec_field}"
    return unknown_field(kind.typed_dict, path, _OWN_KEYS)


def _schedule_problems(
    schedules: Sequence[Resolved],
    trainings: Sequence[Training],
    results: Mapping[str, Sequence[tuple[KeyPath, str]]],
    unknown_lifecycles: Collection[str],
) -> Iterator[Problem]:
    """Find what is wrong between schedules and jobs; both are checked by themselves already.

    A run knows the results of its own earlier jobs alone, and `pulumi up` those of the jobs that it submits. Of the
    jobs with `unknown_lifecycles` it is not known who submits them.
    """
    jobs = {training.name: training for training in trainings}
    for each in schedules:
        is_alone = isinstance(each.value, Mapping) and isinstance(each.value.get("job"), str)
        for index, name in enumerate(job_names(each.value)):
            path: KeyPath = ("job",) if is_alone and index == 0 else ("jobs", index - is_alone)
            if interpolation.is_unresolved(name):
                continue
            if name not in jobs:
                message = f'"{name}" is not a declared job{did_you_mean(name, jobs)}'
                yield each.entry.problem(path, message)
            elif not jobs[name].is_scheduled and name not in unknown_lifecycles:
                message = f'"{name}" is a job that `pulumi up` submits; give it lifecycle: {{run: scheduled}}'
                yield each.entry.problem(path, message)
    runs = {each.entry.name: job_names(each.value) for each in schedules}
    scheduled = {name for names in runs.values() for name in names}
    for job in trainings:
        if job.is_scheduled and job.name not in scheduled:
            message = "no schedule names this job; add it to one under schedules"
            yield job.place((LIFECYCLE, "run"), message)
        for path, reference in results.get(job.name, ()):
            upstream, _ = interpolation.split_result(reference, jobs)
            shown = f"${{{interpolation.JOBS}.{reference}}}"
            if upstream in jobs and job.is_scheduled:
                for schedule, names in runs.items():
                    if job.name in names and upstream not in names[: names.index(job.name)]:
                        order = ", ".join([upstream, *(name for name in names if name != upstream)])
                        message = f"has not run {upstream} before {job.name}; write jobs: [{order}]"
                        yield job.place(path, f"{shown}: schedule {schedule} {message}")
            elif upstream in jobs and jobs[upstream].is_scheduled:
                message = "runs by a schedule only, so `pulumi up` does not know its results"
                yield job.place(path, f"{shown}: {upstream} {message}")
        for index, name in enumerate(() if job.is_scheduled else job.lifecycle.get("after", ())):
            if name in jobs and jobs[name].is_scheduled:
                yield job.place((LIFECYCLE, "after", index), f'"{name}" runs by a schedule only')
