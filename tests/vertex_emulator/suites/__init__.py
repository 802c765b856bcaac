"""Programs in Go and Java that use Google's libraries."""

import contextlib
import fcntl
import hashlib
from collections.abc import Iterator
from pathlib import Path

from tools.setup import cache_folder

SUITES = Path(__file__).parent


@contextlib.contextmanager
def copied(name: str, image: str = "vertex-emulator") -> Iterator[Path]:
    """A program that uses an image of the emulator, in a folder that keeps what is compiled, for one process at a
    time.
    """
    files = {
        path.relative_to(SUITES): path.read_bytes() for path in sorted((SUITES / name).rglob("*")) if path.is_file()
    }
    copy = cache_folder() / f"suites-{hashlib.sha256(repr(files).encode()).hexdigest()[:12]}"
    copy.mkdir(parents=True, exist_ok=True)
    with (copy / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path, content in files.items():
            target = copy / path
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.replace(b'"vertex-emulator"', f'"{image}"'.encode()))
        yield copy / name
