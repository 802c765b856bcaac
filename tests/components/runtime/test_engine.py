"""The engine: watched by its providers, and spared debug messages that nobody reads."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
import vertex_training
from google.protobuf import json_format, struct_pb2
from pulumi import log
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc
from vertex_training import providers
from vertex_training.errors import SubmitFailed
from vertex_training.runtime import engine
from vertex_training.runtime.engine import is_alive, require_alive


def test_an_engine_is_alive_until_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setattr(sys, "argv", ["provider", f"127.0.0.1:{listening.getsockname()[1]}"])
        assert is_alive()
        require_alive("digits: not submitted")
    assert not is_alive()
    with pytest.raises(SubmitFailed, match=r"^digits: not submitted: stopped, because `pulumi` was killed"):
        require_alive("digits: not submitted")


@pytest.mark.parametrize("arguments", [[], ["tests/test_architecture.py::test"], ["-q"], ["127.0.0.1"]])
def test_without_an_engine_it_counts_as_alive(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["program", *arguments])
    assert is_alive()


def test_a_slow_engine_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object, **__: object) -> socket.socket:
        raise TimeoutError("timed out")

    monkeypatch.setattr(sys, "argv", ["provider", "127.0.0.1:1"])
    monkeypatch.setattr(socket, "create_connection", slow)
    assert is_alive()


def test_a_provider_ends_soon_after_its_engine() -> None:
    following = """
import time
from vertex_training.runtime import engine
engine.watch()
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
            assert provider.wait() == 1


def test_a_failure_of_a_resource_is_its_message_alone() -> None:
    props = json_format.ParseDict(
        {"__provider": serialize_provider(providers.TrainingImage()), "uri": "localhost/team/digits:1"},
        struct_pb2.Struct(),
    )
    request = provider_pb2.CreateRequest(urn="urn:pulumi:dev::acme::t::digits", properties=props)
    environment = {**os.environ, "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    command = [sys.executable, "-m", "pulumi.dynamic"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout
        try:
            with grpc.insecure_channel(f"127.0.0.1:{int(host.stdout.readline())}") as channel:
                provider = provider_pb2_grpc.ResourceProviderStub(channel)
                provider.Configure(provider_pb2.ConfigureRequest())
                with pytest.raises(grpc.RpcError) as failed:
                    provider.Create(request)
        finally:
            host.kill()
    assert failed.value.details().startswith("Docker does not answer on unix:///nowhere/docker.sock: start it")


PRINT_ARGUMENTS = """
import os
from vertex_training.runtime import engine
if {hide_proc}:
    engine.Path.is_dir = lambda path: False
print(engine.pulumi_arguments(os.getppid()))
"""


@pytest.mark.parametrize("options", ["--debug", "-d", "--debug=true", "-yd", "-v=9", "-v9", "--verbose 3", "-dy"])
def test_these_options_request_debug_output(options: str) -> None:
    assert engine.wants_debug(["up", "--yes", *options.split()])


@pytest.mark.parametrize("options", ["", "--diff", "-y -s dev", "--event-log FILE", "--logtostderr", "-m verbose"])
def test_other_options_do_not(options: str) -> None:
    assert not engine.wants_debug(["up", *options.split()])


@pytest.mark.parametrize("hide_proc", [False, True])
def test_the_engine_is_found_through_processes_between(tmp_path: Path, hide_proc: bool) -> None:
    engine, program = tmp_path / "pulumi", tmp_path / "program.py"
    engine.symlink_to(shutil.which("sh") or "/bin/sh")
    program.write_text(PRINT_ARGUMENTS.format(hide_proc=hide_proc))
    # `true` keeps each shell from making way for its last command.
    host = f"sh -c '\"$0\" \"$1\"; true' '{sys.executable}' '{program}'; true"
    environment = {**os.environ, "PYTHONPATH": str(Path(vertex_training.__path__[0]).parent)}
    command = [engine, "-c", host, "preview", "--debug"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("'preview', '--debug']")


def test_without_an_engine_messages_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "debug", sent := log.debug)
    monkeypatch.setattr(engine, "pulumi_arguments", lambda _pid: None)
    engine.silence_debug_messages()
    assert log.debug is sent


def test_an_engine_that_drops_messages_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "debug", sent := log.debug)
    monkeypatch.setattr(engine, "pulumi_arguments", lambda _pid: ["preview"])
    engine.silence_debug_messages()
    assert log.debug is not sent
    log.debug("nobody reads this", ephemeral=True)
