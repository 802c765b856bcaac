"""Digests of folders and their files. A file is read once and then again only after it changes.

Digests of large folders are cached in the user's cache folder with each file's signature. As in git's index, a file
that changed shortly before it was read is not cached: its next change may have the same times.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from .cache_files import (
    get_cache_file_path,
    read_cache_file_or_none,
    try_to_write_cache_file_and_prune,
)
from .stat_signatures import is_stable, pack_signature, read_packed_signatures, split_packed_signatures, sum_file_sizes

TAG_LENGTH = 16
"""Hex digits of a digest in an image's tag or a package's name: 64 bits, enough for a registry of any size."""
MAX_LISTED_FILES = 200
"""Up to this many files, each file's digest is an input, so that a preview names the files that changed."""
MAX_UNCACHED_FILES = 200
MAX_UNCACHED_BYTES = 2 << 20
"""Folders of at most this many files and bytes are read as quickly as a cache is."""
_BLOCK_BYTES = 1 << 20
_BATCH_FILES = 32
_THREADS = min(8, (os.cpu_count() or 1) + 1)

_CACHE_FORMAT, _FOLDER_CACHE_FORMAT = b"digests 2", b"whole 1"
"""Part of a cache file's name, so that no release reads the cache of another format."""
SignatureAndDigest = tuple[bytes, str]
"""A file's signature and digest."""


def get_short_digests_or_none_if_many(digests: Mapping[str, str]) -> dict[str, str] | None:
    """Return ten digits of each file's digest by path; `None` for more than `MAX_LISTED_FILES` files."""
    return {path: digest[:10] for path, digest in digests.items()} if len(digests) <= MAX_LISTED_FILES else None


def get_cached_or_compute_folder_digest(
    folder: Path, paths: Collection[str], options: str, compute_digest: Callable[[], str]
) -> str:
    """Return the cached result of `compute_digest`, or call it if a file of the folder, `paths` or `options` changed.

    `paths` are relative to the folder and `options` is everything else that the digest depends on. Only each file's
    status and one cache file are read. The result is not cached if a file changed during the call, or so shortly before
    that its next change may have the same times. Raises OSError.
    """
    if len(paths) <= MAX_UNCACHED_FILES:
        return compute_digest()
    root, start = f"{folder}/", time.time_ns()
    signatures = read_packed_signatures(root, paths)
    key = (os.fsencode(folder.resolve()), options.encode(), os.fsencode("\0".join(paths)), signatures)
    cache_file = get_cache_file_path("contexts", _FOLDER_CACHE_FORMAT, *key)
    if (cached := read_cache_file_or_none(cache_file)) is not None:
        return cached.decode()
    digest = compute_digest()
    if is_stable(signatures, start) and read_packed_signatures(root, paths) == signatures:
        try_to_write_cache_file_and_prune(cache_file, digest.encode())
    return digest


def get_cached_or_compute_file_digests(folder: Path, paths: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of each of a folder's files by relative path, in the order of `paths`. Raises OSError.

    An executable file's digest starts with `x:`. A link's starts with `link:` and is that of its target's path.
    """
    root, start = f"{folder}/", time.time_ns()
    signatures = read_packed_signatures(root, paths)
    if len(paths) <= MAX_UNCACHED_FILES and sum_file_sizes(signatures) <= MAX_UNCACHED_BYTES:
        return {path: _compute_signature_and_digest(root + path)[1] for path in paths}
    cache_file = get_cache_file_path("digests", _CACHE_FORMAT, os.fsencode(folder.resolve()))
    cache_content = read_cache_file_or_none(cache_file)
    cached = _parse_signatures_and_digests(cache_content) if cache_content else {}
    current = dict(zip(paths, split_packed_signatures(signatures), strict=True))
    unchanged = {path: cached[path] for path in paths if path in cached and cached[path][0] == current[path]}
    hashed = _compute_signatures_and_digests(root, [path for path in paths if path not in unchanged])
    # Neither files that changed while they were read, nor files whose next change may have the same times.
    stable = {path: entry for path, entry in hashed.items() if entry[0] == current[path] and is_stable(entry[0], start)}
    # Another image may be built from other files of this folder.
    others = {path: cached[path] for path in cached.keys() - current.keys() if os.path.lexists(root + path)}
    latest = unchanged | stable | others
    if latest != cached:
        try_to_write_cache_file_and_prune(cache_file, _serialize_signatures_and_digests(latest))
    return {path: (unchanged.get(path) or hashed[path])[1] for path in paths}


def _parse_signatures_and_digests(cache_content: bytes) -> dict[str, SignatureAndDigest]:
    json_text, _, signatures = cache_content.partition(b"\n")
    digests: dict[str, str] = json.loads(json_text)
    return dict(zip(digests, zip(split_packed_signatures(signatures), digests.values(), strict=True), strict=True))


def _serialize_signatures_and_digests(entries: Mapping[str, SignatureAndDigest]) -> bytes:
    json_text = json.dumps({path: digest for path, (_, digest) in entries.items()}).encode()
    return json_text + b"\n" + b"".join(signature for signature, _ in entries.values())


def _compute_signatures_and_digests(root: str, paths: list[str]) -> dict[str, SignatureAndDigest]:
    """Hash files at `root + path` in several threads."""
    if not paths:
        return {}
    from concurrent.futures import ThreadPoolExecutor

    batches = [paths[start : start + _BATCH_FILES] for start in range(0, len(paths), _BATCH_FILES)]
    with ThreadPoolExecutor(_THREADS) as pool:
        hashed = pool.map(lambda batch: [(path, _compute_signature_and_digest(root + path)) for path in batch], batches)
        return {path: entry for batch in hashed for path, entry in batch}


def _compute_signature_and_digest(file: str) -> SignatureAndDigest:
    """Return the digest of a file or a link, and its signature as it is after the last byte was read."""
    if os.path.islink(file):  # noqa: PTH114
        target = os.readlink(file)  # noqa: PTH115
        return pack_signature(os.lstat(file)), "link:" + hashlib.sha256(os.fsencode(target)).hexdigest()
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        digest = hashlib.sha256()
        while block := os.read(descriptor, _BLOCK_BYTES):
            digest.update(block)
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return pack_signature(status), "x:" * bool(status.st_mode & 0o100) + digest.hexdigest()
