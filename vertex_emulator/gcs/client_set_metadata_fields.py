"""The fields of an object's metadata that clients set: which they are, their values, and a PATCH of them.

Source of names and rules: Cloud Storage, Objects resource, and "Object metadata".
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_emulator.errors import ApiError

MAX_CUSTOM_METADATA_BYTES = 8 << 10  # Cloud Storage, "Quotas and limits"
_TEXT_FIELDS = ("contentType", "cacheControl", "contentDisposition", "contentLanguage")
_SERVICE_FIELDS = frozenset(
    {"kind", "id", "name", "bucket", "selfLink", "mediaLink", "generation", "metageneration", "storageClass", "size"}
    | {"md5Hash", "crc32c", "etag", "timeCreated", "updated", "componentCount"}
)
# They become headers of replies, and are printed by clients.
_TEXT = re.compile(r"[\x20-\x7e]{0,1024}")


def parse_object_fields(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an Objects resource that are stored, without those that the service sets.

    Raises ApiError that names every field that is not stored or has an invalid value.
    """
    return patch_object_fields({}, {name: value for name, value in resource.items() if value})


def patch_object_fields(fields: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields after a PATCH: null removes a field or a key of `metadata`, what is left out stays.

    Raises ApiError as `parse_object_fields`.
    """
    violations = list(_iterate_field_violations(change))
    if violations:
        message = "; ".join(f"{name}: {text}" for name, text in violations)
        raise ApiError("INVALID_ARGUMENT", f"{message}.", violations)
    stored = {name: value for name, value in change.items() if name not in _SERVICE_FIELDS}
    if stored.get("metadata"):
        stored["metadata"] = {**fields.get("metadata", {}), **stored["metadata"]}
        stored["metadata"] = {key: value for key, value in stored["metadata"].items() if value is not None}
    patched = {name: value for name, value in {**fields, **stored}.items() if value}
    size = sum(len(key.encode()) + len(value.encode()) for key, value in patched.get("metadata", {}).items())
    if size > MAX_CUSTOM_METADATA_BYTES:
        text = f"has {size} bytes of keys and values; at most {MAX_CUSTOM_METADATA_BYTES} are allowed"
        raise ApiError("INVALID_ARGUMENT", f"metadata: {text}.", [("metadata", text)])
    return patched


def _iterate_field_violations(change: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in change.items():
        if name in _SERVICE_FIELDS or value is None:
            continue
        if name in _TEXT_FIELDS:
            if not isinstance(value, str) or not _TEXT.fullmatch(value):
                yield name, "must be a text of at most 1024 printable ASCII characters"
        elif name == "metadata":
            if not isinstance(value, Mapping) or not all(isinstance(each, str | None) for each in value.values()):
                yield name, "must be an object whose values are texts"
        elif value:
            yield name, "is not stored: objects are files here (docs/fidelity.md); leave it out"
