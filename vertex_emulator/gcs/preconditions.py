"""Preconditions of requests on the state of an object (Cloud Storage, "Request preconditions")."""

from collections.abc import Mapping

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.object_records import StoredObject

_CONDITIONS = ("GenerationMatch", "GenerationNotMatch", "MetagenerationMatch", "MetagenerationNotMatch")
PRECONDITIONS = frozenset(f"if{condition}" for condition in _CONDITIONS)
SOURCE_PRECONDITIONS = frozenset(f"ifSource{condition}" for condition in _CONDITIONS)


def raise_unless_preconditions_hold(
    preconditions: Mapping[str, str], stored: StoredObject | None, prefix: str = "if"
) -> None:
    """Raise ApiError (412) for a precondition that does not hold; generation 0 means that there is no object.

    `prefix` is `ifSource` for the conditions on the source of a copy.
    """
    actual = {
        "Generation": str(stored.generation) if stored else "0",
        "Metageneration": str(stored.metadata.metageneration) if stored else "0",
    }
    for field, value in actual.items():
        for name, holds in (
            (f"{prefix}{field}Match", preconditions.get(f"{prefix}{field}Match", value) == value),
            (f"{prefix}{field}NotMatch", preconditions.get(f"{prefix}{field}NotMatch") != value),
        ):
            if not holds:
                message = f"At least one of the pre-conditions you specified did not hold: {name}."
                raise ApiError("FAILED_PRECONDITION", message, http=412)


def raise_unless_generation_matches(generation: str | None, stored: StoredObject) -> None:
    """Raise ApiError NOT_FOUND if a request names another generation of an object than the one there is."""
    if generation is not None and generation != str(stored.generation):
        raise ApiError("NOT_FOUND", f"No such object: {stored.bucket}/{stored.name}#{generation}")
