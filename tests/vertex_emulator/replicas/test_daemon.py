"""Whether a Docker daemon listens, and what to do if none does."""

import os
import socket
from pathlib import Path

import pytest

from tests.ports import reserve_port
from tests.vertex_emulator.other_user import NOBODY, as_user, needs_root, reachable_folder
from vertex_emulator.errors import DockerMissing
from vertex_emulator.replicas import daemon


def problem_of(host: str) -> str:
    """The error's message for an address, "" without one."""
    os.environ["DOCKER_HOST"] = host
    try:
        daemon.require()
    except DockerMissing as error:
        assert error.exit_code == 5
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "")


def test_listening_daemon_is_enough(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "docker.sock"))
        unix.listen()
        assert problem_of(f"tcp://127.0.0.1:{tcp.getsockname()[1]}") == ""
        assert problem_of(f"unix://{tmp_path}/docker.sock") == ""
    assert problem_of("ssh://elsewhere") == ""  # the SDK will tell


def test_what_does_not_listen_is_named(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "docker.sock"))
    remedy = "install Docker, start it, or set DOCKER_HOST"
    with reserve_port() as port:
        for host, reason in (
            (f"unix://{tmp_path}/none.sock", "No such file or directory"),
            (f"unix://{tmp_path}/docker.sock", "Connection refused"),
            (f"tcp://127.0.0.1:{port}", "Connection refused"),
        ):
            assert problem_of(host) == f"Docker does not answer on {host} ({reason}): {remedy}"
    assert "on tcp://127.0.0.1:port" in problem_of("tcp://127.0.0.1:port")


@needs_root
def test_user_without_access_learns_of_group() -> None:
    with reachable_folder(0o755) as folder, socket.socket(socket.AF_UNIX) as unix:
        path = folder / "docker.sock"
        unix.bind(str(path))
        path.chmod(0o600)
        unix.listen()
        assert "add your user to the group `docker`" in as_user(NOBODY, lambda: problem_of(f"unix://{path}"))
