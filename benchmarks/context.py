"""The digest of a build context of 10,000 files and 1 GiB, beside `sha256sum` (cold) and `git status` (warm).

The digest is taken in a process that runs already, as a preview's does.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

from vertex_training.files import STABLE_AFTER_NS
from vertex_training.images.context import DockerfileContext

from benchmarks.measure import time_rows

FILES = 10_000
BYTES = 1 << 30
ROUNDS = 5
MAX_COLD_RATIO, MAX_WARM_RATIO = 1.0, 2.0
_FOLDERS = 100


def rows() -> Iterator[str]:
    """Run both in turn, and yield a line for each and one for the ratio."""
    with tempfile.TemporaryDirectory(prefix="vertex-training-context-") as scratch:
        if shutil.disk_usage(scratch).free < 4 * BYTES:
            yield f"{scratch} has no room for a context of 1 GiB and its git repository: not measured"
            return
        folder, cache = Path(scratch, "context"), Path(scratch, "cache")
        _write_context(folder)
        for arguments in (["init", "--quiet"], ["-c", "core.compression=0", "add", "."]):
            subprocess.run(["git", *arguments], cwd=folder, check=True)
        # The files of git are not part of the image.
        (folder / ".dockerignore").write_text(".git\n")
        time.sleep(STABLE_AFTER_NS / 1e9)

        def run_shell(command: str) -> None:
            subprocess.run(["sh", "-c", command], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        def digest_warm() -> None:
            assert DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64").digest

        def digest_cold() -> None:
            shutil.rmtree(cache, ignore_errors=True)
            digest_warm()

        yield f"digest of a context of {FILES:,} files, 1 GiB"
        # The first round warms the system's file cache, and fills ours in the warm case.
        with patch.dict(os.environ, XDG_CACHE_HOME=str(cache)):
            find = partial(run_shell, "find . -path ./.git -prune -o -type f -print0 | xargs -0 sha256sum")
            yield from time_rows("cold", "sha256sum", find, digest_cold, ROUNDS, MAX_COLD_RATIO, warm_ups=1)
            status = partial(run_shell, "git status --porcelain")
            yield from time_rows("warm", "git status", status, digest_warm, ROUNDS, MAX_WARM_RATIO, warm_ups=1)


def _write_context(folder: Path) -> None:
    """Write a Dockerfile and files of many sizes, from a few bytes to some 200 KiB."""
    block = os.urandom(1 << 20)
    mean = BYTES // FILES
    for index in range(FILES):
        file = folder / f"part-{index % _FOLDERS:02}" / f"file-{index:05}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        size = 2 * mean * (index % _FOLDERS) // (_FOLDERS - 1)
        start = index * 89 % (len(block) - 2 * mean)
        file.write_bytes(block[start : start + size] + str(index).encode())
    (folder / "Dockerfile").write_text("FROM scratch\n")
