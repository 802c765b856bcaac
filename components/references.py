"""References in declarations: `${images.NAME}`, `${vars.NAME}`, `${secrets.NAME}`, as in Pulumi YAML.

They are resolved in three steps, each where its values are known: vars when the declarations are read, image URIs when
the program runs, secrets when a job is submitted. `$${` stands for `${`; Vertex's own `$(NAME)` is left alone.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

KeyPath = tuple[str | int, ...]
Tables = Mapping[str, Mapping[str, Any]]

_REFERENCE = re.compile(r"(?<!\$)\$\{([^}]*)\}")


def found(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every reference in a value with its place: `(path, "images.digits")`."""
    if isinstance(value, str):
        if "${" in value:
            for match in _REFERENCE.finditer(value):
                yield path, match.group(1).strip()
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from found(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from found(child, (*path, index))


def resolve(value: Any, tables: Tables) -> Any:
    """The value with every reference into one of `tables` replaced; the others stay as they are.

    A string that is nothing but one reference becomes the value itself, with its type.
    """
    if isinstance(value, str):
        return _resolved(value, tables) if "${" in value else value
    if isinstance(value, Mapping):
        return {key: resolve(child, tables) for key, child in value.items()}
    if isinstance(value, list):
        return [resolve(child, tables) for child in value]
    return value


def unescaped(value: Any) -> Any:
    """The value with each `$${` as the `${` that it stands for: the last step."""
    if isinstance(value, str):
        return value.replace("$${", "${")
    if isinstance(value, Mapping):
        return {key: unescaped(child) for key, child in value.items()}
    if isinstance(value, list):
        return [unescaped(child) for child in value]
    return value


def _resolved(text: str, tables: Tables) -> Any:
    whole = _REFERENCE.fullmatch(text)
    if whole:
        known, value = _lookup(whole.group(1), tables)
        return value if known else text

    def replaced(match: re.Match[str]) -> str:
        known, value = _lookup(match.group(1), tables)
        if not known:
            return match.group()
        return value if isinstance(value, str) else json.dumps(value)

    return _REFERENCE.sub(replaced, text)


def _lookup(reference: str, tables: Tables) -> tuple[bool, Any]:
    table, _, name = reference.strip().partition(".")
    entries = tables.get(table, {})
    return name in entries, entries.get(name)
