"""JSON bodies with random changes."""

import copy
import json
from random import Random
from typing import Any

from tests.faults.hostile.values import JSON_TEXTS, JSON_VALUES
from tests.vertex_emulator.running import IMAGE

# No other image is named, lest random names reach a registry.
_NO_IMAGE = "127.0.0.1:9/none:1"
_IMAGES = (IMAGE, _NO_IMAGE, "A B", "")


def build_json_body(dice: Random, value: Any) -> tuple[bytes, list[tuple[str, str]]]:
    """Return a body, mostly with changes to `value`, and its headers."""
    value = copy.deepcopy(value)
    for _ in range(dice.choice([0, 0, 1, 1, 2, 5])):
        value = _mutate(dice, value)
    _restrict_images(value)
    text = json.dumps(value).encode()
    kind = dice.random()
    if kind < 0.05:
        text = text[: dice.randrange(len(text) + 1)]
    elif kind < 0.08:
        text = dice.choice(JSON_TEXTS)
    media_type = "application/json" if dice.random() < 0.95 else dice.choice(["text/plain", "", "application/json;;"])
    return text, [("Content-Type", media_type)]


def _mutate(dice: Random, value: Any) -> Any:
    """Return the value with one change somewhere."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key, kind = dice.choice(sorted(value)), dice.random()
        if kind < 0.15:
            return {each: content for each, content in value.items() if each != key}
        if kind < 0.3:
            added = dice.choice(["", "x", key.upper(), f"{key}s", "\0", "a" * 70_000])
            return {**value, added: copy.deepcopy(dice.choice(JSON_VALUES))}
        return {**value, key: _mutate(dice, value[key])}
    if isinstance(value, list) and value and dice.random() < 0.8:
        if dice.random() < 0.2:
            return value * 3
        position = dice.randrange(len(value))
        return [*value[:position], _mutate(dice, value[position]), *value[position + 1 :]]
    return copy.deepcopy(dice.choice(JSON_VALUES))


def _restrict_images(value: Any) -> None:
    """Replace all images, in place, that are none of _IMAGES."""
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _restrict_images(each)
    if isinstance(value, dict):
        for key in value:
            if "image" in key.lower() and value[key] not in _IMAGES:
                value[key] = _NO_IMAGE
