"""References in declarations: `${images.NAME}`, `${vars.NAME}`, `${secrets.NAME}`, as in Pulumi YAML.

They are resolved in three steps, each where its values are known: vars, and the URIs of data (`${data.NAME}`), when the
declarations are read, image URIs when the program runs, secrets when a job is submitted. `$${` stands for `${`. Vertex
AI's own `$(NAME)` is left unchanged, and so is an unclosed `${` that does not begin a reference. A `${NAME}` without a
table is the shell's: it stays as it is in a command line (`is_command_line`), and is refused elsewhere.
"""

import json
import re
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from typing import Any

from pydantic.alias_generators import to_camel

from vertex_api.messages import KeyPath
from vertex_api.names import did_you_mean
from vertex_api.schedules import RESULTS_TABLE
from vertex_api.validation.formats import Violation

Tables = Mapping[str, Mapping[str, Any]]
DATA = "data"
"""The table of the URIs of declared data: `${data.NAME}`."""
JOBS = RESULTS_TABLE
"""The table of the results of other jobs: `${jobs.NAME.RESULT}`."""
TENSORBOARD = "tensorboard"
TENSORBOARD_NAME = f"${{{TENSORBOARD}.name}}"
"""The name of the TensorBoard that the stack creates, which Google chooses. Declarations cannot refer to it."""

_TOKEN = re.compile(r"\$\$\{|\$\{(\s*\w+\.[^}]*)\}")
_REFERENCE = re.compile(r"(?<!\$)\$\{(\s*\w+\.[^}]*)\}")
_SHELL = re.compile(r"(?<!\$)\$\{(?!\s*\w+\.)([^}]*)\}")
_LITERAL = "For a literal ${ write $${"
# Only what has a dot, as all of ours have: a shell's names have none, so `${HOME` is left to the shell.
_UNCLOSED = re.compile(r"(?<!\$)\$\{\s*[A-Za-z]\w*\.[^}]*?(?:\$\{|\Z)")


def references(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Find every reference in a value, with its path: `(("image",), "images.digits")`."""
    for path, text in _texts(value):
        for match in _REFERENCE.finditer(text):
            yield path, match.group(1).strip()


def unclosed(value: Any) -> Iterator[Violation]:
    """Find the texts in a value that begin a reference and do not close it."""
    for path, text in _texts(value):
        if match := _UNCLOSED.search(text):
            start = match.group().removesuffix("${").rstrip()
            yield path, f'"{start}" is a `${{` without `}}`; close it, or write `$${{` for a literal `${{`'


def literals(value: Any) -> Iterator[KeyPath]:
    """Find the texts in a value that have a `${` which begins no reference, escaped or not."""
    return (path for path, text in _texts(value) if "${" in _REFERENCE.sub("", text))


def shell(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Find every `${…}` in a value that names no table, with its path: `(("args", 0), "HOME")`."""
    for path, text in _texts(value):
        for match in _SHELL.finditer(text):
            yield path, match.group(1).strip()


def is_command_line(path: KeyPath) -> bool:
    """Whether a path of a job is in its command line or environment, which a shell may read."""
    parts = {to_camel(str(part)) for part in path}
    return bool(parts & {"containerSpec", "pythonPackageSpec"} and parts & {"command", "args", "env"})


def shell_violations(
    value: Any, tables: Callable[[KeyPath], Sequence[str]], names: Mapping[str, Collection[str] | None]
) -> Iterator[Violation]:
    """Find every `${NAME}` without a table that cannot be the shell's, or that is the name of something declared.

    `tables` are those that a reference at a path may name, and `names` what is declared in each.
    """
    for path, name in shell(value):
        if not name or not is_command_line(path):
            yield path, not_allowed(name, tables(path), path)
        elif table := next((table for table in tables(path) if name in (names.get(table) or ())), None):
            yield path, f"${{{name}}} is left to the shell; did you mean ${{{table}.{name}}}? {_LITERAL}"


def lone_paths(value: Any) -> set[KeyPath]:
    """Find the paths of the texts in a value that are one reference and nothing else."""
    return {path for path, text in _texts(value) if _REFERENCE.fullmatch(text)}


def is_unresolved(value: object) -> bool:
    """Whether a value is a text with references to resolve, or with one to close first."""
    return isinstance(value, str) and any(each.search(value) for each in (_REFERENCE, _SHELL, _UNCLOSED))


def resolve(value: Any, tables: Tables) -> Any:
    """Return a value with every reference into one of `tables` replaced: a lone one by the value with its type."""
    return _replace(value, tables, _REFERENCE)


def expand(value: Any, tables: Tables) -> Any:
    """Do as `resolve`, and replace each `$${` by `${`; inserted values stay as they are."""
    return _replace(value, tables, _TOKEN)


def as_text(value: Any) -> str:
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


def split_result(reference: str, jobs: Container[str]) -> tuple[str, str]:
    """Split a reference to a result, without its table, into a job and a result: `("tune", "bestTrial.id")`.

    Names may have dots in them: the longest one of `jobs` counts, or else the text before the first dot.
    """
    parts = reference.split(".")
    for end in range(len(parts), 0, -1):
        if (name := ".".join(parts[:end])) in jobs:
            return name, ".".join(parts[end:])
    return parts[0], ".".join(parts[1:])


def not_allowed(reference: str, tables: Sequence[str], path: KeyPath) -> str:
    """Return the message for a reference at a path that points into none of the `tables`, those allowed there."""
    known = " or ".join(f"${{{table}.NAME{'.RESULT' if table == JOBS else ''}}}" for table in tables)
    way_out = f". {_LITERAL}" if is_command_line(path) else ""
    return f"${{{reference}}} is not a reference that is allowed here; write {known}{way_out}"


def unknown_result(reference: str, job: str, result: str, known: Sequence[str]) -> str:
    """Return the message for a reference to a result that a job does not have; `known` are those that it has."""
    if is_own_metric(result):
        place = f"the stack's output `results`, or the results of a Completion, have the metrics of {job}"
        return f"${{{JOBS}.{reference}}} cannot be used by another job: {place}; let that job read a file of {job}"
    return f"${{{JOBS}.{reference}}} is not a result of {job}{did_you_mean(result, known)}"


def is_own_metric(result: str) -> bool:
    """Return whether a result is a metric of the job itself, which is read from its curves and not from the API."""
    return result.partition(".")[0] == "metrics"


def _texts(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Find the texts in a value that have a `${`."""
    if isinstance(value, str) and "${" in value:
        yield path, value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _texts(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _texts(child, (*path, index))


def _replace(value: Any, tables: Tables, pattern: re.Pattern[str]) -> Any:
    def look_up(reference: str, default: str) -> Any:
        table, _, name = reference.strip().partition(".")
        return tables.get(table, {}).get(name, default)

    def substitute(match: re.Match[str]) -> str:
        return "${" if match.group() == "$${" else as_text(look_up(match.group(1), match.group()))

    def change(text: str) -> Any:
        if lone := _REFERENCE.fullmatch(text):
            return look_up(lone.group(1), text)
        return pattern.sub(substitute, text)

    return map_texts(value, change)
