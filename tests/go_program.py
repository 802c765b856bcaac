"""Programs that tests build from their Go modules, where no package has them."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.setup import cache_folder

QUICK_BUILD = ("-gcflags=all=-N -l -dwarf=false", "-ldflags=-s -w")
"""Flags of `go` for what runs a few times: it is not optimized, and compiles in three quarters of the time."""


def built(package: str, version: str) -> Path:
    """A program, from the cache or from its module (up to some minutes, once); skips the test where it cannot be had.

    `package` is the program's path, such as `github.com/docker/buildx/cmd/buildx`.
    """
    name = package.rpartition("/")[2]
    found = cache_folder() / f"{name}-{version.removeprefix('v')}" / name
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / f"{name}.lock").open("w") as lock:
        # Another process may be building it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            _install(found, f"{package}@{version}")
    return found


def _install(program: Path, module: str) -> None:
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not go:
        pytest.skip(f"needs Go to build {program.name} from its module")
    environment = {**os.environ, "GOBIN": str(program.parent)}
    made = subprocess.run([go, "install", *QUICK_BUILD, module], env=environment, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"{program.name} cannot be built here: {made.stderr.strip().splitlines()[-1]}")
