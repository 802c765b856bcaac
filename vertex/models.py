"""What is wrong with a model that is to be uploaded."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex import types
from vertex.rules import Finding, KeyPath, resource, unions

_ID = re.compile(r"[a-z_][a-z0-9_-]{0,62}")
_ALIAS = re.compile(r"[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]")


def broken(model: Mapping[str, Any], at: KeyPath = ()) -> Iterator[Finding]:
    """Every rule that a canonical Model breaks (discovery document, Model)."""
    yield from resource.broken(model, at)
    yield from unions.broken(types.Model, model, at)
    for index, alias in enumerate(model.get("versionAliases", [])):
        if not _ALIAS.fullmatch(alias):
            message = f'"{alias}" must be 2 to 128 letters, digits and hyphens, and start with a lower-case letter'
            yield (*at, "versionAliases", index), message


def id_broken(model_id: str, at: KeyPath) -> Iterator[Finding]:
    """The rule for an id that a client chooses (discovery document, UploadModelRequest.modelId)."""
    if not _ID.fullmatch(model_id):
        yield at, f'"{model_id}" must be at most 63 of [a-z0-9_-], and not start with a number or hyphen'
