"""References in declarations: `${images.NAME}`, `${vars.NAME}`, `${secrets.NAME}`, as in Pulumi YAML.

They are resolved in three steps, each where its values are known: vars when the declarations are read, image URIs when
the program runs, secrets when a job is submitted. `$${` stands for `${`. Vertex AI's own `$(NAME)` is left
unchanged, and so is an unclosed `${` that does not begin a reference.
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
    """Find every reference in a value, with its path: `(("image",), "images.digits")`."""
    for path, text in _find_texts(value, ()):
        for match in _REFERENCE.finditer(text):
            yield path, match.group(1).strip()


def find_unclosed_references(value: Any) -> Iterator[Violation]:
    """Find the texts in a value that begin a reference and do not close it."""
    for path, text in _find_texts(value, ()):
        if match := _UNCLOSED.search(text):
            begun = match.group().removesuffix("${").rstrip()
            yield path, f'"{begun}" is a `${{` without `}}`; close it, or write `$${{` for a literal `${{`'


def has_unresolved_references(value: object) -> bool:
    """Whether a value is a text with references to resolve, or with one to close first."""
    return isinstance(value, str) and bool(_REFERENCE.search(value) or _UNCLOSED.search(value))


def find_lone_references(value: Any) -> set[KeyPath]:
    """Find the paths of the texts in a value that are one reference and nothing else."""
    return {path for path, text in _find_texts(value, ()) if _REFERENCE.fullmatch(text)}


def to_text(value: Any) -> str:
    """Return a value as it is written inside a text: numbers, true and false as in JSON."""
    return json.dumps(value) if isinstance(value, bool | int | float | list | dict | None) else str(value)


def map_texts(value: Any, change: Callable[[str], Any]) -> Any:
    """Return a value with `change` applied to every text in it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: map_texts(child, change) for key, child in value.items()}
    if isinstance(value, list):
        return [map_texts(child, change) for child in value]
    return value


def resolve(value: Any, tables: Tables) -> Any:
    """Return a value with every reference into one of `tables` replaced. Other references stay as they are.

    A text that is one reference and nothing else becomes the value itself, with its type.
    """
    return map_texts(value, lambda text: _resolve_text(text, tables) if "${" in text else text)


def resolve_and_unescape(value: Any, tables: Tables) -> Any:
    """Replace references, and each `$${` by `${`. In one pass: inserted values stay as they are."""
    return map_texts(value, lambda text: _resolve_and_unescape_text(text, tables) if "${" in text else text)


def unescape(value: Any) -> Any:
    """Replace each `$${` by the `${` that it stands for."""
    return resolve_and_unescape(value, {})


def unknown_reference_message(reference: str, tables: tuple[str, ...]) -> str:
    """Return the message for a reference that points into none of the `tables` that its place allows."""
    known = " or ".join(f"${{{table}.NAME{'.RESULT' if table == JOBS else ''}}}" for table in tables)
    return f"${{{reference}}} is not a reference that is allowed here; write {known}"


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
    """Return the text for a reference inside a text: the reference itself, if its value is not known yet."""
    known, value = _look_up(match.group(1), tables)
    if not known:
        return match.group()
    return to_text(value)


def _find_texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Find the texts in a value that may hold references."""
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
