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
TENSORBOARD = "tensorboard"
TENSORBOARD_NAME = f"${{{TENSORBOARD}.name}}"
"""The name of the TensorBoard that the stack creates, which Google chooses. Declarations cannot refer to it."""

_TOKEN = re.compile(r"\$\$\{|\$\{([^}]*)\}")
_REFERENCE = re.compile(r"(?<!\$)\$\{([^}]*)\}")
# Only what has a dot, as all of ours have: a shell's names have none, so `${HOME` is left to the shell.
_UNCLOSED = re.compile(r"(?<!\$)\$\{\s*[A-Za-z]\w*\.[^}]*?(?:\$\{|\Z)")


def find_references_with_paths(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Find every reference in a value, with its path: `(("image",), "images.digits")`."""
    for path, text in _iterate_dollar_brace_texts_with_paths(value, ()):
        for match in _REFERENCE.finditer(text):
            yield path, match.group(1).strip()


def find_unclosed_reference_violations(value: Any) -> Iterator[Violation]:
    """Find the texts in a value that begin a reference and do not close it."""
    for path, text in _iterate_dollar_brace_texts_with_paths(value, ()):
        if match := _UNCLOSED.search(text):
            start = match.group().removesuffix("${").rstrip()
            yield path, f'"{start}" is a `${{` without `}}`; close it, or write `$${{` for a literal `${{`'


def find_paths_with_dollar_brace_outside_references(value: Any) -> Iterator[KeyPath]:
    """Find the texts in a value that have a `${` which begins no reference, escaped or not."""
    for path, text in _iterate_dollar_brace_texts_with_paths(value, ()):
        if "${" in _REFERENCE.sub("", text):
            yield path


def is_unresolved_text(value: object) -> bool:
    """Whether a value is a text with references to resolve, or with one to close first."""
    return isinstance(value, str) and bool(_REFERENCE.search(value) or _UNCLOSED.search(value))


def find_lone_reference_paths(value: Any) -> set[KeyPath]:
    """Find the paths of the texts in a value that are one reference and nothing else."""
    return {path for path, text in _iterate_dollar_brace_texts_with_paths(value, ()) if _REFERENCE.fullmatch(text)}


def format_as_text(value: Any) -> str:
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


def resolve_known_references(value: Any, tables: Tables) -> Any:
    """Return a value with every reference into one of `tables` replaced: a lone one by the value with its type."""
    return _replace_known_references(value, tables, _REFERENCE)


def resolve_known_references_and_unescape(value: Any, tables: Tables) -> Any:
    """Do as `resolve_known_references`, and replace each `$${` by `${`; inserted values stay as they are."""
    return _replace_known_references(value, tables, _TOKEN)


def build_disallowed_table_message(reference: str, allowed_tables: tuple[str, ...]) -> str:
    """Return the message for a reference that points into none of the `allowed_tables`."""
    known = " or ".join(f"${{{table}.NAME{'.RESULT' if table == JOBS else ''}}}" for table in allowed_tables)
    return f"${{{reference}}} is not a reference that is allowed here; write {known}"


def _replace_known_references(value: Any, tables: Tables, pattern: re.Pattern[str]) -> Any:
    def substitute(match: re.Match[str]) -> str:
        if match.group() == "$${":
            return "${"
        return format_as_text(_get_reference_value(match.group(1), tables, default=match.group()))

    def resolve_text(text: str) -> Any:
        if lone := _REFERENCE.fullmatch(text):
            return _get_reference_value(lone.group(1), tables, default=text)
        return pattern.sub(substitute, text)

    return map_texts(value, resolve_text)


def _iterate_dollar_brace_texts_with_paths(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str) and "${" in value:
        yield path, value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _iterate_dollar_brace_texts_with_paths(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _iterate_dollar_brace_texts_with_paths(child, (*path, index))


def _get_reference_value(reference: str, tables: Tables, *, default: str) -> Any:
    table, _, name = reference.strip().partition(".")
    return tables.get(table, {}).get(name, default)
