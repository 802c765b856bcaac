"""Good requests with one thing wrong in them, for every field that a client may set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Required, get_origin, get_type_hints

from typing_extensions import is_typeddict

from tests.vertex_api.jobs import ABSENT, edited
from tests.vertex_emulator.api.good_requests import GOOD, fields_of
from tests.vertex_emulator.api.input_fields import DURATION, TIMESTAMP, Names, is_set, split_hint
from vertex_api.messages import show_path
from vertex_api.names import Kind
from vertex_emulator.http.responses import to_snake_case

Path = tuple[str | int, ...]
MODEL_LEVELS = 2  # the fields below are description, of which each would be the same again
WRONG: dict[Any, tuple[Any, ...]] = {
    str: (5, {"a": "b"}),
    bool: ("yes", 1),
    int: ("one", 1.5, 2**63, "9" * 5000),
    float: ("fast", [1], 10**400),
    Literal: ("NO_SUCH_VALUE", 999),
    list: ("text", [None], {"a": 1}),
    dict: (["a"], {"a": 5}),
    DURATION: ("1h", 3600, "999999999999999s"),
    TIMESTAMP: ("yesterday", "2026-02-30T00:00:00Z"),
    "message": ("text", [1], 7),
}


class Mutation(NamedTuple):
    """A request for a job with something wrong in it, and the field that the refusal must name."""

    kind: Kind
    what: str
    body: Any
    field: str


def mutations() -> Iterator[Mutation]:
    """Every mutation, field by field."""
    for kind, bodies in GOOD.items():
        yield Mutation(kind, "unknown field of the whole", {**bodies[0], "zzz": 1}, "zzz")
        for names, hint in fields_of(kind):
            if names[0] != "modelToUpload" or len(names) <= MODEL_LEVELS:
                body = next((each for each in bodies if is_set(each, names)), None)
                assert body is not None, f"no good {kind.type} sets {names}"
                yield from _of_field(kind, body, place(body, names), hint)


def place(body: Any, names: Names) -> Path:
    """Where the first value of a field stands in a body, with the indices of lists and the keys of maps."""
    if not names:
        return ()
    if isinstance(body, list):
        index = next(index for index, each in enumerate(body) if is_set(each, names))
        return (index, *place(body[index], names))
    if names[0] in body and is_set(body[names[0]], names[1:]):
        return (names[0], *place(body[names[0]], names[1:]))
    key = next(key for key, each in body.items() if is_set(each, names))
    return (key, *place(body[key], names))


def _of_field(kind: Kind, body: Any, at: Path, hint: Any) -> Iterator[Mutation]:
    inner, _ = split_hint(hint)
    field = to_snake_case(show_path(at))
    for value in WRONG.get(_type_of(hint), ()):
        yield Mutation(kind, f"{field} = {str(value)[:20]}", edited(body, *at, to=value), field)
    if get_origin(hint) is Required:
        yield Mutation(kind, f"{field} absent", edited(body, *at, to=ABSENT), field)
        yield Mutation(kind, f"{field} null", edited(body, *at, to=None), field)
    if field.rpartition(".")[2] != str(at[-1]) and isinstance(at[-1], str):
        twice = edited(body, *at[:-1], to_snake_case(at[-1]), to=_value_at(body, at))
        yield Mutation(kind, f"{field} twice", twice, field)
    if is_typeddict(inner) and set(get_type_hints(inner)) and isinstance(_value_at(body, at), dict):
        yield Mutation(kind, f"unknown field of {field}", edited(body, *at, "zzz", to=1), f"{field}.zzz")


def _type_of(hint: Any) -> Any:
    inner, marks = split_hint(hint)
    if is_typeddict(inner):
        return "message"
    return next((mark for mark in marks if mark in (DURATION, TIMESTAMP)), get_origin(inner) or inner)


def _value_at(body: Any, at: Path) -> Any:
    for part in at:
        body = body[part]
    return body
