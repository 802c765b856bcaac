"""Rules for texts: names, URIs and identifiers, and the fields that every resource has."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.messages import KeyPath
from vertex_api.scalars import quote

Violation = tuple[KeyPath, str]


class Structure(str):
    """The message of a rule without which nobody can tell what a job runs. A job cannot lift it."""


_SEGMENTS = {"number": "[0-9]+", "region": "[a-z]+-[a-z]+[0-9]+", "object": r"[^\x00-\x1f]*"}


@dataclass(frozen=True)
class Format:
    """A format: the `pattern` that a whole text must match, and the `requirement` as messages state it."""

    pattern: re.Pattern[str]
    requirement: str

    @classmethod
    def from_template(cls, template: str) -> "Format":
        """Return the format of a template such as `projects/{project}/locations/{region}`."""
        parts = re.split(r"\{(\w+)\}", template)
        parts[::2] = map(re.escape, parts[::2])
        parts[1::2] = (_SEGMENTS.get(name, r"[^/\s]+") for name in parts[1::2])
        return cls(re.compile("".join(parts)), f"must have the form {template}")

    def matches(self, value: str) -> bool:
        """Return whether a text has this format."""
        return self.pattern.fullmatch(value) is not None

    def mismatch(self, value: str) -> str:
        """Return the message for a text without this format."""
        return f"{quote(value)} {self.requirement}"

    def check(self, value: str | None, at: KeyPath) -> Iterator[Violation]:
        """Discovery document, at the field: "Format: …"; for an image the grammar of registries.

        A text that is not set has none.
        """
        if value and not self.matches(value):
            yield at, self.mismatch(value)

    def require(self, message: Mapping[str, Any], field: str, at: KeyPath) -> Iterator[Violation]:
        """Find a required text of a message that is missing or does not have this format."""
        yield from check_set(message, [field], at)
        yield from self.check(message[field], (*at, field))


def check_set(message: Mapping[str, Any], fields: Iterable[str], at: KeyPath) -> Iterator[Violation]:
    """Discovery document: fields that are required. A text that is missing is empty, which is the same in proto3."""
    for field in fields:
        if not message.get(field):
            yield (*at, field), Structure("is required")


STORAGE_URI = Format(
    re.compile(r"gs://[a-z0-9][a-z0-9._-]*(/[^\x00-\x1f]*)?"), "must have the form gs://{bucket}/{object}"
)
C_IDENTIFIER = Format(
    re.compile("[A-Za-z_][A-Za-z0-9_]*"), "must be letters, digits and underscores, and not start with a digit"
)
MODULE = Format(
    re.compile(r"(?!.*\.py$)[^\s/.]+(\.[^\s/.]+)*"),
    "must be the name of a Python module, such as trainer.task, without .py",
)
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])"
_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
IMAGE = Format(
    re.compile(
        rf"(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
        "(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
        "(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
    ),
    "must be the name of an image, {host}/{path}:{tag} or {host}/{path}@{digest}, with a path in lower case",
)
"""The grammar of the OCI's implementation of registries (distribution, package reference). Short names are names."""
NETWORK = Format.from_template("projects/{number}/global/networks/{network}")
"""A VPC network; discovery document, CustomJobSpec.network: "where {project} is a project number"."""
NETWORK_ATTACHMENT = Format.from_template("projects/{project}/regions/{region}/networkAttachments/{attachment}")
TENSORBOARD = Format.from_template("projects/{project}/locations/{region}/tensorboards/{tensorboard}")
COMPUTE_NAME = Format(
    re.compile("[a-z]([a-z0-9-]{0,61}[a-z0-9])?"),
    "must be at most 63 lower-case letters, digits and hyphens, start with a letter and not end with a hyphen",
)
PERSISTENT_RESOURCE_ID = COMPUTE_NAME
"""Discovery document, persistentResources.create: the same characters and length as a name of Compute Engine."""

_KEY = Format.from_template("projects/{project}/locations/{region}/keyRings/{key_ring}/cryptoKeys/{crypto_key}")
_MAX_NAME_LENGTH = 128
MAX_LABELS = 64
_LABEL_CHARACTERS, _LABEL_BYTES = 63, 127


def check_common(resource: Mapping[str, Any], at: KeyPath = ()) -> Iterator[Violation]:
    """Discovery document, `displayName` of a CustomJob: "up to 128 characters long and can consist of any UTF-8
    characters". Of these NUL is left out here, as no program can show or pass on such a name."""
    yield from check_set(resource, ["displayName"], at)
    if len(resource.get("displayName", "")) > _MAX_NAME_LENGTH:
        yield (*at, "displayName"), f"is longer than {_MAX_NAME_LENGTH} characters"
    if "\0" in resource.get("displayName", ""):
        yield (*at, "displayName"), "holds the character NUL (\\0)"
    yield from check_labels(resource.get("labels", {}), (*at, "labels"))
    if "encryptionSpec" in resource:
        path = (*at, "encryptionSpec")
        yield from _KEY.require(resource["encryptionSpec"], "kmsKeyName", path)


def check_labels(labels: Mapping[str, str], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for labels: discovery document, `labels`, and the service's own error ("less than 64
    characters and less than 128 UTF-8 bytes", keys "start with a letter or number"), quoted in public."""
    if len(labels) > MAX_LABELS:
        yield at, f"has {len(labels)} labels; at most {MAX_LABELS} are allowed"
    for key, value in labels.items():
        yield from _check_label("key", key, at)
        if not key or key[0] in "_-":
            yield at, f"the key {quote(key)} must start with a lower-case letter or a digit"
        yield from _check_label("value", value, (*at, key))


def _check_label(noun: str, text: str, at: KeyPath) -> Iterator[Violation]:
    """The service's own error, as for `check_labels`."""
    if not all(map(_is_label_character, text)):
        yield at, f"the {noun} {quote(text)} may hold lower-case letters, digits, underscores and dashes only"
    if len(text) > _LABEL_CHARACTERS or len(text.encode(errors="replace")) > _LABEL_BYTES:
        yield at, f"the {noun} {quote(text)} must be shorter than 64 characters and than 128 bytes of UTF-8"


def _is_label_character(character: str) -> bool:
    """Return whether labels may have a character: letters of all scripts, not in upper case, marks and digits."""
    category = unicodedata.category(character)
    return character in "_-" or (category[0] in "LMN" and category not in ("Lu", "Lt"))
