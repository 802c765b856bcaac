"""What a rule finds: where, and what is wrong there."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

KeyPath = tuple[str | int, ...]
Violation = tuple[KeyPath, str]


def find_unset_fields(message: Mapping[str, Any], fields: Iterable[str], at: KeyPath) -> Iterator[Violation]:
    """A finding for each required text that is missing or empty: proto3 has no difference between the two."""
    for field in fields:
        if not message.get(field):
            yield (*at, field), "is required"
