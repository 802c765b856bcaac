"""A token of the Application Default Credentials: it reaches the daemon, and nothing that anyone reads."""

import base64
import gc
import http.server
import json
import logging
import threading
from collections.abc import Iterator

import google.auth
import pytest
from vertex_training.errors import RegistryRefused
from vertex_training.images.registry import Registry

TOKEN = "canary-of-a-token"
URI = "europe-west4-docker.pkg.dev/p/r/trainer:1"
pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed <socket", "ignore:Exception ignored in. <socket")


class Credentials:
    """In place of the Application Default Credentials, which this machine has none of."""

    valid = False
    token: str | None = None

    def refresh(self, request: object) -> None:
        self.token = TOKEN


class GossipingDaemon(http.server.BaseHTTPRequestHandler):
    """In place of Docker: it fails each call in the way of `failing`, and quotes the credentials that it was sent."""

    protocol_version = "HTTP/1.1"
    failing: str
    sent: list[str]

    def do_GET(self) -> None:
        if self.path.endswith("/_ping"):
            self._answer(200, b"OK")
        elif self.path.endswith("/version"):
            self._answer(200, b'{"ApiVersion": "1.41"}')
        else:
            self._fail()

    def do_POST(self) -> None:
        self._fail()

    def _fail(self) -> None:
        header = self.headers["X-Registry-Auth"]
        self.sent.append(header)
        said = f"denied to {base64.urlsafe_b64decode(header).decode()}\n as sent: {header}"
        if self.failing == "by a lost connection":
            self.close_connection = True
        elif self.failing == "in the stream of a push" and self.command == "POST":
            stream = [{"status": "Preparing", "id": "1", "progress": header}, {"error": said}]
            self._stream(*(json.dumps(line).encode() + b"\r\n" for line in stream))
        else:
            self._answer(500, json.dumps({"message": said}).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, *chunks: bytes) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in (*chunks, b""):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[GossipingDaemon]]:
    """What Docker's address leads to, for someone who is logged in to Google Cloud."""

    class Daemon(GossipingDaemon):
        sent: list[str] = []

    monkeypatch.setattr(google.auth, "default", lambda scopes: (Credentials(), "p"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Daemon) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_port}")
        yield Daemon
        server.shutdown()
    gc.collect()  # the Docker SDK leaves the socket open of an answer that is an error


@pytest.mark.parametrize("failing", ["in an answer", "in the stream of a push", "by a lost connection"])
@pytest.mark.parametrize("call", ["find", "keep"])
def test_a_token_is_in_no_message_or_log(
    daemon: type[GossipingDaemon],
    failing: str,
    call: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    daemon.failing = failing
    told: list[str] = []
    registry = Registry()
    with pytest.raises(RegistryRefused) as refused:
        registry.digest(URI) if call == "find" else registry.publish(URI, told.append)
    assert daemon.sent
    header = daemon.sent[0]
    assert TOKEN in base64.urlsafe_b64decode(header).decode()
    printed = capfd.readouterr()
    seen = [str(refused.value), repr(refused.value), *told, caplog.text, printed.out, printed.err]
    assert [text for text in seen if TOKEN in text or header in text] == []
    assert ("the connection to Docker was lost" in seen[0]) == (failing == "by a lost connection")
    assert str(refused.value).startswith(URI) and len(str(refused.value).splitlines()) == 1
