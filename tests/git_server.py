"""A git server like those on the web: HTTPS, and git's own http-backend behind it."""

import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests import certificates


def why_impossible() -> str:
    """Why it cannot be had here; empty where it can."""
    missing = [program for program in ("git", "openssl") if shutil.which(program) is None]
    return f"{', '.join(missing)} not found" if missing else ""


def commit(folder: Path) -> None:
    """Makes a folder a repository of one commit."""
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for command in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "--all"],
        [*identity, "commit", "--quiet", "--message=all"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)


@contextmanager
def serving(repositories: Path, certificate: Path) -> Iterator[str]:
    """The URL that the repositories of a folder are served below; `certificate` is written, for clients to trust."""
    key = certificate.with_suffix(".key")
    certificates.make(certificate, key, "localhost", "localhost")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            variables = {
                "GIT_PROJECT_ROOT": str(repositories),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            command = ["git", "http-backend"]
            done = subprocess.run(command, input=body, env={**os.environ, **variables}, capture_output=True, check=True)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *arguments: object) -> None:
            """Nothing: a test's output is its own."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        # The thread of a connection shakes hands, and keeps no other one waiting.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield f"https://localhost:{server.server_port}"
        server.shutdown()
