"""Rules for texts: formats of resource names, storage URIs and identifiers, and texts that are required."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.scalar_types import quote_value
from vertex_api.validation.rules.violation_type import KeyPath, Violation

_SEGMENTS = {"number": "[0-9]+", "region": "[a-z]+-[a-z]+[0-9]+", "object": r"[^\x00-\x1f]*"}


@dataclass(frozen=True)
class TextFormat:
    """A format: the `pattern` that a whole text must match, and the `requirement` as messages state it."""

    pattern: re.Pattern[str]
    requirement: str

    @classmethod
    def from_template(cls, template: str) -> "TextFormat":
        """Return the format of a template such as `projects/{project}/locations/{region}`."""
        parts = re.split(r"\{(\w+)\}", template)
        parts[::2] = map(re.escape, parts[::2])
        parts[1::2] = (_SEGMENTS.get(name, r"[^/\s]+") for name in parts[1::2])
        return cls(re.compile("".join(parts)), f"must have the form {template}")

    def matches(self, value: str) -> bool:
        """Return whether a text has this format."""
        return self.pattern.fullmatch(value) is not None

    def build_mismatch_message(self, value: str) -> str:
        """Return the message for a text without this format."""
        return f"{quote_value(value)} {self.requirement}"

    def find_violations_if_set(self, value: str | None, at: KeyPath) -> Iterator[Violation]:
        """Find a text that is set and does not have this format."""
        if value and not self.matches(value):
            yield at, self.build_mismatch_message(value)

    def find_required_field_violations(
        self, message: Mapping[str, Any], field: str, at: KeyPath
    ) -> Iterator[Violation]:
        """Find a required text of a message that is missing or does not have this format."""
        yield from find_unset_field_violations(message, [field], at)
        yield from self.find_violations_if_set(message[field], (*at, field))


def find_unset_field_violations(message: Mapping[str, Any], fields: Iterable[str], at: KeyPath) -> Iterator[Violation]:
    """Find required texts that are missing or empty, which is the same in proto3."""
    for field in fields:
        if not message.get(field):
            yield (*at, field), "is required"


STORAGE_URI = TextFormat(
    re.compile(r"gs://[a-z0-9][a-z0-9._-]*(/[^\x00-\x1f]*)?"), "must have the form gs://{bucket}/{object}"
)
C_IDENTIFIER = TextFormat(
    re.compile("[A-Za-z_][A-Za-z0-9_]*"), "must be letters, digits and underscores, and not start with a digit"
)
MODULE = TextFormat(re.compile(r"[^\s/.]+(\.[^\s/.]+)*"), "must be the name of a Python module, such as trainer.task")
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])"
_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
IMAGE = TextFormat(
    re.compile(
        rf"(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
        "(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
        "(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
    ),
    "must be the name of an image, {host}/{path}:{tag} or {host}/{path}@{digest}, with a path in lower case",
)
"""The grammar of the OCI's implementation of registries (distribution, package reference). Short names are names."""
NETWORK = TextFormat.from_template("projects/{number}/global/networks/{network}")
"""A VPC network; discovery document, CustomJobSpec.network: "where {project} is a project number"."""
NETWORK_ATTACHMENT = TextFormat.from_template("projects/{project}/regions/{region}/networkAttachments/{attachment}")
TENSORBOARD = TextFormat.from_template("projects/{project}/locations/{region}/tensorboards/{tensorboard}")
COMPUTE_NAME = TextFormat(
    re.compile("[a-z]([a-z0-9-]{0,61}[a-z0-9])?"),
    "must be at most 63 lower-case letters, digits and hyphens, start with a letter and not end with a hyphen",
)
PERSISTENT_RESOURCE_ID = COMPUTE_NAME
"""Discovery document, persistentResources.create: the same characters and length as a name of Compute Engine."""
