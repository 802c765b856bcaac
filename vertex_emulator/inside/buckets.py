"""Calls of Cloud Storage's JSON API, as their paths name them: of which bucket and object, and what they write."""

from dataclasses import dataclass
from urllib.parse import unquote

HOST = "storage.googleapis.com"


@dataclass(frozen=True)
class BucketCall:
    """A call; names are decoded. `place` is "upload", "download" or "", `bucket` "" for a call on all buckets.

    `rest` is what follows the bucket. A `verb` (copyTo, rewriteTo, moveTo, compose) leads from the object `name` to
    `target` in the bucket `to`, which for all other calls is `bucket`.
    """

    place: str
    bucket: str
    rest: tuple[str, ...]
    name: str
    to: str
    verb: str = ""
    target: str = ""

    @classmethod
    def parse(cls, method: str, raw_path: bytes) -> "BucketCall | None":
        """Return the call of a path; None for paths that are none of the JSON API's."""
        parts, place = [unquote(part) for part in raw_path.decode("latin-1").split("/")[1:]], ""
        while parts and parts[0] in ("resumable", "upload", "download"):
            place = parts.pop(0)
        if parts[:3] != ["storage", "v1", "b"]:
            return None
        bucket, *rest = parts[3:] or [""]
        for at in range(2, len(rest) if method == "POST" else 0):
            name = "/".join(rest[1:at])
            match rest[at:]:
                case ["copyTo" | "rewriteTo" as verb, "b", other, "o", *target]:
                    return cls(place, bucket, tuple(rest), name, other, verb, "/".join(target))
                case ["moveTo" as verb, "o", *target]:
                    return cls(place, bucket, tuple(rest), name, bucket, verb, "/".join(target))
                case ["compose" as verb]:
                    return cls(place, bucket, tuple(rest), name, bucket, verb, name)
        return cls(place, bucket, tuple(rest), "/".join(rest[1:]), bucket)
