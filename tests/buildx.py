"""buildx, the plugin of Docker's command line, built from its Go module where no package has it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.setup.folders import cache_folder

VERSION = "v0.19.3"


def program() -> Path:
    """The plugin, from the cache or from its module (some minutes, once); skips the test where it cannot be had."""
    found = cache_folder() / f"buildx-{VERSION.removeprefix('v')}" / "buildx"
    if not found.exists():
        go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
        if not go:
            pytest.skip("needs Go to build buildx from its module")
        module = f"github.com/docker/buildx/cmd/buildx@{VERSION}"
        environment = {**os.environ, "GOBIN": str(found.parent)}
        made = subprocess.run([go, "install", module], env=environment, capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"buildx cannot be built here: {made.stderr.strip().splitlines()[-1]}")
    return found


def install(docker_config: Path, plugin: Path) -> None:
    """Makes the plugin `docker buildx` for those whose DOCKER_CONFIG is this folder."""
    plugins = docker_config / "cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-buildx").symlink_to(plugin)
