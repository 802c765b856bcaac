"""Rules for the fields of every resource: display name, labels, encryption key."""

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.scalar_types import quote_value
from vertex_api.validation.rules.text_formats import TextFormat, find_unset_field_violations
from vertex_api.validation.rules.violation_type import KeyPath, Violation

_KEY = TextFormat.from_template("projects/{project}/locations/{region}/keyRings/{key_ring}/cryptoKeys/{crypto_key}")
_MAX_NAME_LENGTH = 128
MAX_LABELS = 64
_LABEL_CHARACTERS, _LABEL_BYTES = 63, 127


def find_common_field_violations(resource: Mapping[str, Any], at: KeyPath = ()) -> Iterator[Violation]:
    """Find violations of the rules for a display name, labels and encryption key (discovery document)."""
    yield from find_unset_field_violations(resource, ["displayName"], at)
    if len(resource.get("displayName", "")) > _MAX_NAME_LENGTH:
        yield (*at, "displayName"), f"is longer than {_MAX_NAME_LENGTH} characters"
    if "\0" in resource.get("displayName", ""):
        # "Any UTF-8 characters" (discovery document) include it; no program can show or pass on such a name.
        yield (*at, "displayName"), "holds the character NUL (\\0)"
    yield from find_label_violations(resource.get("labels", {}), (*at, "labels"))
    if "encryptionSpec" in resource:
        path = (*at, "encryptionSpec")
        yield from _KEY.find_required_field_violations(resource["encryptionSpec"], "kmsKeyName", path)


def find_label_violations(labels: Mapping[str, str], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for labels: discovery document, `labels`, and the service's own error ("less than 64
    characters and less than 128 UTF-8 bytes", keys "start with a letter or number"), quoted in public."""
    if len(labels) > MAX_LABELS:
        yield at, f"has {len(labels)} labels; at most {MAX_LABELS} are allowed"
    for key, value in labels.items():
        yield from _find_label_text_violations("key", key, at)
        if not key or key[0] in "_-":
            yield at, f"the key {quote_value(key)} must start with a lower-case letter or a digit"
        yield from _find_label_text_violations("value", value, (*at, key))


def _find_label_text_violations(noun: str, text: str, at: KeyPath) -> Iterator[Violation]:
    if not all(map(_is_label_character, text)):
        yield at, f"the {noun} {quote_value(text)} may hold lower-case letters, digits, underscores and dashes only"
    if len(text) > _LABEL_CHARACTERS or len(text.encode(errors="replace")) > _LABEL_BYTES:
        yield at, f"the {noun} {quote_value(text)} must be shorter than 64 characters and than 128 bytes of UTF-8"


def _is_label_character(character: str) -> bool:
    """Return whether labels may have a character: letters of all scripts, not in upper case, marks and digits."""
    category = unicodedata.category(character)
    return character in "_-" or (category[0] in "LMN" and category not in ("Lu", "Lt"))
