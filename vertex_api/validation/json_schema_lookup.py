"""The JSON schema of a message, read: what may stand at a path, and which fields hold a field of some name."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from vertex_api.validation.rules import KeyPath

Schema = Mapping[str, Any]
_MAX_DEPTH, _MAX_CONTAINING_FIELDS = 2, 2


@cache
def get_type_adapter(message_type: Any) -> TypeAdapter[Any]:
    """Return pydantic's validator of a TypedDict."""
    return TypeAdapter(message_type)


@cache
def get_json_schema(message_type: Any) -> dict[str, Any]:
    """Return the JSON schema of a TypedDict, with the API's own field names."""
    return get_type_adapter(message_type).json_schema(by_alias=False)


def require_schema_node(schema: Schema, path: KeyPath) -> Schema:
    """Return the part of a message's JSON schema that describes the value at a path."""
    node: Schema = schema
    for part in path:
        node = resolve_reference(node, schema)
        node = (
            node["items"] if "items" in node else node.get("properties", {}).get(part) or node["additionalProperties"]
        )
    return resolve_reference(node, schema)


def get_settable_field_schemas(schema: Schema, path: KeyPath) -> dict[str, Schema]:
    """Return the fields that a user may set in the message at a path, each with its schema."""
    fields = require_schema_node(schema, path).get("properties", {})
    return {name: field for name, field in fields.items() if not field.get("readOnly")}


def find_nested_path_texts_containing(schema: Schema, path: KeyPath, field_name: str) -> list[str]:
    """Find the fields below the message at a path that hold a field of a name, at the least depth.

    Of a job, `jobSpec.scheduling` holds `timeout`. Returns none if there are more than two: then it is no help.
    """
    level = {"": path}
    for _ in range(_MAX_DEPTH):
        level = {
            f"{text}.{inner}": inner_path
            for text, outer_path in level.items()
            for inner, inner_path in _iterate_settable_child_field_texts_and_paths(schema, outer_path)
        }
        texts = (text for text, inner in level.items() if field_name in get_settable_field_schemas(schema, inner))
        containing = [text.lstrip(".") for text in texts]
        if containing:
            return containing if len(containing) <= _MAX_CONTAINING_FIELDS else []
    return []


def resolve_reference(node: Schema, schema: Schema) -> Schema:
    """Return the definition that a part of a schema refers to, or the part itself."""
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def _iterate_settable_child_field_texts_and_paths(schema: Schema, path: KeyPath) -> Iterator[tuple[str, KeyPath]]:
    """Yield the settable fields of the message at a path, as `name` or, for lists, `name[]`, with their paths."""
    for name in get_settable_field_schemas(schema, path):
        is_list = "items" in require_schema_node(schema, (*path, name))
        yield (f"{name}[]", (*path, name, 0)) if is_list else (name, (*path, name))
