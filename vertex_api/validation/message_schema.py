"""What may stand where in a message, read from the JSON schema of its type."""

from collections.abc import Mapping
from typing import Any

from vertex_api.validation.rules import KeyPath

Schema = Mapping[str, Any]


def find_node(schema: Schema, path: KeyPath) -> Schema:
    """The part of a message's JSON schema that says what may stand at a path."""
    node: Schema = schema
    for part in path:
        node = resolve_reference(node, schema)
        node = (
            node["items"] if "items" in node else node.get("properties", {}).get(part) or node["additionalProperties"]
        )
    return resolve_reference(node, schema)


def settable_fields(schema: Schema, path: KeyPath) -> dict[str, Schema]:
    """The fields that a user may set in the message at a path, with what the schema says of each."""
    fields = find_node(schema, path).get("properties", {})
    return {name: field for name, field in fields.items() if not field.get("readOnly")}


def resolve_reference(node: Schema, schema: Schema) -> Schema:
    """A part of a schema itself, where it stands there by its name."""
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node
