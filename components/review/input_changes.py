"""The inputs of a resource that a preview changes, with their old and new values as short texts."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .preview_document import Step

KNOWN_LATER = "(known after the update)"
MAX_VALUE_LENGTH = 80
_UNKNOWNS = (
    "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "030794c1-77ac-496b-92df-f27374a8bd58",
    "e48ece36-62e2-4504-bad9-02848725956a",
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
)
"""What the engine writes for unknown values, by their type (`sdk/go/common/resource/plugin/rpc.go`)."""


@dataclass(frozen=True)
class InputChange:
    """One input that changes. `path` is a tuple of keys and indexes; a value is None where there is none."""

    path: tuple[str | int, ...]
    old_value: Any
    new_value: Any

    @property
    def old_text(self) -> str | None:
        """The old value as one short line, None for no value."""
        return format_short_value_or_none(self.old_value)

    @property
    def new_text(self) -> str | None:
        """The new value as one short line, None for no value."""
        return format_short_value_or_none(self.new_value)

    @property
    def path_text(self) -> str:
        """The path as declarations write it, without what all paths of a job begin with."""
        text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)
        return text.removeprefix(".").removeprefix("spec.")


def find_input_changes(step: Step) -> list[InputChange]:
    """Find the inputs that differ between both sides of a step, and those that the provider alone knows to differ."""
    if step.old_inputs is None or step.new_inputs is None:
        return []
    changes = list(_iterate_changes(step.old_inputs, step.new_inputs, ()))
    found = {str(change.path[0]) for change in changes}
    hidden = sorted(reason for reason in step.reasons - found if reason in {*step.old_inputs, *step.new_inputs})
    return changes + [InputChange((key,), step.old_inputs.get(key), step.new_inputs.get(key)) for key in hidden]


def find_value_changes(old: Any, new: Any) -> list[InputChange]:
    """Find what differs between two values, with its paths in them."""
    return list(_iterate_changes(old, new, ()))


def format_short_value_or_none(value: Any) -> str | None:
    """Return a value of a preview as one short line, or None for no value."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    if is_value_unknown_in_preview(value):
        return KNOWN_LATER
    for unknown in _UNKNOWNS:
        text = text.replace(unknown, KNOWN_LATER)
    return shorten_in_the_middle(text)


def is_value_unknown_in_preview(value: Any) -> bool:
    """Return whether a preview does not know a value."""
    return isinstance(value, str) and value in _UNKNOWNS


def shorten_in_the_middle(text: str, max_length: int = MAX_VALUE_LENGTH) -> str:
    """Return a text of at most `max_length` characters, cut in the middle: both ends of URIs tell what they are."""
    if len(text) <= max_length:
        return text
    half = (max_length - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def _iterate_changes(old: Any, new: Any, path: tuple[str | int, ...]) -> Iterator[InputChange]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _iterate_changes(old.get(key), new.get(key), (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            old_item, new_item = (side[index] if index < len(side) else None for side in (old, new))
            yield from _iterate_changes(old_item, new_item, (*path, index))
    elif old != new:
        yield InputChange(path, old, new)
