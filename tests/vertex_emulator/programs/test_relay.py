"""The relay that runs in a container, here in a process of this machine."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from vertex_emulator.programs import relay as program


def test_it_connects_once_ready_socket_is_bound(tmp_path: Path) -> None:
    name = str(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        server.settimeout(1)
        command = [sys.executable, program.__file__, str(server.getsockname()[1]), name]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
            with pytest.raises(TimeoutError):
                server.accept()
            ready.bind("\0" + name)
            server.settimeout(60)
            with server.accept()[0] as connection:
                connection.sendall(b"to stdout")
                assert relay.stdin and relay.stdout
                relay.stdin.write(b"from stdin")
                relay.stdin.close()
                assert connection.makefile("rb").read() == b"from stdin"
            assert relay.stdout.read() == b"to stdout"
    assert relay.returncode == 0
