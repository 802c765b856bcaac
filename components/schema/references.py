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


def find_references(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Every reference in a value with its place: `(path, "images.digits")`."""
    for path, text in _find_texts(value, ()):
        for match in _REFERENCE.finditer(text):
            yield path, match.group(1).strip()


def find_unclosed_references(value: Any) -> Iterator[Violation]:
    """What is said of each text in a value that begins a reference and does not end it."""
    for path, text in _find_texts(value, ()):
        if match := _UNCLOSED.search(text):
            begun = match.group().removesuffix("${").rstrip()
            yield path, f'"{begun}" is a `${{` without `}}`; close it, or write `$${{` for a literal `${{`'


def has_unresolved_references(value: object) -> bool:
    """Whether a value is a text that is not whole before its references are filled in, or closed first."""
    return isinstance(value, str) and bool(_REFERENCE.search(value) or _UNCLOSED.search(value))


def find_lone_references(value: Any) -> set[KeyPath]:
    """The places of the strings in a value that are nothing but one reference."""
    return {path for path, text in _find_texts(value, ()) if _REFERENCE.fullmatch(text)}


def to_text(value: Any) -> str:
    """A value as it stands inside a text: numbers, true and false as JSON has them."""
    return json.dumps(value) if isinstance(value, bool | int | float | list | dict | None) else str(value)


def map_texts(value: Any, change: Callable[[str], Any]) -> Any:
    """The value with `change` applied to every string in it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: map_texts(child, change) for key, child in value.items()}
    if isinstance(value, list):
        return [map_texts(child, change) for child in value]
    return value


def resolve(value: Any, tables: Tables) -> Any:
    """The value with every reference into one of `tables` replaced; the others stay as they are.

    A string that is nothing but one reference becomes the value itself, with its type.
    """
    return map_texts(value, lambda text: _resolve_text(text, tables) if "${" in text else text)


def resolve_and_unescape(value: Any, tables: Tables) -> Any:
    """The last step: references replaced and each `$${` as `${`, in one pass, so that what is filled in stays as is."""
    return map_texts(value, lambda text: _resolve_and_unescape_text(text, tables) if "${" in text else text)


def unescape(value: Any) -> Any:
    """The value with each `$${` as the `${` that it stands for: the last step where nothing is left to fill in."""
    return resolve_and_unescape(value, {})


def unknown_reference_message(reference: str, tables: tuple[str, ...]) -> str:
    """Return the message for a reference that points into none of the `tables` that its place allows."""
    known = " or ".join(f"${{{table}.NAME{'.RESULT' if table == JOBS else ''}}}" for table in tables)
    return f"${{{reference}}} is not a reference that is known here; write {known}"


def _resolve_and_unescape_text(text: str, tables: Tables) -> Any:
    if _REFERENCE.fullmatch(text):
        return _resolve_text(text, tables)
    return _TOKEN.sub(lambda match: "${" if match.group() == "$${" else _substitute(match, tables), text)


def _resolve_text(text: str, tables: Tables) -> Any:
    whole = _REFERENCE.fullmatch(text)
    if whole:
        known, value = _look_up(whole.group(1), tables)
        return value if known else text
    return _REFERENCE.sub(lambda match: _substitute(match, tables), text)


def _substitute(match: re.Match[str], tables: Tables) -> str:
    """What stands for a reference inside a text; the reference itself where it is not known yet."""
    known, value = _look_up(match.group(1), tables)
    if not known:
        return match.group()
    return to_text(value)


def _find_texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """The strings in a value that may hold references."""
    if isinstance(value, str):
        if "${" in value:
            yield path, value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _find_texts(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _find_texts(child, (*path, index))


def _look_up(reference: str, tables: Tables) -> tuple[bool, Any]:
    table, _, name = reference.strip().partition(".")
    entries = tables.get(table, {})
    return name in entries, entries.get(name)
