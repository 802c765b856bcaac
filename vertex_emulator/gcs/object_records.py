"""The records of an object: what is stored under its name, and the metadata of one of its generations."""

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ObjectMetadata:
    """The metadata of one generation of an object.

    `fields` are those of the Objects resource that clients set; `updated` is the time of the last change of them in ns,
    None if they are as they were when the object was created.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    metageneration: int = 1
    updated: int | None = None


NO_METADATA = ObjectMetadata()


@dataclass(frozen=True)
class StoredObject:
    """A file of a bucket; `generation` is its modification time in nanoseconds, `size` its bytes."""

    bucket: str
    name: str
    generation: int
    size: int
    metadata: ObjectMetadata = NO_METADATA

    @property
    def content_type(self) -> str:
        """The media type that a client has set, or the one that the name's ending suggests."""
        return str(self.metadata.fields.get("contentType") or guess_content_type_or_default(self.name))

    @property
    def fields_of_copy(self) -> Mapping[str, Any]:
        """The metadata of an object that becomes a copy of this one, under any name."""
        return {**self.metadata.fields, "contentType": self.content_type}


def guess_content_type_or_default(name: str) -> str:
    """Return the media type that a file name's ending suggests."""
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
