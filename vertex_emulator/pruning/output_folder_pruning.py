"""The output folders of pruned jobs: which of them nothing else refers to, and the removal of their objects."""

import contextlib
import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.gcs.metadata import MetadataDatabase

_URI_OR_MOUNTED_PATH = re.compile(r"(?:gs://|/gcs/)([a-z0-9][^\"'\\\s,;]*)")


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
    referred = sorted({match[1].rstrip("/") for text in other_texts for match in _URI_OR_MOUNTED_PATH.finditer(text)})
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


def remove_output_folders_and_count_objects(data: DataFolder, uris: Iterable[str], is_dry_run: bool) -> tuple[int, int]:
    """Remove folders of buckets unless it is a dry run; return the number of their objects and the bytes of them all.

    What a container has replaced meanwhile, or closed to this user, stays.
    """
    tree, objects, object_bytes = BucketTree(data.buckets), 0, 0
    with closing(MetadataDatabase(data.object_metadata)) as metadata:
        for uri in uris:
            for size in _remove_objects_and_iterate_sizes(tree, metadata, uri, is_dry_run):
                objects, object_bytes = objects + 1, object_bytes + size
    return objects, object_bytes


def _remove_objects_and_iterate_sizes(
    tree: BucketTree, metadata: MetadataDatabase, uri: str, is_dry_run: bool
) -> Iterator[int]:
    """Remove a folder of a bucket unless it is a dry run, and yield the size of each object in it."""
    try:
        with tree.scan(uri) as scan:
            entries = [
                (entry.name, entry.is_dir(follow_symlinks=False), _get_file_size_or_none(entry)) for entry in scan
            ]
    except (InvalidBucketUri, OSError):
        return
    for name, is_folder, size in entries:
        inner = f"{uri}/{name}"
        if is_folder:
            yield from _remove_objects_and_iterate_sizes(tree, metadata, inner, is_dry_run)
            continue
        with contextlib.suppress(InvalidBucketUri, OSError):
            if not is_dry_run:
                tree.unlink(inner)
                bucket, _, object_name = inner.removeprefix("gs://").partition("/")
                metadata.delete(bucket, object_name)
            if size is not None:
                yield size
    if not is_dry_run:
        with contextlib.suppress(InvalidBucketUri, OSError):
            tree.rmdir(uri)


def _get_file_size_or_none(entry: os.DirEntry[str]) -> int | None:
    """Return the bytes of a regular file; `None` for anything else."""
    return entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else None
