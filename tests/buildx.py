"""buildx, the plugin of Docker's command line, built from its Go module."""

from pathlib import Path

from tests import go_program


def program() -> Path:
    """Return the plugin; skips the test if it cannot be built."""
    return go_program.built("github.com/docker/buildx/cmd/buildx", "v0.19.3")


def install(docker_config: Path, plugin: Path) -> None:
    """Install the plugin for commands whose DOCKER_CONFIG is this folder."""
    plugins = docker_config / "cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-buildx").symlink_to(plugin)
