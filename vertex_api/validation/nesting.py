"""Where a field belongs that stands too high: which fields of a message hold one of its name."""

from collections.abc import Iterator

from vertex_api.validation.message_schema import Schema, find_node, settable_fields
from vertex_api.validation.rules import KeyPath

_DEEPEST, _FEW = 2, 2


def find_containing_fields(schema: Schema, path: KeyPath, name: str) -> list[str]:
    """The fields below the message at a path that hold one of a name, the nearest: of a job `jobSpec.scheduling` that
    holds `timeout`. None where there are more than a few."""
    level = {"": path}
    for _ in range(_DEEPEST):
        level = {f"{at}.{inner}": deeper for at, above in level.items() for inner, deeper in _messages(schema, above)}
        found = [at.lstrip(".") for at, inner in level.items() if name in settable_fields(schema, inner)]
        if found:
            return found if len(found) <= _FEW else []
    return []


def _messages(schema: Schema, path: KeyPath) -> Iterator[tuple[str, KeyPath]]:
    """The fields of a message that hold messages, one each or lists of them."""
    for name in settable_fields(schema, path):
        is_list = "items" in find_node(schema, (*path, name))
        yield (f"{name}[]", (*path, name, 0)) if is_list else (name, (*path, name))
