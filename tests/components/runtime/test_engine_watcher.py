"""The engine: a provider process finds out when it was left behind, and ends."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from vertex_training.errors import SubmitFailed
from vertex_training.runtime.engine_watcher import is_engine_alive, raise_unless_engine_is_alive


def test_an_engine_is_alive_until_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setattr(sys, "argv", ["provider", f"127.0.0.1:{listening.getsockname()[1]}"])
        assert is_engine_alive()
        raise_unless_engine_is_alive("digits: not submitted")
    assert not is_engine_alive()
    with pytest.raises(SubmitFailed, match=r"^digits: not submitted: stopped, because `pulumi` was killed"):
        raise_unless_engine_is_alive("digits: not submitted")


@pytest.mark.parametrize("arguments", [[], ["tests/test_architecture.py::test"], ["-q"], ["127.0.0.1"]])
def test_without_an_engine_it_counts_as_alive(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["program", *arguments])
    assert is_engine_alive()


def test_a_slow_engine_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object, **__: object) -> socket.socket:
        raise TimeoutError("timed out")

    monkeypatch.setattr(sys, "argv", ["provider", "127.0.0.1:1"])
    monkeypatch.setattr(socket, "create_connection", slow)
    assert is_engine_alive()


def test_a_provider_ends_soon_after_its_engine() -> None:
    following = """
import time
from vertex_training.runtime import engine_watcher
engine_watcher.start_engine_watcher()
print("follows", flush=True)
time.sleep(60)
"""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [sys.executable, "-c", following, f"127.0.0.1:{listening.getsockname()[1]}"]
        with subprocess.Popen(command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, text=True) as provider:
            assert provider.stdout
            assert provider.stdout.readline() == "follows\n"
            listening.accept()[0].close()
            listening.accept()[0].close()
            assert provider.poll() is None
            listening.close()
            assert provider.wait(timeout=30) == 1
