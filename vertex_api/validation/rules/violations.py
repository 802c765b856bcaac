"""Violations of rules: the path of the field, and a message."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

KeyPath = tuple[str | int, ...]
Violation = tuple[KeyPath, str]


def find_unset_field_violations(message: Mapping[str, Any], fields: Iterable[str], at: KeyPath) -> Iterator[Violation]:
    """Find required texts that are missing or empty, which is the same in proto3."""
    for field in fields:
        if not message.get(field):
            yield (*at, field), "is required"
