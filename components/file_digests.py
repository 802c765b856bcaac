"""Digests of a folder's files, each read once for as long as it does not change.

What was read is remembered in the user's cache folder, by size, times, inode and mode. As in git's index, a file that
changed shortly before it was read is not remembered, for its times may be those of the next change too. A cache that
cannot be read or written costs time and nothing else.
"""

import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

SMALL_FILES = 200
SMALL_BYTES = 2 << 20
"""Folders up to so many files and bytes are read as quickly as a cache is."""
SETTLED_NS = 2_000_000_000
"""How old a change must be to be told from a later one by its time; FAT keeps times to two seconds."""
MOST_CACHES = 64
"""So many folders are remembered."""
_BLOCK = 1 << 20
_BATCH = 32
_THREADS = min(8, (os.cpu_count() or 1) + 1)

Signature = tuple[int, int, int, int, int]
"""Size, mtime and ctime in nanoseconds, inode, mode."""
Known = Mapping[str, tuple[Signature, str]]
"""Signature and digest by relative path."""


def digests(folder: Path, paths: Iterable[str]) -> dict[str, str]:
    """SHA-256 of each of a folder's files by relative path, in the order of `paths`.

    That of an executable file begins with `x:`, and that of a link with `link:`; a link's is of where it leads.
    """
    begun = time.time_ns()
    root = f"{folder}/"
    found: dict[str, str] = {}
    files: dict[str, Signature] = {}
    for path in paths:
        status = os.lstat(root + path)
        found[path] = ""
        if stat.S_ISLNK(status.st_mode):
            found[path] = "link:" + hashlib.sha256(os.fsencode(os.readlink(root + path))).hexdigest()  # noqa: PTH115
        else:
            files[path] = _signature(status)
    if len(files) <= SMALL_FILES and sum(signature[0] for signature in files.values()) <= SMALL_BYTES:
        return found | {path: _read(root + path)[1] for path in files}
    cache = _cache_file(folder)
    known = _load(cache)
    unknown = []
    for path, signature in files.items():
        remembered = known.get(path)
        if remembered and remembered[0] == signature:
            found[path] = remembered[1]
        else:
            unknown.append(path)
    new = _read_all(root, unknown)
    found |= {path: digest for path, (_, digest) in new.items()}
    # Not what changed while it was read, nor what may change again without its times telling.
    settled = {
        path: (signature, digest)
        for path, (signature, digest) in new.items()
        if signature == files[path] and max(signature[1:3]) < begun - SETTLED_NS
    }
    if settled:
        # Another image may be built from other files of this folder.
        others = {path: entry for path, entry in known.items() if path not in files and os.path.lexists(root + path)}
        same = {path: entry for path, entry in known.items() if path in files and path not in new}
        _save(cache, others | same | settled)
    return found


def _signature(status: os.stat_result) -> Signature:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode


def _read_all(root: str, paths: list[str]) -> dict[str, tuple[Signature, str]]:
    """Signature and digest of each file, several at a time."""
    if not paths:
        return {}
    from concurrent.futures import ThreadPoolExecutor

    batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
    with ThreadPoolExecutor(_THREADS) as pool:
        read = pool.map(lambda batch: [(path, _read(root + path)) for path in batch], batches)
        return {path: entry for batch in read for path, entry in batch}


def _read(file: str) -> tuple[Signature, str]:
    """Signature (as it is after the last byte was read) and digest of a file."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        digest = hashlib.sha256()
        while block := os.read(descriptor, _BLOCK):
            digest.update(block)
        signature = _signature(os.fstat(descriptor))
    finally:
        os.close(descriptor)
    return signature, "x:" * bool(signature[4] & 0o100) + digest.hexdigest()


def _cache_file(folder: Path) -> Path | None:
    """Where a folder's digests are remembered, if anywhere."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = configured if configured.is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # no home
        return None
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
    return base / "vertex-training" / "digests" / name


def _load(cache: Path | None) -> Known:
    """What is remembered; nothing where the cache is not exactly as it was written."""
    if cache is None:
        return {}
    try:
        checksum, _, body = cache.read_bytes().partition(b"\n")
    except OSError:
        return {}
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        return {}
    columns = json.loads(body)
    signatures = zip(*columns["signatures"], strict=True)
    return dict(zip(columns["paths"], zip(signatures, columns["digests"], strict=True), strict=True))


def _save(cache: Path | None, entries: Known) -> None:
    """Replaces what is remembered, in one step, and forgets the folders that were remembered longest ago."""
    if cache is None:
        return
    columns = {
        "paths": list(entries),
        "signatures": list(zip(*(signature for signature, _ in entries.values()), strict=True)),
        "digests": [digest for _, digest in entries.values()],
    }
    body = json.dumps(columns).encode()
    with suppress(OSError):
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cache.parent, delete=False) as file:
            try:
                file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
                file.flush()
                os.replace(file.name, cache)  # noqa: PTH105
            except BaseException:
                os.unlink(file.name)  # noqa: PTH108
                raise
        for old in sorted(cache.parent.iterdir(), key=_written, reverse=True)[MOST_CACHES:]:
            old.unlink()


def _written(cache: Path) -> float:
    return cache.stat().st_mtime
