"""An object as a file and its metadata."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_emulator.gcs.object_metadata import (
    NO_METADATA,
    ObjectMetadata,
    guess_content_type_or_default,
)


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
