"""ValidPart: what rules can check of a value whose other parts are misshapen."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic.alias_generators import to_snake

from vertex_api.validation.consequential_violations import RemovalConsequences
from vertex_api.validation.json_schema_lookup import Schema, get_json_schema, require_schema_node, resolve_reference
from vertex_api.validation.problem_limit import has_too_many
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape_validation import (
    FieldProblem,
    OutputOnlyPolicy,
    canonicalize_and_find_shape_problems,
    copy_without_nulls_and_empty_lists,
    find_intended_path_or_itself,
    get_value_at_path_or_none,
)


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
            _remove_or_replace_part_in_place(remaining, path, get_json_schema(message_type))
        value, shape_problems = canonicalize_and_find_shape_problems(message_type, remaining, output_only=output_only)
    unset = {path for path in intended if get_value_at_path_or_none(value, path) is None}
    return ValidPart(value, frozenset(removed) | unset)


def _remove_or_replace_part_in_place(value: Any, path: KeyPath, schema: Schema) -> None:
    """Remove the part of a JSON value at a path, in place. `schema` is that of the value's message.

    Required fields and entries of lists are replaced by a placeholder of the right shape, so that all other parts stay
    where they are.
    """
    parent = value
    for depth, part in enumerate(path[:-1]):
        if not isinstance(parent, dict | list):
            _remove_or_replace_part_in_place(value, path[:depth], schema)  # the key itself is wrong
            return
        parent = parent[_get_key_as_written(parent, part)]
    *parents, last = path
    if isinstance(parent, list):
        parent[int(last)] = _make_placeholder(require_schema_node(schema, path), schema)
    elif isinstance(parent, dict):
        is_there_twice = last in parent and to_snake(str(last)) in parent.keys() - {last}
        parent.pop(_get_key_as_written(parent, last), None)
        if not is_there_twice and last in require_schema_node(schema, tuple(parents)).get("required", ()):
            parent[last] = _make_placeholder(require_schema_node(schema, path), schema)


def _get_key_as_written(parent: Any, part: Any) -> Any:
    """Return the key of a field as it is written, in either spelling."""
    return part if isinstance(parent, list) or part in parent else to_snake(str(part))


def _make_placeholder(node: Schema, schema: Schema) -> Any:
    """Return the smallest value that has the shape which a schema asks for."""
    node = resolve_reference(node, schema)
    if "enum" in node:
        return node["enum"][0]
    match node.get("type"):
        case "object":
            return {name: _make_placeholder(node["properties"][name], schema) for name in node.get("required", ())}
        case "array":
            return [_make_placeholder(node["items"], schema)]
        case "string":
            return ""
        case "boolean":
            return False
    return 0
