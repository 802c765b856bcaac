"""Digests of a folder's files, each read once for as long as it does not change.

What was read is remembered in the user's cache folder by its signature. As in git's index, a file that changed shortly
before it was read is not remembered, for its times may be those of the next change too.
"""

import hashlib
import json
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from .cache import cache_file, load, save
from .signatures import parted, settled, signature, signatures, size

SMALL_FILES = 200
SMALL_BYTES = 2 << 20
"""Folders up to so many files and bytes are read as quickly as a cache is."""
_BLOCK = 1 << 20
_BATCH = 32
_THREADS = min(8, (os.cpu_count() or 1) + 1)

_FORMAT = b"digests 2"
"""Part of a cache's name, so that none of another release is read."""
Entries = Mapping[str, tuple[bytes, str]]
"""Signature and digest by relative path."""


def digests(folder: Path, paths: Collection[str]) -> dict[str, str]:
    """SHA-256 of each of a folder's files by relative path, in the order of `paths`.

    That of an executable file begins with `x:`, and that of a link with `link:`; a link's is of where it leads.
    """
    begun = time.time_ns()
    root = f"{folder}/"
    found = signatures(root, paths)
    if len(paths) <= SMALL_FILES and size(found) <= SMALL_BYTES:
        return {path: _read(root + path)[1] for path in paths}
    cache = cache_file("digests", _FORMAT, os.fsencode(folder.resolve()))
    before = _entries(load(cache))
    now = dict(zip(paths, parted(found), strict=True))
    same = {path: before[path] for path in paths if path in before and before[path][0] == now[path]}
    new = _read_all(root, [path for path in paths if path not in same])
    # Not what changed while it was read, nor what may change again without its times telling.
    kept = same | {path: entry for path, entry in new.items() if entry[0] == now[path] and settled(entry[0], begun)}
    # Another image may be built from other files of this folder.
    others = {path: before[path] for path in before.keys() - now.keys() if os.path.lexists(root + path)}
    after = kept | others
    if after != before:
        save(cache, _content(after))
    return {path: (same.get(path) or new[path])[1] for path in paths}


def _entries(content: bytes | None) -> Entries:
    if content is None:
        return {}
    known, _, many = content.partition(b"\n")
    found: dict[str, str] = json.loads(known)
    return dict(zip(found, zip(parted(many), found.values(), strict=True), strict=True))


def _content(entries: Entries) -> bytes:
    known = json.dumps({path: digest for path, (_, digest) in entries.items()}).encode()
    return known + b"\n" + b"".join(many for many, _ in entries.values())


def _read_all(root: str, paths: list[str]) -> dict[str, tuple[bytes, str]]:
    """What is read of each file, several at a time."""
    if not paths:
        return {}
    from concurrent.futures import ThreadPoolExecutor

    batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
    with ThreadPoolExecutor(_THREADS) as pool:
        read = pool.map(lambda batch: [(path, _read(root + path)) for path in batch], batches)
        return {path: entry for batch in read for path, entry in batch}


def _read(file: str) -> tuple[bytes, str]:
    """Signature (as it is after the last byte was read) and digest of a file or a link."""
    if os.path.islink(file):  # noqa: PTH114
        target = os.readlink(file)  # noqa: PTH115
        return signature(os.lstat(file)), "link:" + hashlib.sha256(os.fsencode(target)).hexdigest()
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        digest = hashlib.sha256()
        while block := os.read(descriptor, _BLOCK):
            digest.update(block)
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return signature(status), "x:" * bool(status.st_mode & 0o100) + digest.hexdigest()
