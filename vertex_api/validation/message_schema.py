"""What may stand where in a message, read from the JSON schema of its type."""

from collections.abc import Mapping
from typing import Any

from vertex_api.validation.rules import KeyPath

Schema = Mapping[str, Any]


def node_at(schema: Schema, path: KeyPath) -> Schema:
    """The part of a message's JSON schema that says what may stand at a path."""
    node: Schema = schema
    for part in path:
        node = resolved(node, schema)
        node = (
            node["items"] if "items" in node else node.get("properties", {}).get(part) or node["additionalProperties"]
        )
    return resolved(node, schema)


def settable(schema: Schema, path: KeyPath) -> dict[str, Schema]:
    """The fields that a user may set in the message at a path, with what the schema says of each."""
    fields = node_at(schema, path).get("properties", {})
    return {name: field for name, field in fields.items() if not field.get("readOnly")}


def resolved(node: Schema, schema: Schema) -> Schema:
    """A part of a schema itself, where it stands there by its name."""
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node
