"""Requests to an emulator, and what comes back."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from vertex_api.emulator import ask


@contextmanager
def answering(status: int, content: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        thread.join()


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b'{"error": {"message": "no"}}', "no"),
        (b" Bad gateway\n", "Bad gateway"),
        (b"[1]", ""),
        (b"", ""),
    ],
)
def test_a_refusal_is_a_status_or_a_text(content: bytes, refusal: str) -> None:
    with answering(502, content) as url:
        answer = ask(url, "", "/healthz")
    assert (answer.status, answer.refusal, answer.version) == (502, refusal, None)


def test_an_answer_that_is_no_json_is_none() -> None:
    with answering(200, b"hello") as url, pytest.raises(ValueError, match="Expecting value"):
        ask(url, "", "/healthz")
