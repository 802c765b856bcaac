"""When Docker can be started or installed, and what a user is told when it cannot."""

import re
from dataclasses import replace

import pytest

from tools.setup.docker_setup_obstacles import DockerSetup, describe_docker_setup_obstacle_or_none

STOPPED = DockerSetup(
    has_command=True,
    failure="Cannot connect to the Docker daemon",
    endpoint="unix:///var/run/docker.sock",
    has_daemon=True,
    is_root=True,
    can_install=True,
    is_macos=False,
)


@pytest.mark.parametrize(
    "machine",
    [
        STOPPED,
        replace(STOPPED, can_install=False),
        replace(STOPPED, has_daemon=False),
        replace(STOPPED, has_command=False, endpoint="", has_daemon=False),
    ],
)
def test_root_starts_or_installs_the_daemon(machine: DockerSetup) -> None:
    assert describe_docker_setup_obstacle_or_none(machine) is None


@pytest.mark.parametrize(
    ("machine", "expected_text"),
    [
        (replace(STOPPED, is_root=False, can_install=False), r"not running. Run `sudo systemctl start docker`"),
        (replace(STOPPED, is_root=False, can_install=False, failure="permission denied"), r"usermod -aG docker"),
        (replace(STOPPED, endpoint="ssh://far"), r"ssh://far, where DOCKER_HOST(.|\n)*Cannot connect to the Docker"),
        (replace(STOPPED, endpoint="ssh://far", failure="permission denied"), r"ssh://far(.|\n)*permission denied"),
        (replace(STOPPED, is_macos=True, is_root=False, can_install=False), r"Docker Desktop \(`open -a Docker`\)"),
        (replace(STOPPED, has_daemon=False, can_install=False), r"none is installed. Install Docker Engine"),
        (replace(STOPPED, has_command=False, endpoint="", can_install=False), r"there is no `docker` command. Install"),
    ],
)
def test_an_obstacle_says_what_to_do(machine: DockerSetup, expected_text: str) -> None:
    obstacle = describe_docker_setup_obstacle_or_none(machine)
    assert obstacle
    assert re.search(expected_text, obstacle)
    assert obstacle.endswith("then run `make setup` again.")
