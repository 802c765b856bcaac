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
from array import array
from collections.abc import Collection, Iterable, Mapping
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

_FIELDS = 5
_POSITIVE = (1 << 63) - 1
"""As much as an array takes: some file systems use all 64 bits of an inode, and a time can be one before 1970."""
Signature = array
"""Size, mtime and ctime in nanoseconds, inode and mode; of several files, one after the other."""
Entries = Mapping[str, tuple["Signature[int]", str]]
"""Signature and digest by relative path."""


def digests(folder: Path, paths: Collection[str]) -> dict[str, str]:
    """SHA-256 of each of a folder's files by relative path, in the order of `paths`.

    That of an executable file begins with `x:`, and that of a link with `link:`; a link's is of where it leads.
    """
    begun = time.time_ns()
    root = f"{folder}/"
    files: list[str] = []
    links: dict[str, str] = {}
    signatures = Signature("q")
    for path in paths:
        status = os.lstat(root + path)
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(root + path)  # noqa: PTH115
            links[path] = "link:" + hashlib.sha256(os.fsencode(target)).hexdigest()
        else:
            files.append(path)
            signatures.extend(_signature(status))
    found = _digests(folder, root, files, signatures, begun)
    return {path: links.get(path) or found[path] for path in paths} if links else found


def _digests(folder: Path, root: str, files: list[str], signatures: "Signature[int]", begun: int) -> dict[str, str]:
    """The digests of files by path, in their order; `signatures` were taken after `begun`."""
    if len(files) <= SMALL_FILES and sum(signatures[::_FIELDS]) <= SMALL_BYTES:
        return {path: _read(root + path)[1] for path in files}
    cache = _cache_file(folder)
    known, known_signatures = _load(cache)
    if signatures == known_signatures and files == list(known):
        return known  # nothing has changed
    before, now = _by_path(known, known_signatures), _by_path(files, signatures)
    new = _read_all(root, [path for path in files if path not in before or before[path] != now[path]])
    same = {path: (before[path], known[path]) for path in files if path not in new}
    # Not what changed while it was read, nor what may change again without its times telling.
    settled = {
        path: (signature, digest)
        for path, (signature, digest) in new.items()
        if signature == now[path] and max(signature[1:3]) < begun - SETTLED_NS
    }
    if settled:
        # Another image may be built from other files of this folder.
        others = {
            path: (before[path], known[path]) for path in before.keys() - now.keys() if os.path.lexists(root + path)
        }
        ours = same | settled
        _save(cache, {path: ours[path] for path in files if path in ours} | others)
    return {path: (same.get(path) or new[path])[1] for path in files}


def _signature(status: os.stat_result) -> tuple[int, int, int, int, int]:
    inode, mtime = status.st_ino & _POSITIVE, status.st_mtime_ns & _POSITIVE
    return status.st_size, mtime, status.st_ctime_ns, inode, status.st_mode


def _by_path(paths: Iterable[str], signatures: "Signature[int]") -> dict[str, "Signature[int]"]:
    return {path: signatures[_FIELDS * index : _FIELDS * (index + 1)] for index, path in enumerate(paths)}


def _read_all(root: str, paths: list[str]) -> dict[str, tuple["Signature[int]", str]]:
    """What is read of each file, several at a time."""
    if not paths:
        return {}
    from concurrent.futures import ThreadPoolExecutor

    batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
    with ThreadPoolExecutor(_THREADS) as pool:
        read = pool.map(lambda batch: [(path, _read(root + path)) for path in batch], batches)
        return {path: entry for batch in read for path, entry in batch}


def _read(file: str) -> tuple["Signature[int]", str]:
    """Signature (as it is after the last byte was read) and digest of a file."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        digest = hashlib.sha256()
        while block := os.read(descriptor, _BLOCK):
            digest.update(block)
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return Signature("q", _signature(status)), "x:" * bool(status.st_mode & 0o100) + digest.hexdigest()


def _cache_file(folder: Path) -> Path | None:
    """Where a folder's digests are remembered, if anywhere."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = configured if configured.is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # no home
        return None
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
    return base / "vertex-training" / "digests" / name


def _load(cache: Path | None) -> tuple[dict[str, str], "Signature[int]"]:
    """Digests by path, and signatures in the same order; none where the cache is not exactly as it was written."""
    nothing: tuple[dict[str, str], Signature[int]] = {}, Signature("q")
    if cache is None:
        return nothing
    try:
        checksum, _, rest = cache.read_bytes().partition(b"\n")
    except OSError:
        return nothing
    if hashlib.sha256(rest).hexdigest().encode() != checksum:
        return nothing
    known, _, signatures = rest.partition(b"\n")
    return json.loads(known), Signature("q", signatures)


def _save(cache: Path | None, entries: Entries) -> None:
    """Replaces what is remembered, in one step, and forgets the folders that were remembered longest ago."""
    if cache is None:
        return
    known = json.dumps({path: digest for path, (_, digest) in entries.items()}).encode()
    rest = known + b"\n" + b"".join(signature.tobytes() for signature, _ in entries.values())
    with suppress(OSError):
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cache.parent, delete=False) as file:
            try:
                file.write(hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
                file.flush()
                os.replace(file.name, cache)  # noqa: PTH105
            except BaseException:
                os.unlink(file.name)  # noqa: PTH108
                raise
        for old in sorted(cache.parent.iterdir(), key=_written, reverse=True)[MOST_CACHES:]:
            old.unlink()


def _written(cache: Path) -> float:
    return cache.stat().st_mtime
