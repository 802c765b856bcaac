"""The digest of a whole folder, cached until one of its files changes.

A warm preview reads neither the files nor their cached digests: only each file's status and one cache file.
"""

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

from .cache import get_cache_file, read_cache_file, write_cache_file
from .digests import MAX_UNCACHED_FILES
from .signatures import is_stable, read_signatures

_CACHE_FORMAT = b"whole 1"
"""Part of a cache file's name, so that no release reads the cache of another format."""


def get_cached_digest(folder: Path, paths: Collection[str], options: str, compute_digest: Callable[[], str]) -> str:
    """Return the cached result of `compute_digest`, or call it if a file of the folder, `paths` or `options` changed.

    `paths` are relative to the folder and `options` is everything else that the digest depends on. The result is not
    cached if a file changed during the call, or so shortly before that its next change may have the same times. Raises
    OSError.
    """
    if len(paths) <= MAX_UNCACHED_FILES:
        return compute_digest()
    root, start = f"{folder}/", time.time_ns()
    signatures = read_signatures(root, paths)
    names = "\0".join(paths).encode(errors="surrogateescape")
    place = os.fsencode(folder.resolve())
    cache_file = get_cache_file("contexts", _CACHE_FORMAT, place, options.encode(), names, signatures)
    cached = read_cache_file(cache_file)
    if cached is not None:
        return cached.decode()
    digest = compute_digest()
    if is_stable(signatures, start) and read_signatures(root, paths) == signatures:
        write_cache_file(cache_file, digest.encode())
    return digest
