"""Files in the user's cache folder. A file that cannot be read or written costs time and nothing else."""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

MAX_FILES = 64
"""How many cache files of each kind are kept."""


def get_cache_file_path(kind: str, *key_parts: bytes) -> Path:
    """Return the path of the cache file for a key, which nobody can create if the user has no home."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = configured if configured.is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # no home
        base = Path(os.devnull)
    digest = hashlib.sha256()
    for part in key_parts:
        digest.update(b"%d:" % len(part) + part)
    return base / "vertex-training" / kind / digest.hexdigest()[:32]


def read_cache_file_or_none(file: Path) -> bytes | None:
    """Return a cache file's content; `None` if there is none, or if it is not exactly what was written."""
    try:
        checksum, _, content = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest().encode() == checksum else None


def try_to_write_cache_file_and_prune(file: Path, content: bytes) -> None:
    """Replace a cache file in one step, and delete the oldest files of its kind."""
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as new:
            try:
                new.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
                new.flush()
                Path(new.name).replace(file)
            except BaseException:
                Path(new.name).unlink()
                raise
        newest_first = sorted(file.parent.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
        for old in newest_first[MAX_FILES:]:
            old.unlink()
