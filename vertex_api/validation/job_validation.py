"""Validation of a job or another message: its shape, then the rules, applied to whatever part has the right shape."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from vertex_api.job_kinds import Kind
from vertex_api.validation import rules
from vertex_api.validation.problem_limit import take_one_more_than_shown
from vertex_api.validation.rules import Violation
from vertex_api.validation.shape_validation import (
    FieldProblem,
    OutputOnlyPolicy,
    canonicalize_and_find_shape_problems,
    get_value_at_path_or_none,
)
from vertex_api.validation.valid_part import ValidPart, extract_valid_part

ValuePredicate = Callable[[object], bool]
"""Whether a value has unresolved references: it is filled in later, so no rule can check it yet."""


def never_unresolved(_value: object) -> bool:
    """Return False: the ValuePredicate of specs without references."""
    return False


def canonicalize_job_and_find_problems(
    kind: Kind,
    body: Mapping[str, Any],
    *,
    output_only: OutputOnlyPolicy = "reject",
    is_unresolved_value: ValuePredicate = never_unresolved,
) -> tuple[dict[str, Any], list[FieldProblem]]:
    """Return the canonical form of a job, and the problems of its shape and by the service's rules.

    There are no more problems than `take_one_more_than_shown` returns.

    The canonical form is only meaningful if the shape has no problems.
    """
    return canonicalize_message_and_find_problems(
        kind.typed_dict,
        body,
        lambda job: rules.find_violations(kind, job),
        output_only=output_only,
        is_unresolved_value=is_unresolved_value,
    )


def canonicalize_message_and_find_problems(
    message_type: Any,
    value: Any,
    find_violations: Callable[[Any], Iterable[Violation]],
    *,
    output_only: OutputOnlyPolicy = "reject",
    is_unresolved_value: ValuePredicate = never_unresolved,
) -> tuple[Any, list[FieldProblem]]:
    """Return the canonical form of a value of a message, and the problems of its shape and by some rules.

    There are no more problems than `take_one_more_than_shown` returns.
    """
    canonical, problems = canonicalize_and_find_shape_problems(message_type, value, output_only=output_only)
    valid_part = extract_valid_part(message_type, canonical, problems, output_only=output_only)
    violations = find_problems_of_valid_part(find_violations, valid_part, is_unresolved_value)
    return canonical, take_one_more_than_shown([*problems, *violations])


def find_problems_of_valid_part(
    find_violations: Callable[[Any], Iterable[Violation]],
    valid_part: ValidPart,
    is_unresolved_value: ValuePredicate = never_unresolved,
) -> list[FieldProblem]:
    """Return the problems of the valid part of a value by some rules, as many as `take_one_more_than_shown` returns.

    Violations that may be a mere consequence of what was removed are left out.
    """
    if valid_part.value is None:
        return []
    violations = find_violations(valid_part.value)
    problems = find_problems_of_resolved_values(violations, valid_part.value, is_unresolved_value)
    return take_one_more_than_shown(
        problem for problem in problems if not valid_part.removal_consequences.may_include(problem.path)
    )


def find_problems_of_resolved_values(
    violations: Iterable[Violation], value: Any, is_unresolved_value: ValuePredicate
) -> Iterator[FieldProblem]:
    """Find the problems of a canonical value, leaving out those of values with unresolved references."""
    for path, message in violations:
        if not is_unresolved_value(get_value_at_path_or_none(value, path)):
            yield FieldProblem(path, message)
