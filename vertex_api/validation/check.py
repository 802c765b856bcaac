"""Validation of a job or another message: its shape, then the rules, applied to whatever part has the right shape."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic.alias_generators import to_snake

from vertex_api.errors import Refusal, first_problems, too_many
from vertex_api.messages import KeyPath, placeholder, schema_at, value_at, without_defaults, without_unset
from vertex_api.names import CUSTOM_JOB, Kind
from vertex_api.validation.formats import Structure, Violation, check_common
from vertex_api.validation.pools import check_job_spec
from vertex_api.validation.shape import (
    REQUIRED,
    FieldProblem,
    OutputOnlyPolicy,
    canonicalize,
    intended_path,
    of_service,
    set_aside,
)
from vertex_api.validation.study import check_tuning_job

ValuePredicate = Callable[[object], bool]
"""Whether a value has unresolved references: it is filled in later, so no rule can check it yet."""


def never_unresolved(_value: object) -> bool:
    """Return False: the ValuePredicate of specs without references."""
    return False


def validate_job(
    kind: Kind,
    body: Mapping[str, Any],
    *,
    output_only: OutputOnlyPolicy = "reject",
    is_unresolved_value: ValuePredicate = never_unresolved,
) -> tuple[dict[str, Any], list[FieldProblem]]:
    """Return the canonical form of a job, and the problems of its shape and by the service's rules.

    There are no more problems than `first_problems` returns. With problems of its shape, the job is returned as it is.
    """
    job, problems = validate_message(
        kind.typed_dict,
        body,
        lambda job: job_violations(kind, job),
        output_only=output_only,
        is_unresolved_value=is_unresolved_value,
    )
    return job if problems else without_defaults(kind.typed_dict, job), problems


def lift(
    validate: Callable[[Any], Sequence[FieldProblem]],
    body: Any,
    problems: Sequence[FieldProblem],
    allowed: Collection[str],
) -> tuple[list[FieldProblem], list[FieldProblem]]:
    """Return which problems of a body are left, and which ones are lifted: those at `allowed` places.

    A place is a path as problems show it. What is unknown hides the rules for what is around it, so the rest is
    validated again, without it.
    """
    lifted = [each for each in problems if isinstance(each.message, Refusal) and each.place in allowed]
    left = [each for each in problems if each not in lifted]
    unknown = [each.path for each in lifted if each.is_unknown]
    if left or not unknown or too_many(problems):
        return (list(problems), []) if too_many(problems) else (left, lifted)
    rest, _ = set_aside(body, unknown)
    again = [each for each in validate(rest) if not any(_is_explained(each.path, path) for path in unknown)]
    more, found = lift(validate, rest, again, allowed)
    return more, [*dict.fromkeys([*lifted, *found])]


def _is_explained(path: KeyPath, removed: KeyPath) -> bool:
    """Return whether a violation may exist only because the unknown field or value at another path was removed."""
    return path == removed or (_last_name(removed), _last_name(path)) in _DEPENDENTS


def validate_message(
    message_type: Any,
    value: Any,
    find_violations: Callable[[Any], Iterable[Violation]],
    *,
    output_only: OutputOnlyPolicy = "reject",
    is_unresolved_value: ValuePredicate = never_unresolved,
) -> tuple[Any, list[FieldProblem]]:
    """Return the canonical form of a value of a message and its problems, as `validate_job` does, by some rules."""
    canonical, problems = canonicalize(message_type, value, output_only=output_only)
    problems = [of_service(beside_another_task(value, each)) for each in problems]
    part = ValidPart.of(message_type, canonical, problems, output_only=output_only)
    return canonical, first_problems([*problems, *part.problems(find_violations, is_unresolved_value)])


_TASKS = {"pythonPackageSpec": "containerSpec", "containerSpec": "pythonPackageSpec"}


def beside_another_task(value: Any, problem: FieldProblem) -> FieldProblem:
    """Return a problem that says too, of a field that a task lacks, that its pool has another task already."""
    *parents, _ = problem.path or ("",)
    if problem.message == REQUIRED and parents and (other := _TASKS.get(str(parents[-1]))):
        pool = value_at(value, tuple(parents[:-1])) or {}
        if other in pool or to_snake(other) in pool:
            message = f"{problem.message}; or take {parents[-1]} out: a pool has one of it and {other}, not both"
            return replace(problem, message=message)
    return problem


def job_violations(kind: Kind, job: Mapping[str, Any]) -> Iterator[Violation]:
    """Find every rule that a canonical job breaks. Pipelines have rules of their own: `pipelines.check_pipeline`."""
    yield from check_common(job)
    if kind == CUSTOM_JOB:
        yield from check_job_spec(job["jobSpec"], ("jobSpec",))
    else:
        yield from check_tuning_job(job, ())


def resolved_problems(
    violations: Iterable[Violation], value: Any, is_unresolved_value: ValuePredicate
) -> Iterator[FieldProblem]:
    """Find the problems of a canonical value, leaving out those of values with unresolved references.

    A rule that a job lifts must not make it look free: numbers below one are what jobs are multiplied by.
    """
    for path, message in violations:
        found = value_at(value, path)
        if not is_unresolved_value(found):
            is_fixed = isinstance(message, Structure) or (isinstance(found, int | float) and found < 1)
            yield FieldProblem(path, message if is_fixed else Refusal(message))


@dataclass(frozen=True)
class ValidPart:
    """What rules can check of a value: all of it, or what remains without its misshapen parts.

    `value` is canonical, None if nothing remains. `removed_paths` are those of the misshapen parts.
    """

    value: Any
    removed_paths: frozenset[KeyPath] = frozenset()

    @classmethod
    def of(
        cls,
        message_type: Any,
        value: Any,
        shape_problems: Sequence[FieldProblem],
        *,
        output_only: OutputOnlyPolicy = "reject",
    ) -> "ValidPart":
        """Return what remains of a value without the parts that have `shape_problems`; nothing if these are too many.

        Removed parts that are required, and entries of lists, are replaced by a placeholder of the right shape, so that
        all other parts stay where they are.
        """
        if not shape_problems:
            return cls(value)
        if too_many(shape_problems):
            return cls(None)
        remaining, removed, intended = without_unset(value), set[KeyPath](), set[KeyPath]()
        while shape_problems:
            for path in {problem.path for problem in shape_problems}:
                while path in removed and path:
                    path = path[:-1]  # its placeholder is misshapen too
                if not path:
                    return cls(None)
                removed.add(path)
                intended.add(intended_path(message_type, path))
                _remove(remaining, path, message_type)
            value, shape_problems = canonicalize(message_type, remaining, output_only=output_only)
        unset = {path for path in intended if value_at(value, path) is None}
        return cls(value, frozenset(removed) | unset)

    def problems(
        self,
        find_violations: Callable[[Any], Iterable[Violation]],
        is_unresolved_value: ValuePredicate = never_unresolved,
    ) -> list[FieldProblem]:
        """Return the problems by some rules, as many as `first_problems` returns.

        Violations that may be a mere consequence of what was removed are left out.
        """
        if self.value is None:
            return []
        found = resolved_problems(find_violations(self.value), self.value, is_unresolved_value)
        return first_problems(problem for problem in found if not self.consequences.may_include(problem.path))

    @cached_property
    def consequences(self) -> "Consequences":
        """The violations that may exist only because the misshapen parts were removed."""
        return Consequences(self.removed_paths)


def _remove(value: Any, path: KeyPath, message_type: Any) -> None:
    """Remove the part of a JSON value at a path, or put a placeholder there, in place."""

    def key_as_written(parent: Any, part: Any) -> Any:
        return part if isinstance(parent, list) or part in parent else to_snake(str(part))

    parent = value
    for depth, part in enumerate(path[:-1]):
        if not isinstance(parent, dict | list):
            _remove(value, path[:depth], message_type)  # the key itself is wrong
            return
        parent = parent[key_as_written(parent, part)]
    *parents, last = path
    if isinstance(parent, list):
        parent[int(last)] = placeholder(message_type, path)
    elif isinstance(parent, dict):
        is_there_twice = last in parent and to_snake(str(last)) in parent.keys() - {last}
        parent.pop(key_as_written(parent, last), None)
        if not is_there_twice and last in schema_at(message_type, tuple(parents)).get("required", ()):
            parent[last] = placeholder(message_type, path)


_DEPENDENTS = {
    ("acceleratorCount", "acceleratorType"),
    ("gpuPartitionSize", "acceleratorCount"),
    ("modelToUpload", "modelId"),
    ("modelToUpload", "parentModel"),
    ("network", "reservedIpRanges"),
    ("persistentResourceId", "machineType"),
}
"""Fields, each with another that may break a rule only because the first one was removed."""
_VALUE_FIELD_ENDINGS = ("ValueSpec", "Values")
"""The endings of the fields by which rules check a parameter of a study together with its children."""


class Consequences:
    """The violations that may exist only because parts of a value, at `paths`, were removed from it."""

    def __init__(self, paths: Iterable[KeyPath]) -> None:
        paths = frozenset(paths)
        self._paths = {_widen(path) for path in paths}
        self._parents = {path[:depth] for path in self._paths for depth in range(len(path))}
        self._fields = {_last_name(path) for path in paths}
        self._has_machine = any("machineSpec" in path for path in paths)

    def may_include(self, path: KeyPath) -> bool:
        """Return whether a violation at a path may exist only because a part of the value was removed."""
        # The same place, or one inside the other.
        if path in self._parents or any(path[:depth] in self._paths for depth in range(len(path) + 1)):
            return True
        field = _last_name(path)
        # With FLEX_START, a machine as a whole is compared with that of another pool.
        return (field == "machineSpec" and self._has_machine) or not self._fields.isdisjoint(
            removed for removed, dependent in _DEPENDENTS if dependent == field
        )


def _widen(path: KeyPath) -> KeyPath:
    """Return the path of the whole study parameter for a path in its values: its children and scale depend on them."""
    if any(str(part).endswith(_VALUE_FIELD_ENDINGS) for part in path) and "parameters" in path:
        return path[: path.index("parameters") + 2]
    return path


def _last_name(path: KeyPath) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "")
