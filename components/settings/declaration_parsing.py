"""Parsing of declarations: the images, packages, jobs and schedules of a stack, from their entries."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any

from vertex_api import jobspec
from vertex_api.errors import first_problems, too_many
from vertex_api.messages import KeyPath, value_at
from vertex_api.names import KINDS, did_you_mean
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import MUST_BE_OBJECT, canonicalize

from .. import packages
from ..errors import Problem
from ..images.declaration import image_violations
from ..jobs.references import link_jobs, order_violations
from ..schema import interpolation, shapes
from ..schema.declared_job import LIFECYCLE_KEY, SPEC_KEY, DeclaredJob, canonicalize_declared_spec_and_find_problems
from ..schema.declared_schedule import DeclaredSchedule, list_job_names
from ..schema.source import SourceFile
from ..schema.unknown_job_key_messages import find_unknown_top_key_message_or_none
from .declaration_loading import SECTIONS, Entries, Entry
from .image_builder_rules import find_image_builder_violations
from .schedule_job_list_checks import (
    find_job_name_violations,
    find_missing_or_repeated_job_name_violations,
    find_unscheduled_job_and_reference_violations,
)
from .var_and_reference_resolution import Resolution, resolve_known_references_and_find_violations

_TYPES_AND_RULES: dict[str, tuple[Any, Callable[[Path, Any], Iterable[Violation]]]] = {
    "images": (shapes.Image, image_violations),
    "packages": (shapes.PythonPackage, packages.violations),
}
_RESULT_AS_VALUE = "is known only after that job, so it can be used in texts only"


@dataclass(frozen=True)
class Declarations:
    """What a stack declares, with vars filled in, and its `problems`. Invalid jobs have no spec.

    Of `too_many` problems, the rest of the declarations is missing.
    """

    images: dict[str, shapes.Image]
    packages: dict[str, shapes.PythonPackage]
    jobs: tuple[DeclaredJob, ...]
    schedules: tuple[DeclaredSchedule, ...]
    problems: list[Problem]


def parse_declarations_and_find_problems(
    entries: Entries, stack_file: SourceFile, stack_values: Mapping[str, Any], root: Path
) -> Declarations:
    """Fill in the vars of all entries and validate them, each alone and the jobs together.

    `stack_values` are those of the stack file by key, of which `vars`, `secrets` and `region` count. `root` is the
    project's folder, in which images and packages must have their files.
    """
    overrides = stack_values.get("vars") or {}
    problems = [] if isinstance(overrides, Mapping) else [stack_file.problem(("vars",), MUST_BE_OBJECT)]
    own_vars = {} if problems else {name: Entry(stack_file, "vars", name, value) for name, value in overrides.items()}
    for entry in (*entries["vars"].values(), *own_vars.values()):
        if too_many(problems):
            break
        problems += [
            entry.problem(*violation) for violation in first_problems(_find_var_reference_violations(entry.value))
        ]
    # Their URI depends on the region alone. Names of images are in lower case, so none can be equal.
    google_images = {"reductionServer": jobspec.reduction_server_image(stack_values.get("region", ""))}
    variables = {name: entry.value for name, entry in {**entries["vars"], **own_vars}.items()}
    names = {
        "vars": variables if isinstance(overrides, Mapping) else None,
        "images": [*entries["images"], *google_images],
        "packages": entries["packages"],
        "secrets": stack_values.get("secrets", {}),
    }
    # A secret that only builds read may be in Secret Manager alone.
    remote_secrets = value_at(stack_values, ("builder", "cloudBuild", "secrets")) or {}
    image_names = {**names, "secrets": {**remote_secrets, **stack_values.get("secrets", {})}}
    tables = {"vars": variables, "images": google_images}
    declared = [entry for section in SECTIONS[1:] for entry in entries[section].values()]
    images, packages, jobs, resolutions = {}, {}, list[DeclaredJob](), list[Resolution]()
    schedules, invalid_lifecycles = list[DeclaredSchedule](), set[str]()
    for entry in declared:
        if too_many(problems):
            break
        resolution = resolve_known_references_and_find_violations(
            entry, image_names if entry.section == "images" else names, tables
        )
        resolutions.append(resolution)
        if entry.section == "images":
            image, violations = _canonicalize_image_or_package_and_find_violations(resolution, root)
            images[entry.name] = image
            violations = violations or [*find_image_builder_violations(image, stack_values)]
        elif entry.section == "packages":
            packages[entry.name], violations = _canonicalize_image_or_package_and_find_violations(resolution, root)
        elif entry.section == "schedules":
            schedule, violations = _parse_schedule_and_find_violations(resolution)
            schedules += [schedule] if schedule else []
        else:
            job, violations = _parse_job_and_find_violations(resolution)
            jobs.append(job)
            invalid_lifecycles |= {job.name} if any(path[:1] == (LIFECYCLE_KEY,) for path, _ in violations) else set()
        problems += [entry.problem(*violation) for violation in (*resolution.violations, *violations)]
    if too_many(problems):  # what was not parsed would seem to be missing
        return Declarations(images, packages, tuple(jobs), tuple(schedules), problems)
    results = {resolution.entry.name: resolution.results for resolution in resolutions if resolution.results}
    if results or any(job.lifecycle.keys() & {"after", "deadline"} for job in jobs):
        for job, path, message in first_problems(order_violations(jobs, results)):
            problems.append(entries[job.kind.collection][job.name].problem(path, message))
    if entries["schedules"] or any(job.is_scheduled for job in jobs):
        problems += first_problems(
            _find_problems_between_schedules_and_jobs(entries, resolutions, jobs, invalid_lifecycles)
        )
    if results and not problems:
        # A run of a schedule has folders of its own, which are known once it starts.
        submitted = [job for job in jobs if not job.is_scheduled]
        linked = link_jobs(submitted, results)
        jobs = [*linked, *(job for job in jobs if job.is_scheduled)]
    known_vars = entries["vars"].keys() | set[str]().union(*(resolution.used_vars for resolution in resolutions))
    for name in first_problems(own_vars.keys() - known_vars):
        message = f"nothing uses it{did_you_mean(name, known_vars)}"
        problems.append(own_vars[name].problem((), message))
    return Declarations(images, packages, tuple(jobs), tuple(schedules), problems)


def _find_problems_between_schedules_and_jobs(
    entries: Entries,
    resolutions: Iterable[Resolution],
    jobs: Sequence[DeclaredJob],
    invalid_lifecycles: Collection[str],
) -> Iterator[Problem]:
    """Find what is wrong between schedules and jobs; both are checked by themselves already."""
    by_name = {job.name: job for job in jobs}
    written = [resolution for resolution in resolutions if resolution.entry.section == "schedules"]
    for each in written:
        for violation in find_job_name_violations(each.value, by_name, invalid_lifecycles):
            yield each.entry.problem(*violation)
    named = [(each.entry.name, list_job_names(each.value)) for each in written]
    results = {resolution.entry.name: resolution.results for resolution in resolutions if resolution.results}
    for job, path, message in find_unscheduled_job_and_reference_violations(jobs, named, results):
        yield entries[job.kind.collection][job.name].problem(path, message)


def _find_var_reference_violations(var_value: Any) -> Iterable[Violation]:
    for path, reference in interpolation.references(var_value):
        yield path, f"${{{reference}}} must be written where the var is used; vars hold plain values"
    yield from interpolation.unclosed(var_value)


def _canonicalize_image_or_package_and_find_violations(
    resolution: Resolution, root: Path
) -> tuple[Any, list[Violation]]:
    """Return an image or a package, and every rule that it breaks."""
    type_, find_violations = _TYPES_AND_RULES[resolution.entry.section]
    unescaped = interpolation.expand(resolution.value, {})
    value, problems = canonicalize(type_, unescaped)
    return value, [(problem.path, problem.message) for problem in problems] or list(find_violations(root, value))


def _parse_schedule_and_find_violations(resolution: Resolution) -> tuple[DeclaredSchedule | None, list[Violation]]:
    """Return a schedule, None if it is invalid, and every rule that it breaks by itself."""
    value = interpolation.expand(resolution.value, {})
    fields, problems = canonicalize(shapes.Schedule, value)
    violations: list[Violation] = [(problem.path, problem.message) for problem in problems]
    if isinstance(value, Mapping) and not {("job",), ("jobs",)} & {path[:1] for path, _ in violations}:
        violations += find_missing_or_repeated_job_name_violations(value)
    return (None, violations) if violations else (DeclaredSchedule.from_canonical(resolution.entry.name, fields), [])


def _parse_job_and_find_violations(resolution: Resolution) -> tuple[DeclaredJob, list[Violation]]:
    kind, name, declared = KINDS[resolution.entry.section], resolution.entry.name, resolution.value
    if not isinstance(declared, Mapping):
        return DeclaredJob(kind, name, None, {}), [((), MUST_BE_OBJECT)]
    lifecycle_value = {} if declared.get(LIFECYCLE_KEY) is None else declared[LIFECYCLE_KEY]
    valid_lifecycle, misshapen = canonicalize(shapes.Lifecycle, lifecycle_value)
    lifecycle: shapes.Lifecycle = {} if misshapen else valid_lifecycle
    violations: list[Violation] = [((LIFECYCLE_KEY, *each.path), each.message) for each in misshapen]
    is_adopted = "adopt" in lifecycle  # so it has a name already
    # The fields of a spec file have been merged.
    body = {key: value for key, value in declared.items() if key not in (LIFECYCLE_KEY, SPEC_KEY)}
    if not is_adopted and not body.keys() & {"displayName", "display_name"}:
        body = {"displayName": name, **body}
    validate = partial(canonicalize_declared_spec_and_find_problems, kind, is_name_required=not is_adopted)
    spec, problems = validate(body)
    if problems:
        _format_numbers_from_lone_vars_in_place(resolution.entry.value, body, [problem.path for problem in problems])
        spec, problems = validate(body)
    results = dict(resolution.results)
    for problem in problems:
        message = find_unknown_top_key_message_or_none(kind, problem.path) or problem.message
        result = results.get(problem.path)
        as_value = f"${{{interpolation.JOBS}.{result}}} {_RESULT_AS_VALUE}"
        violations.append((problem.path, as_value if result else message))
    return DeclaredJob(kind, name, spec, lifecycle), violations


def _format_numbers_from_lone_vars_in_place(source: Any, body: Any, problem_paths: Iterable[KeyPath]) -> None:
    """Convert numbers to text at those of `problem_paths` where `source` is one reference: `args: ["${vars.n}"]`."""
    for *parents, last in interpolation.lone_paths(source).intersection(problem_paths):
        holder = reduce(getitem, parents, body)
        if isinstance(holder[last], bool | int | float):
            holder[last] = interpolation.as_text(holder[last])
