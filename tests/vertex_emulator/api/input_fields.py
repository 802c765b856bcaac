"""The fields that a client may set, and a value for each, derived from the generated types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

from vertex_api import scalars
from vertex_api.messages import split_hint
from vertex_api.validation.model import ONEOFS

Names = tuple[str, ...]

_SET_BY_THE_SERVICE = get_args(scalars.OutputOnly[int])[1]
DURATION, TIMESTAMP = get_args(scalars.Duration)[1], get_args(scalars.Timestamp)[1]
_TEXTS = {DURATION: "60s", TIMESTAMP: "2026-01-31T12:00:00Z"}
_KEY = "key"
_NAMED = {"artifactUri": "gs://bucket/model", "predictRoute": "/predict", "healthRoute": "/health"}
"""Texts of fields that take none of another form."""
_SAMPLES = {str: "sample", bool: True, int: 1, float: 0.5, Any: {"any": ["value"]}}


def input_fields(message: Any, at: Names = (), above: tuple[Any, ...] = ()) -> Iterator[tuple[Names, Any]]:
    """Each field that a client may set below a message, with its type; a message within itself is not opened again."""
    for name, hint in get_type_hints(message, include_extras=True).items():
        inner, marks = split_hint(hint)
        if _SET_BY_THE_SERVICE in marks:
            continue
        yield (*at, name), hint
        while get_origin(inner) in (list, dict):
            inner, _ = split_hint(get_args(inner)[-1])
        if is_typeddict(inner) and inner not in above:
            yield from input_fields(inner, (*at, name), (*above, message, inner))


def sample(hint: Any, turn: int = 0) -> Any:
    """A value of a type; a message with every field that a client may set, of a union the one whose `turn` it is."""
    inner, marks = split_hint(hint)
    if get_origin(inner) is list:
        return [sample(get_args(inner)[0], turn)]
    if get_origin(inner) is dict:
        return {_KEY: sample(get_args(inner)[1], turn)}
    if get_origin(inner) is Literal:
        return get_args(inner)[1]
    if is_typeddict(inner):
        hints = get_type_hints(inner, include_extras=True)
        union = ONEOFS.get(inner.__name__, ("",))
        others = {*union} - {union[turn % len(union)]}
        settable = (name for name, each in hints.items() if _SET_BY_THE_SERVICE not in split_hint(each)[1])
        return {
            name: _NAMED.get(name) or sample(hints[name], turn // len(union)) for name in settable if name not in others
        }
    return next((_TEXTS[mark] for mark in marks if mark in _TEXTS), _SAMPLES[inner])


def is_set(body: Any, path: Names) -> bool:
    """Whether a body sets a field, in any entry of the lists and in the sampled entry of the maps on the way."""
    if not path:
        return True
    if isinstance(body, list):
        return any(is_set(each, path) for each in body)
    if not isinstance(body, dict):
        return False
    return (path[0] in body and is_set(body[path[0]], path[1:])) or is_set(body.get(_KEY), path)
