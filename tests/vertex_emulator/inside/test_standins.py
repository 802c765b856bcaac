"""Stand-ins for services that the emulator does not have: what jobs send them, and what comes back."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests

from tests.vertex_emulator.inside.served import OTHER, ServedDoor, bearer
from tests.vertex_emulator.running import PATIENCE_SECONDS
from vertex_emulator.database.records import Job
from vertex_emulator.inside import standins

HOST = "bigquery.googleapis.com"


class Server:
    """A small server of the user's; it keeps what it is asked."""

    def __init__(self) -> None:
        asked: list[tuple[str, str, Mapping[str, str], bytes]] = []
        self.asked, self.left = asked, threading.Event()
        left = self.left

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length, body = int(self.headers.get("content-length", 0)), b""
                if self.headers.get("transfer-encoding") == "chunked":
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size + 2)[:-2]
                    self.rfile.readline()
                else:
                    body = self.rfile.read(length)
                asked.append((self.command, self.path, dict(self.headers), body))
                if self.path == "/endless":
                    self.endless()
                    return
                if self.path == "/moved":
                    self.send_response(302)
                    self.send_header("Location", "https://bigquery.googleapis.com/elsewhere")
                else:
                    self.send_response(409 if self.path == "/conflict" else 200)
                self.send_header("Content-Length", "9")
                self.send_header("X-Own", "1")
                self.end_headers()
                self.wfile.write(b"answered\n" if self.command != "HEAD" else b"")

            def endless(self) -> None:
                self.send_response(200)
                self.end_headers()
                try:
                    while True:
                        self.wfile.write(bytes(1 << 16))
                except OSError:
                    left.set()

            do_GET = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Server:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.asked]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def job(served: ServedDoor) -> Job:
    return served.job("with stand-ins")


def stand_in(served: ServedDoor, url: str, host: str = HOST, project: str = "my-project") -> None:
    served.data.stand_ins.write_text(json.dumps({project: {host: url}}))


def ask(served: ServedDoor, job: Job | None, path: str, method: str = "GET", **options: Any) -> requests.Response:
    """A request of a job with its token to the service."""
    token = bearer(served.door.token(job)) if job else {}
    return served.ask(job, path, method, headers={"Host": HOST, **token, **options.pop("headers", {})}, **options)


