"""The names of objects in order, read a limited number at a time, however many files a folder has."""

import heapq
import os
from collections.abc import Iterator

from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.gs_uri import MAX_OBJECT_NAME_BYTES, MAX_PARTS, is_utf8_encodable, parse_gs_uri_parts
from vertex_emulator.gcs.symlink_safe_bucket_files import BucketFileTree

# The first holds a page of names, so that a folder is read once for it; the last bounds the memory of longer walks.
_FIRST_BATCH, _MAX_BATCH = 2_000, 100_000


def iterate_object_names(
    tree: BucketFileTree, bucket: str, prefix: str = "", after: str = "", folders_as_prefixes: bool = False
) -> Iterator[str]:
    """Yield the names of objects that start with `prefix` and sort after `after`, in order.

    With `folders_as_prefixes`, a folder below `prefix` is yielded in place of the objects in it, as `name/`.
    """
    yield from _iterate_names_below(tree, bucket, "", prefix, after, folders_as_prefixes)


def has_objects(tree: BucketFileTree, uri: str) -> bool:
    """Return whether there is an object below a URI. Raises InvalidBucketUri and OSError."""
    bucket, *parts = parse_gs_uri_parts(uri)
    return _has_objects_below(tree, bucket, "".join(f"{part}/" for part in parts))


def _has_objects_below(tree: BucketFileTree, bucket: str, parent: str) -> bool:
    subfolders = []
    try:
        for name in _iterate_unsorted_names_in_folder(tree, bucket, parent):
            if not name.endswith("/"):
                return True
            subfolders.append(name)
    except PermissionError:
        return True  # whoever closed the folder to the emulator's user keeps something in it
    return any(_has_objects_below(tree, bucket, name) for name in subfolders)


def _iterate_names_below(
    tree: BucketFileTree, bucket: str, parent: str, prefix: str, after: str, folders_as_prefixes: bool
) -> Iterator[str]:
    def is_or_contains_wanted_name(name: str) -> bool:
        if name.endswith("/"):
            has_prefix = name.startswith(prefix) or prefix.startswith(name)
            return has_prefix and (name > after or after.startswith(name))
        return name.startswith(prefix) and name > after

    last, size = "", _FIRST_BATCH
    while True:
        # A folder sorts as its name with "/", so that all names below it come in the order of whole names.
        names = (
            name
            for name in _iterate_unsorted_names_in_folder(tree, bucket, parent)
            if name > last and is_or_contains_wanted_name(name)
        )
        batch = heapq.nsmallest(size, names)
        for name in batch:
            if not name.endswith("/"):
                yield name
            elif not folders_as_prefixes or not name.startswith(prefix) or name == prefix:
                yield from _iterate_names_below(tree, bucket, name, prefix, after, folders_as_prefixes)
            elif after.startswith(name):
                if next(_iterate_names_below(tree, bucket, name, prefix, after, False), None) is not None:
                    yield name
            elif _has_objects_below(tree, bucket, name):
                yield name
        if len(batch) < size:
            return
        last, size = batch[-1], min(10 * size, _MAX_BATCH)


def _iterate_unsorted_names_in_folder(tree: BucketFileTree, bucket: str, parent: str) -> Iterator[str]:
    """Yield the names of objects in a folder and, with "/", of its subfolders; none if a container has
    deleted or replaced it."""
    try:
        with tree.open_folder_scan(f"gs://{bucket}/{parent}") as entries:
            for entry in entries:
                name = _get_object_or_folder_name_or_none(entry, parent)
                if name is not None:
                    yield name
    except (FileNotFoundError, NotADirectoryError, InvalidBucketUri):
        return


def _get_object_or_folder_name_or_none(entry: os.DirEntry[str], parent: str) -> str | None:
    if entry.is_dir(follow_symlinks=False):
        name = f"{parent}{entry.name}/"
    elif entry.is_file(follow_symlinks=False):
        name = parent + entry.name
    else:
        return None
    if name.count("/") >= MAX_PARTS or not is_utf8_encodable(name) or len(name.encode()) > MAX_OBJECT_NAME_BYTES:
        return None
    return name
