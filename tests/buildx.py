"""buildx, the plugin of Docker's command line, as the set-up builds it."""

import io
from pathlib import Path

import pytest

from tools.setup import buildx
from tools.setup.__main__ import lock
from tools.setup.programs import CommandFailed, Output


def program() -> Path:
    """Return the plugin, built if it is not there (some minutes, once); skips the test if it cannot be."""
    output = Output(io.StringIO())
    if not buildx.cached().exists():
        with lock(output):  # another process may be building it
            if not buildx.cached().exists():
                try:
                    buildx.build(buildx.cached(), output)
                except CommandFailed as error:
                    pytest.skip(f"buildx cannot be built here: {error}")
    return buildx.cached()


def install(docker_config: Path, plugin: Path) -> None:
    """Install the plugin for commands whose DOCKER_CONFIG is this folder."""
    plugins = docker_config / "cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-buildx").symlink_to(plugin)