def refusal(reply: requests.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["message"]


def test_a_call_goes_there_as_it_is(served: ServedDoor, job: Job, server: Server) -> None:
    stand_in(served, server.url)
    path = "/bigquery/v2/projects/my-project/a%2Fb?maxResults=1&x=%20"
    reply = ask(served, job, path, "POST", json={"query": "SELECT 1"}, headers={"X-Goog-Api-Client": "gl-python"})
    assert (reply.status_code, reply.text, reply.headers["X-Own"]) == (200, "answered\n", "1")
    method, asked, headers, body = server.asked[-1]
    assert (method, asked, json.loads(body)) == ("POST", path, {"query": "SELECT 1"})
    assert (headers["host"], headers["x-goog-api-client"]) == (HOST, "gl-python")
    assert ask(served, job, "/chunks", "POST", data=iter([b"a" * 100_000, b"b"])).text == "answered\n"
    assert server.asked[-1][3] == b"a" * 100_000 + b"b"
    assert ask(served, job, "/head", "HEAD").headers["Content-Length"] == "9"
    assert ask(served, job, "/conflict", "DELETE").status_code == 409


def test_nothing_says_who_the_job_is(served: ServedDoor, job: Job, server: Server) -> None:
    stand_in(served, server.url)
    own = {"X-Goog-Api-Key": "key", "Cookie": "a=b", "Metadata-Flavor": "Google", "Proxy-Authorization": "x"}
    assert ask(served, job, "/", headers=own).status_code == 200
    headers = {name.lower() for name in server.asked[-1][2]}
    assert headers.isdisjoint({"authorization", *(name.lower() for name in own)})
    assert served.door.token(job) not in str(server.asked)


def test_whoever_is_no_job_of_the_project_is_refused(served: ServedDoor, job: Job, server: Server) -> None:
    stand_in(served, server.url)
    count = len(server.asked)
    assert ask(served, None, "/").status_code == 401
    assert ask(served, job, "/", headers=bearer("other")).status_code == 401
    theirs = served.job("theirs of stand-ins", OTHER)
    assert ask(served, theirs, "/").status_code == 501
    assert len(server.asked) == count


def test_a_service_without_one_names_what_is_near(served: ServedDoor, job: Job) -> None:
    stand_in(served, "http://127.0.0.1:1", "bigqery.googleapis.com")
    status, message = refusal(ask(served, job, "/"))
    assert status == 501 and "\n" not in message
    assert message.startswith(f"{HOST} is not emulated at home; did you mean bigqery.googleapis.com?")
    assert f"emulator: {{endpoints: {{{HOST}: URL}}}} (`vertex-training docs google`)" in message


def test_names_of_stand_ins_lead_to_the_door(served: ServedDoor, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(served, "http://127.0.0.1:1", "newservice.googleapis.com")
    assert "newservice.googleapis.com" in served.door.home(job).hosts
    monkeypatch.setattr(served.network, "obstacle", "the emulator does not run as root")
    assert served.door.home(job).note.endswith("no call reaches what emulator.endpoints names.")


def test_one_that_does_not_answer_is_named_at_once(
    served: ServedDoor, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(url: str) -> str:
        stand_in(served, url)
        status, message = refusal(ask(served, job, "/", "POST", data=b"x"))
        assert status == 503 and message.startswith(f"The stand-in {url} for {HOST} fails: ")
        assert message.endswith(". Start it, or correct emulator.endpoints.") and "\n" not in message
        return message.partition(" fails: ")[2].partition(". Start")[0]

    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    begun = time.monotonic()
    assert "onnect" in said(f"http://127.0.0.1:{port}")
    assert said("http://no-such-host.invalid:80")
    assert time.monotonic() - begun < PATIENCE_SECONDS

    def once(answer: bytes) -> str:
        with closing(socket.create_server(("127.0.0.1", 0))) as listener:

            def serve() -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            try:
                return said(f"http://127.0.0.1:{listener.getsockname()[1]}")
            finally:
                thread.join()

    assert once(b"SSH-2.0\r\n") == "it does not answer as HTTP/1.1 does"
    assert once(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000) == "it does not answer as HTTP/1.1 does"
    assert once(b"") == "it does not answer as HTTP/1.1 does"
    monkeypatch.setattr(standins, "_SILENT_SECONDS", 0.1)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        assert said(f"http://127.0.0.1:{silent.getsockname()[1]}") == "it does not answer in time"


def test_an_answer_without_end_ends_with_its_reader(served: ServedDoor, job: Job, server: Server) -> None:
    stand_in(served, server.url)
    server.left.clear()
    reply = ask(served, job, "/endless", stream=True)
    assert len(next(reply.iter_content(1000))) == 1000
    reply.close()
    assert server.left.wait(PATIENCE_SECONDS)


def test_an_answer_that_breaks_off_is_cut_off(served: ServedDoor, job: Job) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

        thread = threading.Thread(target=serve)
        thread.start()
        stand_in(served, f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(requests.RequestException):
            ask(served, job, "/")
        thread.join()


def test_redirects_are_left_to_the_job(served: ServedDoor, job: Job, server: Server) -> None:
    stand_in(served, server.url)
    reply = ask(served, job, "/moved")
    assert (reply.status_code, reply.headers["Location"]) == (302, "https://bigquery.googleapis.com/elsewhere")
    assert server.paths()[-1] == "/moved"


def test_no_stand_in_is_a_metadata_server(
    served: ServedDoor, job: Job, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standins, "METADATA_SERVERS", ("127.0.0.1",))
    count = len(server.asked)
    for host in ("127.0.0.1", "[::ffff:127.0.0.1]", "localhost"):
        url = server.url.replace("127.0.0.1", host)
        stand_in(served, url)
        status, message = refusal(ask(served, job, "/"))
        assert status == 503 and "it is a metadata server of a cloud, which jobs do not reach" in message
    assert len(server.asked) == count
