"""readMask and updateMask: the fields of a resource that a list returns, and those that a patch changes."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.alias_generators import to_camel, to_snake

from vertex_api.messages import message_fields
from vertex_api.names import did_you_mean
from vertex_emulator.errors import ApiError


def parse_read_mask(mask: str, message_type: Any) -> list[str]:
    """Return the paths of a FieldMask such as `name,job_spec.scheduling` in camelCase; empty for all fields.

    `message_type` is the TypedDict of the resource. Raises ApiError for a path that is not one of its fields: a list or
    a map can only be the end of a path (google.protobuf.FieldMask).
    """
    paths = [_to_camel_case(part.strip()) for part in mask.split(",") if part.strip()]
    if "*" in paths:
        return []
    for path in paths:
        _raise_if_unknown_field_path(path, message_type)
    return paths


def parse_update_mask(mask: str, message_type: Any) -> list[str]:
    """Return the fields of a FieldMask that a patch changes, in camelCase. Raises ApiError for an empty one."""
    paths = [_to_camel_case(part.strip()) for part in mask.split(",") if part.strip()]
    if not paths:
        raise ApiError("INVALID_ARGUMENT", "updateMask: is required", [("update_mask", "is required")])
    for path in paths:
        _raise_if_unknown_field_path(path, message_type, "updateMask")
    return paths


def apply_read_mask(resource: Mapping[str, Any], mask_paths: Sequence[str]) -> dict[str, Any]:
    """Return only the fields of a resource that the paths name; all of them without paths."""
    if not mask_paths:
        return dict(resource)
    masked: dict[str, Any] = {}
    for key, value in resource.items():
        subpaths = [path.partition(".")[2] for path in mask_paths if path.partition(".")[0] == key]
        if subpaths:
            masked[key] = apply_read_mask(value, subpaths) if all(subpaths) else value
    return masked


def is_field_in_mask(mask_paths: Sequence[str], field: str) -> bool:
    """Return whether a mask with these paths includes a field of the resource."""
    return not mask_paths or any(path.partition(".")[0] == field for path in mask_paths)


def _to_camel_case(path: str) -> str:
    return ".".join(to_camel(part) if "_" in part else part for part in path.split("."))


def _raise_if_unknown_field_path(path: str, message_type: Any, parameter: str = "readMask") -> None:
    parent: Any = message_type
    for part in path.split("."):
        known = message_fields(parent) if parent is not None else {}
        if part not in known:
            text = f'{parameter}: "{path}" is not a field{did_you_mean(part, known)}'
            raise ApiError("INVALID_ARGUMENT", text, [(to_snake(parameter), f'"{path}" is not a field')])
        parent = known[part].message_type if known[part].cardinality == "one" else None
