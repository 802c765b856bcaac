"""The digest of a build context of 10,000 files and 1 GiB, beside `sha256sum` (nothing known) and `git status` (known).

The digest is taken in a process that runs already, as a preview's does.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from components.files.signatures import STABLE_AFTER_NS
from components.images.context import DockerfileContext

FILES = 10_000
BYTES = 1 << 30
ROUNDS = 5
MOST_COLD = 1.0
MOST_WARM = 2.0
_FOLDERS = 100


def run_benchmark() -> Iterator[str]:
    """Alternates ours and theirs, and yields a line for each and one for the ratio."""
    with tempfile.TemporaryDirectory(prefix="vertex-training-context-") as scratch:
        if shutil.disk_usage(scratch).free < 4 * BYTES:
            yield f"{scratch} has no room for a context of 1 GiB and its git repository: not measured"
            return
        folder, cache = Path(scratch, "context"), Path(scratch, "cache")
        _write(folder)
        git = ["git", "-C", str(folder)]
        for command in (["init", "--quiet"], ["-c", "core.compression=0", "add", "."]):
            subprocess.run([*git, *command], check=True)
        # What git keeps is not what an image is made of.
        (folder / ".dockerignore").write_text(".git\n")
        time.sleep(STABLE_AFTER_NS / 1e9)

        previous = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str(cache)
        try:
            find = "find . -path ./.git -prune -o -type f -print0 | xargs -0 sha256sum"
            sums = lambda: _quietly(["sh", "-c", find], folder)  # noqa: E731
            yield from _compared("cold", "find | xargs sha256sum", sums, lambda: _cold(folder, cache), MOST_COLD)
            status = lambda: _quietly([*git, "status", "--porcelain"], folder)  # noqa: E731
            yield from _compared("warm", "git status", status, lambda: _digest(folder), MOST_WARM)
        finally:
            if previous is None:
                del os.environ["XDG_CACHE_HOME"]
            else:
                os.environ["XDG_CACHE_HOME"] = previous


def _compared(what: str, name: str, theirs: Callable[[], None], ours: Callable[[], None], most: float) -> Iterator[str]:
    times: dict[Callable[[], None], list[float]] = {theirs: [], ours: []}
    for _ in range(ROUNDS + 1):
        for measured, taken in times.items():
            begin = time.perf_counter()
            measured()
            taken.append((time.perf_counter() - begin) * 1000)
    # The first round warms the system's file cache, and fills ours where it is to be warm.
    medians = {measured: statistics.median(taken[1:]) for measured, taken in times.items()}
    ratio = medians[ours] / medians[theirs]
    size = f"{FILES:,} files, 1 GiB; median of {ROUNDS}, alternating"
    yield f"{what}, digest of a context     {medians[ours]:8.1f} ms   {size}"
    yield f"{what}, {name:23} {medians[theirs]:8.1f} ms"
    verdict = "met" if ratio <= most else "MISSED"
    yield f"{what}, ratio                   {ratio:8.2f}      at most {most:.0f}: {verdict}"


def _write(folder: Path) -> None:
    """Files of many sizes, from a few hundred bytes to some 200 KiB."""
    block = os.urandom(1 << 20)
    mean = BYTES // FILES
    for index in range(FILES):
        file = folder / f"part-{index % _FOLDERS:02}" / f"file-{index:05}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        size = 2 * mean * (index % _FOLDERS) // (_FOLDERS - 1)
        start = index * 89 % (len(block) - 2 * mean)
        file.write_bytes(block[start : start + size] + str(index).encode())
    (folder / "Dockerfile").write_text("FROM scratch\n")


def _cold(folder: Path, cache: Path) -> None:
    shutil.rmtree(cache, ignore_errors=True)
    _digest(folder)


def _digest(folder: Path) -> None:
    assert DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64").digest


def _quietly(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
