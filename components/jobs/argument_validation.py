"""Arguments of a job in a program: validated by the rules for declarations, with the same messages."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import pulumi

from vertex_api.job_kinds import Kind
from vertex_api.name_suggestions import suggestion_or_known_names_text
from vertex_api.validation.canonical_spec import CanonicalSpec
from vertex_api.validation.problem_limit import take_problems
from vertex_api.validation.rules import Violation
from vertex_api.validation.shape_validation import canonicalize_and_find_shape_problems, format_path

from ..errors import DeclarationErrors, Problem
from ..runtime.pulumi_outputs import has_output
from ..schema import config_types, formats, interpolation
from ..schema.declared_job import canonicalize_declared_spec_and_find_problems
from .recovery.labels import find_reserved_label_violations
from .result_references import split_at_known_job_or_first_dot, unknown_result_message

_FILE_ONLY_KEYS = {
    "wait": "a Completion waits for the jobs that it is given",
    "after": "depends_on says the order, and a Completion among them that jobs have succeeded",
    "deadline": "a Completion takes deadlines",
}
_TABLES = ("secrets", interpolation.JOBS)
ResultNamesByJob = Mapping[str, Sequence[str] | None]
"""By name of a job whose results are used: the names of its results, None if they are not known yet."""


def canonicalize_spec_and_lifecycle(
    kind: Kind,
    name: str,
    spec: Any,
    lifecycle: Mapping[str, Any],
    *,
    labels: Mapping[str, str],
    secrets: Mapping[str, Any],
    result_names_by_job: ResultNamesByJob,
) -> tuple[pulumi.Input[CanonicalSpec | None], config_types.Lifecycle]:
    """Return the spec and the lifecycle of a job in canonical form. Raises DeclarationErrors with every problem.

    `labels` are those of the foundation. Only the references are validated of a spec that has outputs of other
    resources in it: its canonical form is an output too, None if it has problems, which the provider then reports.
    """
    file_only = lifecycle.keys() & _FILE_ONLY_KEYS.keys()
    canonical_lifecycle, lifecycle_problems = canonicalize_and_find_shape_problems(
        config_types.Lifecycle, {key: value for key, value in lifecycle.items() if key not in file_only}
    )
    is_adopted = "adopt" in lifecycle
    validate = partial(canonicalize_declared_spec_and_find_problems, kind, is_name_required=not is_adopted)
    violations: list[Violation] = []
    if not formats.is_valid_name(name):
        violations.append(((), f'"{name}" must be {formats.NAME_FORM}'))
    violations += [
        (("lifecycle", key), f"is for files of declarations: in a program {instead}")
        for key, instead in _FILE_ONLY_KEYS.items()
        if key in file_only
    ]
    violations += [(("lifecycle", *each.path), each.message) for each in lifecycle_problems]
    canonical: pulumi.Input[CanonicalSpec | None]
    if has_output(spec):
        canonical = pulumi.Output.from_input(spec).apply(lambda spec: validate(spec)[0])
    else:
        canonical, spec_problems = validate(spec)
        violations += [(problem.path, problem.message) for problem in spec_problems]
        if canonical and not is_adopted:
            conflicts = find_reserved_label_violations(canonical.fields.get("labels", {}), labels)
            violations += [(("labels", *path), message) for path, message in conflicts]
    violations += take_problems(_find_reference_violations(spec, secrets, result_names_by_job))
    if violations:
        place = f'{kind.type} "{name}"'
        raise DeclarationErrors([Problem(place, format_path(path), message) for path, message in violations])
    return canonical, cast(config_types.Lifecycle, canonical_lifecycle)


def _find_reference_violations(
    spec: Any, secrets: Mapping[str, Any], result_names_by_job: ResultNamesByJob
) -> Iterator[Violation]:
    """Find references that are not closed, or that lead to no secret, job or result that the job has been given."""
    unclosed = dict(interpolation.find_unclosed_reference_violations(spec))
    yield from unclosed.items()
    for path, reference in interpolation.find_references_with_paths(spec):
        table, _, name = reference.partition(".")
        if path in unclosed:
            continue
        if table not in _TABLES:
            yield path, interpolation.unknown_reference_message(reference, _TABLES)
        elif table == "secrets":
            if name not in secrets:
                suggestion = suggestion_or_known_names_text(name, secrets)
                yield path, f"${{{reference}}} is not among the secrets of this job{suggestion}"
        else:
            job, result = split_at_known_job_or_first_dot(name, result_names_by_job)
            if job not in result_names_by_job:
                suggestion = suggestion_or_known_names_text(job, result_names_by_job)
                yield path, f"${{{reference}}} is of none of the jobs of this job{suggestion}"
            elif (known := result_names_by_job[job]) is not None and result not in known:
                yield path, unknown_result_message(name, job, result, known)
