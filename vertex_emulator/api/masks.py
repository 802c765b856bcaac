"""readMask: which fields of a resource a list shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.alias_generators import to_camel

from vertex_api.fields import get_fields
from vertex_api.spelling import suggestion_text
from vertex_emulator.errors import ApiError


def read_mask(text: str, message: Any) -> list[str]:
    """The paths of a FieldMask, `name,job_spec.scheduling`, in camelCase; empty for everything.

    `message` is the TypedDict of the resource. Raises ApiError for a path that leads to no field of it: a list or a
    map can only be the end of a path (google.protobuf.FieldMask).
    """
    paths = [_camel(part.strip()) for part in text.split(",") if part.strip()]
    if "*" in paths:
        return []
    for path in paths:
        _check(path, message)
    return paths


def masked(message: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Only the fields that the paths name; everything when there are none."""
    if not paths:
        return dict(message)
    kept: dict[str, Any] = {}
    for key, value in message.items():
        below = [path.partition(".")[2] for path in paths if path.partition(".")[0] == key]
        if below:
            kept[key] = masked(value, below) if all(below) else value
    return kept


def wants(paths: Sequence[str], field: str) -> bool:
    """Whether a mask shows a field of the resource."""
    return not paths or any(path.partition(".")[0] == field for path in paths)


def _camel(path: str) -> str:
    return ".".join(to_camel(part) if "_" in part else part for part in path.split("."))


def _check(path: str, message: Any) -> None:
    above: Any = message
    for part in path.split("."):
        known = get_fields(above) if above is not None else {}
        if part not in known:
            text = f'readMask: "{path}" leads to no field{suggestion_text(part, known)}'
            raise ApiError("INVALID_ARGUMENT", text, [("read_mask", f'"{path}" leads to no field')])
        above = known[part].message if known[part].holds == "one" else None
