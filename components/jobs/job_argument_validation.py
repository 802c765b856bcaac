"""Arguments of a job in a program: validated by the rules for declarations, with the same messages."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pulumi

from vertex_api.errors import first_problems
from vertex_api.job import Job
from vertex_api.names import Kind, did_you_mean
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import canonicalize

from ..runtime.foundation import Foundation
from ..runtime.resource import has_output
from ..schema import formats, interpolation, shapes
from ..schema.declared_job import canonicalize_declared_spec_and_find_problems
from ..schema.interpolation import split_result, unknown_result
from .adoption import RERUN_MESSAGE, adoption_violations
from .identity import label_violations

_FILE_ONLY_KEYS = {
    "wait": "a Completion waits for the jobs that it is given",
    "after": "depends_on says the order, and a Completion among them that jobs have succeeded",
    "deadline": "a Completion takes deadlines",
}
_TABLES = ("secrets", interpolation.JOBS)
ResultNamesByJob = Mapping[str, Sequence[str] | None]
"""By name of a job whose results are used: the names of its results, None if they are not known yet."""


def canonicalize_spec_and_lifecycle_and_record_problems(
    kind: Kind,
    name: str,
    spec: Any,
    lifecycle: Mapping[str, Any],
    *,
    foundation: Foundation,
    secrets: Mapping[str, Any],
    result_names_by_job: ResultNamesByJob,
) -> tuple[pulumi.Input[Job | None], shapes.Lifecycle]:
    """Return the spec and the lifecycle of a job in canonical form, and record every problem in the `program_jobs`.

    The spec is None if the job has problems. Only the references are validated at once of a spec that has outputs of
    other resources in it: its canonical form is an output too.
    """
    program_jobs, labels = foundation.program_jobs, foundation.job_labels
    is_adopted = "adopt" in lifecycle

    def canonicalize_spec_and_find_violations(known_spec: Any) -> tuple[Job | None, list[Violation]]:
        canonical, problems = canonicalize_declared_spec_and_find_problems(
            kind, known_spec, is_name_required=not is_adopted
        )
        violations = [(problem.path, problem.message) for problem in problems]
        if canonical and not is_adopted:
            conflicts = label_violations(canonical.fields.get("labels", {}), labels)
            violations += [(("labels", *path), message) for path, message in conflicts]
        return canonical, violations

    canonical_lifecycle, violations = _canonicalize_lifecycle_and_find_violations(
        kind, lifecycle, foundation.full_location_name
    )
    if problem := formats.find_output_name_problem(name):
        violations.insert(0, ((), problem))
    reference_violations = first_problems(_find_reference_violations(spec, secrets, result_names_by_job))
    if has_output(spec):
        is_valid = program_jobs.apply_rules_record_and_get_validity(
            kind, name, None, [*violations, *reference_violations]
        )
        canonical = program_jobs.validate_and_record_spec_when_known(
            kind, name, spec, canonicalize_spec_and_find_violations
        )
        return canonical, canonical_lifecycle if is_valid else {}
    known, spec_violations = canonicalize_spec_and_find_violations(spec)
    is_valid = program_jobs.apply_rules_record_and_get_validity(
        kind, name, known, [*violations, *spec_violations, *reference_violations]
    )
    return (known, canonical_lifecycle) if is_valid else (None, {})


def _canonicalize_lifecycle_and_find_violations(
    kind: Kind, lifecycle: Mapping[str, Any], location_name: str
) -> tuple[shapes.Lifecycle, list[Violation]]:
    file_only = [key for key in _FILE_ONLY_KEYS if key in lifecycle]
    canonical, problems = canonicalize(
        shapes.Lifecycle, {key: value for key, value in lifecycle.items() if key not in file_only}
    )
    violations: list[Violation] = [
        (("lifecycle", key), f"is for files of declarations: in a program {_FILE_ONLY_KEYS[key]}") for key in file_only
    ]
    violations += [(("lifecycle", *each.path), each.message) for each in problems]
    if not problems and "adopt" in canonical:
        project, _, region = location_name.split("/")[-3:]
        messages = adoption_violations(kind, canonical["adopt"], project, None, region)
        violations += [(("lifecycle", "adopt"), message) for message in messages]
        if canonical.get("rerun"):
            violations.append((("lifecycle", "rerun"), RERUN_MESSAGE))
    return cast(shapes.Lifecycle, canonical), violations


def _find_reference_violations(
    spec: Any, secrets: Mapping[str, Any], result_names_by_job: ResultNamesByJob
) -> Iterator[Violation]:
    """Find references that are not closed, or that lead to no secret, job or result that the job has been given."""
    unclosed = dict(interpolation.unclosed(spec))
    yield from unclosed.items()
    for path, reference in interpolation.references(spec):
        table, _, name = reference.partition(".")
        if path in unclosed:
            continue
        if table not in _TABLES:
            yield path, interpolation.not_allowed(reference, _TABLES)
        elif table == "secrets":
            if name not in secrets:
                suggestion = did_you_mean(name, secrets)
                yield path, f"${{{reference}}} is not among the secrets of this job{suggestion}"
        else:
            job, result = split_result(name, result_names_by_job)
            if job not in result_names_by_job:
                suggestion = did_you_mean(job, result_names_by_job)
                yield path, f"${{{reference}}} is of none of the jobs of this job{suggestion}"
            elif (known := result_names_by_job[job]) is not None and result not in known:
                yield path, unknown_result(name, job, result, known)
