"""Validation of a message: its shape, then the rules, applied to whatever part of it has the right shape."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vertex_api.job_kinds import Kind
from vertex_api.validation import rules
from vertex_api.validation.message_schema import get_json_schema
from vertex_api.validation.misshapen_part_removal_and_consequences import (
    RemovalConsequences,
    remove_or_replace_part_in_place,
)
from vertex_api.validation.problem_limit import has_too_many, take_one_more_than_shown
from vertex_api.validation.rules import KeyPath, Violation
from vertex_api.validation.shape_validation import (
    FieldProblem,
    OutputOnlyPolicy,
    canonicalize_and_find_shape_problems,
    copy_without_nulls_and_empty_lists,
    find_intended_path_or_itself,
    get_value_at_path_or_none,
)

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


@dataclass(frozen=True)
class ValidPart:
    """What rules can check of a value: all of it, or what remains without its misshapen parts.

    `value` is canonical, None if nothing remains. `removed_paths` are those of the misshapen parts.
    """

    value: Any
    removed_paths: frozenset[KeyPath] = frozenset()

    @cached_property
    def removal_consequences(self) -> RemovalConsequences:
        """The violations that may exist only because the misshapen parts were removed."""
        return RemovalConsequences(self.removed_paths)


def extract_valid_part(
    message_type: Any, value: Any, shape_problems: Sequence[FieldProblem], *, output_only: OutputOnlyPolicy = "reject"
) -> ValidPart:
    """Return what remains of a value without the parts that have `shape_problems`; nothing if these are too many."""
    if not shape_problems:
        return ValidPart(value)
    if has_too_many(shape_problems):
        return ValidPart(None)
    remaining, removed, intended = copy_without_nulls_and_empty_lists(value), set[KeyPath](), set[KeyPath]()
    while shape_problems:
        for path in {problem.path for problem in shape_problems}:
            while path in removed and path:
                path = path[:-1]  # its placeholder is misshapen too
            if not path:
                return ValidPart(None)
            removed.add(path)
            intended.add(find_intended_path_or_itself(message_type, path))
            remove_or_replace_part_in_place(remaining, path, get_json_schema(message_type))
        value, shape_problems = canonicalize_and_find_shape_problems(message_type, remaining, output_only=output_only)
    unset = {path for path in intended if get_value_at_path_or_none(value, path) is None}
    return ValidPart(value, frozenset(removed) | unset)


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
