"""buildx, the plugin of Docker's command line, built from its Go module where no package has it."""

from pathlib import Path

from tests import go_program


def program() -> Path:
    """The plugin; skips the test where it cannot be had."""
    return go_program.built("github.com/docker/buildx/cmd/buildx", "v0.19.3")


def install(docker_config: Path, plugin: Path) -> None:
    """Makes the plugin `docker buildx` for those whose DOCKER_CONFIG is this folder."""
    plugins = docker_config / "cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-buildx").symlink_to(plugin)
