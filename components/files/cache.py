"""Files of the user's cache folder. One that cannot be read or written costs time and nothing else."""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

MOST_FILES = 64
"""So many are kept of each kind."""


def cache_file(kind: str, *key: bytes) -> Path | None:
    """Where what belongs to a key is remembered, if anywhere."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = configured if configured.is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # no home
        return None
    digest = hashlib.sha256()
    for part in key:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return base / "vertex-training" / kind / digest.hexdigest()[:32]


def load(file: Path | None) -> bytes | None:
    """What is remembered; nothing where the file is not exactly as it was written."""
    if file is None:
        return None
    try:
        checksum, _, content = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest().encode() == checksum else None


def save(file: Path | None, content: bytes) -> None:
    """Replaces what is remembered, in one step, and forgets what was remembered longest ago."""
    if file is None:
        return
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as new:
            try:
                new.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
                new.flush()
                os.replace(new.name, file)  # noqa: PTH105
            except BaseException:
                os.unlink(new.name)  # noqa: PTH108
                raise
        for old in _oldest_last(file.parent)[MOST_FILES:]:
            old.unlink()


def _oldest_last(folder: Path) -> list[Path]:
    return sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
