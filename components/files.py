"""Digests of files, cached between previews, and archives that are equal for equal files on every machine.

A file is read once and then again only after it changes. What tells so is its signature: size, times, inode and mode,
as in git's index. Signatures of all files are read every time, because a folder's own times change with the names in it
and not with their bytes. As in git, a file that changed shortly before it was read is not cached: its next change may
have the same times.
"""

import hashlib
import io
import json
import os
import posixpath
import struct
import tarfile
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from gzip import GzipFile
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from typing import IO

TAG_LENGTH = 16
"""Hex digits of a digest in an image's tag or a package's name: 64 bits, enough for a registry of any size."""
MAX_LISTED_FILES = 200
"""Up to this many files, each file's digest is an input, so that a preview names the files that changed."""
MAX_UNCACHED_FILES = 200
MAX_UNCACHED_BYTES = 2 << 20
"""Folders of at most this many files and bytes are read as quickly as a cache is."""
MAX_CACHE_FILES = 64
"""How many cache files of each kind are kept."""
STABLE_AFTER_NS = 2_000_000_000
"""Age of a change, in nanoseconds, from which a later one has another time; FAT stores times in steps of 2 seconds."""
_BLOCK_BYTES = 1 << 20
_BATCH_FILES = 32
_THREADS = min(8, (os.cpu_count() or 1) + 1)
_FORMAT, _FOLDER_FORMAT = b"digests 2", b"whole 1"
"""Part of a cache file's name, so that no release reads the cache of another format."""


@dataclass(frozen=True)
class Archive:
    """What an archive holds by path: `files` are paths in `folder`, `texts` are the content itself."""

    folder: Path
    files: Mapping[str, str]
    texts: Mapping[str, str]

    @cached_property
    def digests(self) -> dict[str, str]:
        """The digest of each entry by its path in the archive, in the order of the paths. Raises OSError."""
        by_file = digests(self.folder, self.files.values())
        file_digests = {path: by_file[file] for path, file in self.files.items()}
        text_digests = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in self.texts.items()}
        return dict(sorted((file_digests | text_digests).items()))

    def write(self, stream: IO[bytes] | GzipFile, top_folder: str = "") -> None:
        """Write all entries as a tar archive, below `top_folder`, without times, owners or umask; links stay links."""
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for path in self.digests:
                name = posixpath.join(top_folder, path)
                if path in self.texts:
                    add_text(tar, name, self.texts[path])
                else:
                    tar.inodes.clear()  # type: ignore[attr-defined]  # or files that share their bytes become links
                    tar.add(self.folder / self.files[path], name, recursive=False, filter=_strip_metadata)

    def write_gzip(self, stream: IO[bytes], top_folder: str = "") -> None:
        """Write the same, compressed."""
        with GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as compressed:
            self.write(compressed, top_folder)


