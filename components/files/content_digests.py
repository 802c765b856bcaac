"""Content digests as they are shown: in the tag of an image, the name of a package, and the inputs of both."""

from collections.abc import Mapping

TAG_LENGTH = 16
"""Hex digits of the digest in a tag: 64 bits, enough for a registry of any size."""
MAX_LISTED_FILES = 200
"""Up to this many files, each file's digest is an input, so that a preview names the files that changed."""


def short_digests(digests: Mapping[str, str]) -> dict[str, str] | None:
    """Return ten digits of each file's digest by path; `None` for more than `MAX_LISTED_FILES` files."""
    return {path: digest[:10] for path, digest in digests.items()} if len(digests) <= MAX_LISTED_FILES else None
