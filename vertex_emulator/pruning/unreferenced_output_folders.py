"""The output folders of jobs, and which of them nothing else refers to."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

_URI = re.compile(r"(?:gs://|/gcs/)([a-z0-9][^\"'\\\s,;]*)")


def find_base_output_uri_or_none(spec: Mapping[str, Any]) -> str | None:
    """Return the base output directory of a custom or tuning job without "/" at its end; `None` without one."""
    job_spec = spec.get("jobSpec") or spec.get("trialJobSpec") or {}
    uri = job_spec.get("baseOutputDirectory", {}).get("outputUriPrefix", "").rstrip("/")
    return uri or None


def split_into_unreferenced_and_referenced_uris(
    uris: Iterable[str], other_texts: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Return the URIs to which no other text refers, and those to which one does, each in order.

    A text refers to a folder by its URI or its path below /gcs, or by those of anything in it or of a folder above it.
    A whole bucket is never unreferenced, and its name alone is no reference to what is in it.
    """
    referred = sorted({match[1].rstrip("/") for text in other_texts for match in _URI.finditer(text)})
    names = set(referred)
    unreferenced, kept = list[str](), list[str]()
    for uri in sorted(set(uris)):
        name = uri.removeprefix("gs://")
        first_inside = bisect_left(referred, f"{name}/")
        has_inside = first_inside < len(referred) and referred[first_inside].startswith(f"{name}/")
        parts = name.split("/")
        is_inside_other = any("/".join(parts[:end]) in names for end in range(2, len(parts) + 1))
        (kept if has_inside or is_inside_other or len(parts) == 1 else unreferenced).append(uri)
    return unreferenced, kept