def add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    """Add a text to an archive as a file of this name."""
    entry, content = tarfile.TarInfo(name), text.encode()
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _strip_metadata(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    if entry.isfile():
        entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry


def unusual_name(path: str) -> str | None:
    """Return why a file with this path cannot be an input of a resource; `None` if it can.

    Inputs are protobuf's strings, which are UTF-8 (protobuf.dev, "Language Guide (proto 3)", scalar value types).
    """
    if path.isascii():
        return None
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"{os.fsencode(path).decode(errors='backslashreplace')}: its name is no UTF-8"
    return None


def listed(digests: Mapping[str, str]) -> dict[str, str] | None:
    """Return ten digits of each file's digest by path; `None` for more than `MAX_LISTED_FILES` files."""
    return {path: digest[:10] for path, digest in digests.items()} if len(digests) <= MAX_LISTED_FILES else None


def folder_digest(folder: Path, paths: Collection[str], options: str, compute: Callable[[], str]) -> str:
    """Return the cached result of `compute`, or call it if a file of the folder, `paths` or `options` changed.

    `paths` are relative to the folder and `options` is everything else that the digest depends on. Only each file's
    status and one cache file are read. The result is not cached if a file changed during the call, or so shortly before
    that its next change may have the same times. Raises OSError.
    """
    if len(paths) <= MAX_UNCACHED_FILES:
        return compute()
    root, start = f"{folder}/", time.time_ns()
    signatures = _read_signatures(root, paths)
    key = (os.fsencode(folder.resolve()), options.encode(), os.fsencode("\0".join(paths)), signatures)
    cache = _Cache("contexts", _FOLDER_FORMAT, *key)
    if (cached := cache.read()) is not None:
        return cached.decode()
    digest = compute()
    if _is_stable(signatures, start) and _read_signatures(root, paths) == signatures:
        cache.write(digest.encode())
    return digest


def digests(folder: Path, paths: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of each of a folder's files by relative path, in the order of `paths`. Raises OSError.

    An executable file's digest starts with `x:`. A link's starts with `link:` and is that of its target's path.
    """
    root, start = f"{folder}/", time.time_ns()
    signatures = _read_signatures(root, paths)
    if len(paths) <= MAX_UNCACHED_FILES and _total_size(signatures) <= MAX_UNCACHED_BYTES:
        return {path: _hash(root + path)[1] for path in paths}
    cache = _Cache("digests", _FORMAT, os.fsencode(folder.resolve()))
    content = cache.read()
    cached = _parse(content) if content else {}
    current = dict(zip(paths, _split(signatures), strict=True))
    unchanged = {path: cached[path] for path in paths if path in cached and cached[path][0] == current[path]}
    hashed = _hash_all(root, [path for path in paths if path not in unchanged])
    # Neither files that changed while they were read, nor files whose next change may have the same times.
    stable = {
        path: entry for path, entry in hashed.items() if entry[0] == current[path] and _is_stable(entry[0], start)
    }
    # Another image may be built from other files of this folder.
    others = {path: cached[path] for path in cached.keys() - current.keys() if os.path.lexists(root + path)}
    latest = unchanged | stable | others
    if latest != cached:
        cache.write(_serialize(latest))
    return {path: (unchanged.get(path) or hashed[path])[1] for path in paths}


_Entry = tuple[bytes, str]
"""A file's signature and digest."""


def _parse(content: bytes) -> dict[str, _Entry]:
    json_text, _, signatures = content.partition(b"\n")
    digests: dict[str, str] = json.loads(json_text)
    return dict(zip(digests, zip(_split(signatures), digests.values(), strict=True), strict=True))


def _serialize(entries: Mapping[str, _Entry]) -> bytes:
    json_text = json.dumps({path: digest for path, (_, digest) in entries.items()}).encode()
    return json_text + b"\n" + b"".join(signature for signature, _ in entries.values())


def _hash_all(root: str, paths: list[str]) -> dict[str, _Entry]:
    """Hash files at `root + path` in several threads."""
    if not paths:
        return {}
    from concurrent.futures import ThreadPoolExecutor

    batches = [paths[start : start + _BATCH_FILES] for start in range(0, len(paths), _BATCH_FILES)]
    with ThreadPoolExecutor(_THREADS) as pool:
        hashed = pool.map(lambda batch: [(path, _hash(root + path)) for path in batch], batches)
        return {path: entry for batch in hashed for path, entry in batch}


def _hash(file: str) -> _Entry:
    """Return the digest of a file or a link, and its signature as it is after the last byte was read."""
    if os.path.islink(file):  # noqa: PTH114
        target = os.readlink(file)  # noqa: PTH115
        return _pack(os.lstat(file)), "link:" + hashlib.sha256(os.fsencode(target)).hexdigest()
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        digest = hashlib.sha256()
        while block := os.read(descriptor, _BLOCK_BYTES):
            digest.update(block)
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return _pack(status), "x:" * bool(status.st_mode & 0o100) + digest.hexdigest()


_fields = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_mode")
_SIGNATURE = struct.Struct("=qqqQI")
_POSITIVE = (1 << 63) - 1


def _pack(status: os.stat_result) -> bytes:
    """Return the signature of one file; all signatures have the same length."""
    fields = _fields(status)
    try:
        return _SIGNATURE.pack(*fields)
    except struct.error:  # a time before 1678 or after 2261
        return _SIGNATURE.pack(*(field & _POSITIVE for field in fields))


def _read_signatures(root: str, paths: Collection[str]) -> bytes:
    """Return the signatures of the files or links at `root + path`, one after the other. Raises OSError."""
    files = [root + path for path in paths]
    try:
        # Without a line of Python per file: this takes most of the time of a preview without changes.
        return b"".join(starmap(_SIGNATURE.pack, map(_fields, map(os.lstat, files))))
    except struct.error:
        return b"".join(_pack(os.lstat(file)) for file in files)


def _split(signatures: bytes) -> list[bytes]:
    return [signature for (signature,) in struct.iter_unpack(f"{_SIGNATURE.size}s", signatures)]


def _total_size(signatures: bytes) -> int:
    return sum(fields[0] for fields in _SIGNATURE.iter_unpack(signatures))


def _is_stable(signatures: bytes, now_ns: int) -> bool:
    """Whether any change after `now_ns` changes the signatures, because no file changed shortly before.

    Git calls a file "racily clean" otherwise: its next change may have the same times.
    """
    return all(max(fields[1:3]) < now_ns - STABLE_AFTER_NS for fields in _SIGNATURE.iter_unpack(signatures))


def cache_folder() -> Path:
    """Return the folder of this user that keeps what can be had again, also by a checkout's set-up."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = configured if configured.is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # no home, and nobody can create a file there
        base = Path(os.devnull)
    return base / "vertex-training"


class _Cache:
    """A file in the user's cache folder. One that cannot be read or written costs time and nothing else."""

    def __init__(self, kind: str, *key_parts: bytes) -> None:
        key = hashlib.sha256()
        for part in key_parts:
            key.update(b"%d:" % len(part) + part)
        self._file = cache_folder() / kind / key.hexdigest()[:32]

    def read(self) -> bytes | None:
        """Return the content; `None` if there is none, or if it is not exactly what was written."""
        try:
            checksum, _, content = self._file.read_bytes().partition(b"\n")
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest().encode() == checksum else None

    def write(self, content: bytes) -> None:
        """Replace the content in one step, and delete the oldest files of this kind."""
        folder = self._file.parent
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as new:
                try:
                    new.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
                    new.flush()
                    Path(new.name).replace(self._file)
                except BaseException:
                    Path(new.name).unlink()
                    raise
            for old in sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)[MAX_CACHE_FILES:]:
                old.unlink()
