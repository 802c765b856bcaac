"""References in declarations: `${images.NAME}`, `${vars.NAME}`, `${secrets.NAME}`, as in Pulumi YAML.

They are resolved in three steps, each where its values are known: vars when the declarations are read, image URIs when
the program runs, secrets when a job is submitted. `$${` stands for `${`; Vertex's own `$(NAME)` is left alone, and
so is a `${` without an end that begins none of them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vertex_api.validation.rules import KeyPath, Violation

Tables = Mapping[str, Mapping[str, Any]]
JOBS = "jobs"
"""The table of the results of other jobs: `${jobs.NAME.RESULT}`."""

_TOKEN = re.compile(r"\$\$\{|\$\{([^}]*)\}")
_REFERENCE = re.compile(r"(?<!\$)\$\{([^}]*)\}")
# Only what has a dot, as all of ours have: a shell's names have none, so `${HOME` is left to the shell.
_UNCLOSED = re.compile(r"(?<!\$)\$\{\s*[A-Za-z]\w*\.[^}]*?(?:\$\{|\Z)")


def found(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Every reference in a value with its place: `(path, "images.digits")`."""
    for path, text in _texts(value, ()):
        for match in _REFERENCE.finditer(text):
            yield path, match.group(1).strip()


def unclosed(value: Any) -> Iterator[Violation]:
    """What is said of each text in a value that begins a reference and does not end it."""
    for path, text in _texts(value, ()):
        if match := _UNCLOSED.search(text):
            begun = match.group().removesuffix("${").rstrip()
            yield path, f'"{begun}" is a `${{` without `}}`; close it, or write `$${{` for a literal `${{`'


def is_open(value: object) -> bool:
    """Whether a value is a text that is not whole before its references are filled in, or closed first."""
    return isinstance(value, str) and bool(_REFERENCE.search(value) or _UNCLOSED.search(value))


def alone(value: Any) -> set[KeyPath]:
    """The places of the strings in a value that are nothing but one reference."""
    return {path for path, text in _texts(value, ()) if _REFERENCE.fullmatch(text)}


def written(value: Any) -> str:
    """A value as it stands inside a text: numbers, true and false as JSON has them."""
    return json.dumps(value) if isinstance(value, bool | int | float | list | dict | None) else str(value)


def each_text(value: Any, change: Callable[[str], Any]) -> Any:
    """The value with `change` applied to every string in it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: each_text(child, change) for key, child in value.items()}
    if isinstance(value, list):
        return [each_text(child, change) for child in value]
    return value


def resolve(value: Any, tables: Tables) -> Any:
    """The value with every reference into one of `tables` replaced; the others stay as they are.

    A string that is nothing but one reference becomes the value itself, with its type.
    """
    return each_text(value, lambda text: _resolved(text, tables) if "${" in text else text)


def filled(value: Any, tables: Tables) -> Any:
    """The last step: references replaced and each `$${` as `${`, in one pass, so that what is filled in stays as is."""
    return each_text(value, lambda text: _filled(text, tables) if "${" in text else text)


def unescaped(value: Any) -> Any:
    """The value with each `$${` as the `${` that it stands for: the last step where nothing is left to fill in."""
    return filled(value, {})


def unknown_reference_message(reference: str, tables: tuple[str, ...]) -> str:
    """Return the message for a reference that points into none of the `tables` that its place allows."""
    known = " or ".join(f"${{{table}.NAME{'.RESULT' if table == JOBS else ''}}}" for table in tables)
    return f"${{{reference}}} is not a reference that is known here; write {known}"


def _filled(text: str, tables: Tables) -> Any:
    if _REFERENCE.fullmatch(text):
        return _resolved(text, tables)
    return _TOKEN.sub(lambda match: "${" if match.group() == "$${" else _text(match, tables), text)


def _resolved(text: str, tables: Tables) -> Any:
    whole = _REFERENCE.fullmatch(text)
    if whole:
        known, value = _lookup(whole.group(1), tables)
        return value if known else text
    return _REFERENCE.sub(lambda match: _text(match, tables), text)


def _text(match: re.Match[str], tables: Tables) -> str:
    """What stands for a reference inside a text; the reference itself where it is not known yet."""
    known, value = _lookup(match.group(1), tables)
    if not known:
        return match.group()
    return written(value)


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """The strings in a value that may hold references."""
    if isinstance(value, str):
        if "${" in value:
            yield path, value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _texts(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _texts(child, (*path, index))


def _lookup(reference: str, tables: Tables) -> tuple[bool, Any]:
    table, _, name = reference.strip().partition(".")
    entries = tables.get(table, {})
    return name in entries, entries.get(name)
