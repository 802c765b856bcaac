"""A daemon that runs is found, and one that does not is started and waited for."""

import io
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools.setup import docker
from tools.setup.docker import (
    Machine,
    find,
    find_obstacle,
    make,
    start,
)
from tools.setup.programs import Output, SetupError

REAL_POPEN = subprocess.Popen
Program = Callable[[str | Path, str], Path]
OUTPUT = Output(io.StringIO())
ANSWERS = 'case "$1" in version) echo 28.2.2;; context) echo unix:///var/run/docker.sock;; esac'
SILENT = 'case "$1" in version) echo no daemon >&2; exit 1;; context) echo unix:///var/run/docker.sock;; esac'


def test_a_running_daemon_has_version_and_address(program: Program) -> None:
    program("docker", ANSWERS)
    assert find() == "Docker: 28.2.2 at unix:///var/run/docker.sock"


def test_a_silent_daemon_is_not_found(program: Program) -> None:
    assert find() is None
    program("docker", SILENT)
    assert find() is None


def test_a_remote_daemon_is_never_replaced(program: Program, tmp_path: Path) -> None:
    program("docker", SILENT.replace("unix:///var/run/docker.sock", "tcp://build-host:2376"))
    program("dockerd", f"echo started > '{tmp_path}/started'")
    with pytest.raises(SetupError, match="no daemon answers at tcp://build-host:2376"):
        make(OUTPUT)
    assert not (tmp_path / "started").exists()


@pytest.fixture
def no_systemd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A machine without systemd; the daemon that a test starts ends with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def popen(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(REAL_POPEN(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(docker, "SYSTEMD", tmp_path / "no-systemd")
    monkeypatch.setattr(docker.subprocess, "Popen", popen)
    yield
    for process in started:
        process.terminate()
        process.wait()


@pytest.mark.usefixtures("no_systemd")
def test_a_started_daemon_is_awaited(program: Program, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    program("docker", f'[ -e "{ready}" ] || [ "$1" = context ] || exit 1\n{ANSWERS}')
    program("dockerd", f"/bin/sleep 0.3; : > '{ready}'; exec /bin/sleep 60")
    log = tmp_path / "cache/vertex-training/dockerd.log"
    assert start(OUTPUT) == f"Docker: 28.2.2 at unix:///var/run/docker.sock, started (log in {log})"


@pytest.mark.usefixtures("no_systemd")
def test_an_ended_daemon_is_quoted_with_its_log(program: Program, tmp_path: Path) -> None:
    (tmp_path / "asked").touch()
    program("docker", f"echo >> '{tmp_path}/asked'; {SILENT}")
    program("dockerd", "echo 'failed to mount overlay: not permitted'; echo 'level=info msg=bye' >&2; exit 1")
    with pytest.raises(SetupError) as failure:
        start(OUTPUT)
    message = str(failure.value)
    assert "`dockerd` ended by itself" in message
    assert "\n    failed to mount overlay: not permitted\n" in message
    assert "level=info" not in message
    assert len((tmp_path / "asked").read_text()) < 50, "went on asking a daemon that had ended"
    assert str(tmp_path / "cache/vertex-training/dockerd.log") in message


@pytest.mark.usefixtures("no_systemd")
def test_a_silent_daemon_is_stopped_and_reported(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "START_LIMIT_SECONDS", 0.5)
    program("docker", SILENT)
    program("dockerd", "echo waiting; exec /bin/sleep 60")
    with pytest.raises(SetupError, match=r"did not answer within 0\.5 s"):
        start(OUTPUT)


def test_systemd_starts_the_daemon_where_it_runs(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "SYSTEMD", tmp_path)
    program("docker", ANSWERS)
    program("systemctl", f'echo "$@" > "{tmp_path}/asked"')
    assert start(OUTPUT).endswith("started with systemctl")
    assert (tmp_path / "asked").read_text() == "start docker\n"


STOPPED = Machine(
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
def test_root_starts_or_installs_the_daemon(machine: Machine) -> None:
    assert find_obstacle(machine) is None


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
def test_an_obstacle_says_what_to_do(machine: Machine, expected_text: str) -> None:
    obstacle = find_obstacle(machine)
    assert obstacle
    assert re.search(expected_text, obstacle)
    assert obstacle.endswith("then run `make setup` again.")
