"""A stand-in for Artifact Registry under its own name, for clients that are told of a proxy for https.

Debian's docker-registry on a port of this machine, behind TLS, with one access token. Docker, which has no proxy,
reaches it as `address`.
"""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

from tests import registry
from tests.ports import reserve_port
from tests.standins.artifact_registry import HOST, write_registry_files
from tests.vertex_emulator.running import until


def why_impossible() -> str:
    """Why it cannot be had here; empty where it can."""
    return registry.missing() or ("" if shutil.which("openssl") else "no openssl")


@dataclass(frozen=True)
class ProxiedRegistry:
    """`variables` let a client reach HOST, `address` is what Docker pushes to, `docker_config` has the login for it."""

    address: str
    variables: dict[str, str]
    docker_config: Path


@contextmanager
def proxied_artifact_registry(folder: Path, token: str) -> Iterator[ProxiedRegistry]:
    """Run the registry while the context lasts."""
    folder.mkdir()
    with reserve_port() as port:
        write_registry_files(folder, f"127.0.0.1:{port}", token)
        address, docker_config = f"localhost:{port}", folder / "docker"
        docker_config.mkdir()
        login = base64.b64encode(f"oauth2accesstoken:{token}".encode()).decode()
        (docker_config / "config.json").write_text(json.dumps({"auths": {address: {"auth": login}}}))
        with _serve_registry(folder, port), _serve_proxy(port) as proxy:
            variables = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), proxy)
            variables |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
            trusted = {"REQUESTS_CA_BUNDLE": str(folder / "certificate.pem")}
            yield ProxiedRegistry(address, variables | trusted, docker_config)


@contextmanager
def _serve_registry(folder: Path, port: int) -> Iterator[None]:
    with (folder / "log").open("w") as log:
        served = subprocess.Popen(["docker-registry", "serve", str(folder / "config.yml")], stdout=log, stderr=log)
        try:
            until(lambda: _accepts(port), "the registry")
            yield
        finally:
            served.terminate()
            served.wait()


def _accepts(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False


@contextmanager
def _serve_proxy(registry_port: int) -> Iterator[str]:
    """A proxy whose only connection is that from HOST to the registry; its URL."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            request = self.rfile.readline().split()
            while self.rfile.readline().strip():
                pass
            if request[:2] != [b"CONNECT", f"{HOST}:443".encode()]:
                self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
                return
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            with socket.create_connection(("127.0.0.1", registry_port)) as upstream:
                back = threading.Thread(target=_copy, args=[upstream, self.connection], daemon=True)
                back.start()
                _copy(self.connection, upstream)
                back.join()

    class Server(ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
