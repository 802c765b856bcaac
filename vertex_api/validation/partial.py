"""What is left of a misshapen value when what is misshapen is withheld from it, so that rules can judge the rest."""

from collections.abc import Iterable
from typing import Any

from pydantic.alias_generators import to_snake

from vertex_api.validation.message_schema import Schema, find_node, resolve_reference
from vertex_api.validation.rules import KeyPath

_LEANING = {
    ("acceleratorCount", "acceleratorType"),
    ("gpuPartitionSize", "acceleratorCount"),
    ("modelToUpload", "modelId"),
    ("modelToUpload", "parentModel"),
    ("network", "reservedIpRanges"),
    ("parameterId", "learningRateParameterName"),
    ("parameters", "learningRateParameterName"),
    ("persistentResourceId", "machineType"),
    ("strategy", "maxWaitDuration"),
}
"""Fields, each with another of which rules may say something only because the first one is withheld."""
_VALUES = ("ValueSpec", "Values")
"""How the names of fields end by which a parameter of a study and its children are judged together."""


def remove_part(value: Any, path: KeyPath, schema: Schema) -> None:
    """Takes what stands at a path out of a JSON value, in place; `schema` is that of the value's message.

    What is required and what stands in a list gets a stand-in of the right shape, so that all else stays where it is.
    """
    holder = value
    for depth, part in enumerate(path[:-1]):
        if not isinstance(holder, dict | list):
            remove_part(value, path[:depth], schema)  # what is wrong there is the key itself
            return
        holder = holder[_key(holder, part)]
    *above, last = path
    if isinstance(holder, list):
        holder[int(last)] = _stand_in(find_node(schema, path), schema)
    elif isinstance(holder, dict):
        is_twice = last in holder and to_snake(str(last)) in holder.keys() - {last}
        holder.pop(_key(holder, last), None)
        if not is_twice and last in find_node(schema, tuple(above)).get("required", ()):
            holder[last] = _stand_in(find_node(schema, path), schema)


def is_consequence(path: KeyPath, withheld: Iterable[KeyPath]) -> bool:
    """Whether what a rule says of a path may be so only because something is withheld."""
    return any(_is_related(path, _judged_with(other)) or _leans(path, other) for other in withheld)


def _is_related(path: KeyPath, other: KeyPath) -> bool:
    """At, above or below."""
    return all(part == another for part, another in zip(path, other, strict=False))


def _judged_with(path: KeyPath) -> KeyPath:
    """The whole parameter of a study for what is withheld of its values: its children and its scale depend on them."""
    if any(str(part).endswith(_VALUES) for part in path) and "parameters" in path:
        return path[: path.index("parameters") + 2]
    return path


def _leans(path: KeyPath, other: KeyPath) -> bool:
    said, absent = _name(path), _name(other)
    # With FLEX_START a machine is compared, as a whole, with that of another pool.
    return (absent, said) in _LEANING or (said == "machineSpec" and "machineSpec" in other)


def _name(path: KeyPath) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _key(holder: Any, part: Any) -> Any:
    """The key of a field as it is written, in either spelling."""
    return part if isinstance(holder, list) or part in holder else to_snake(str(part))


def _stand_in(node: Schema, schema: Schema) -> Any:
    """The least that has the shape which a schema asks for."""
    node = resolve_reference(node, schema)
    if "enum" in node:
        return node["enum"][0]
    match node.get("type"):
        case "object":
            return {name: _stand_in(node["properties"][name], schema) for name in node.get("required", ())}
        case "array":
            return [_stand_in(node["items"], schema)]
        case "string":
            return ""
        case "boolean":
            return False
    return 0
