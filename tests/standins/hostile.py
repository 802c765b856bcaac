"""A server in place of Google's APIs that answers to do harm; in place of somebody between a machine and Google."""

import gzip
import itertools
import json
import socketserver
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any

Send = Callable[[bytes], object]
Behaviour = Callable[[Send, "Hostile"], None]


class Hostile(socketserver.ThreadingTCPServer):
    """Keeps the heads of all requests in `asked`, and answers each as `behaviour` does. `sent` counts bytes."""

    daemon_threads = allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviour: Behaviour = as_json({})
        self.asked: list[str] = []
        self.sent = 0
        self.is_open = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(socketserver.StreamRequestHandler):
    server: Hostile

    def handle(self) -> None:
        lines = list(itertools.takewhile(bytes.strip, self.rfile))
        if not lines:
            return
        self.server.asked.append(b"".join(lines).decode())
        lengths = [int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")]
        self.rfile.read(sum(lengths))

        def send(data: bytes) -> None:
            self.wfile.write(data)
            self.server.sent += len(data)

        try:
            self.server.behaviour(send, self.server)
        except OSError:
            return  # the client has left


@contextmanager
def serve() -> Iterator[Hostile]:
    """Yield a hostile server of this machine."""
    with Hostile() as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.is_open = False
        server.shutdown()


def answering(body: bytes, status: str = "200 OK", headers: Mapping[str, str] | None = None) -> Behaviour:
    """Answer with a body."""
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in (fields | dict(headers or {})).items())
    return lambda send, _: send(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body)  # type: ignore[func-returns-value]


def as_json(value: Any, status: str = "200 OK") -> Behaviour:
    """Answer with JSON."""
    return answering(json.dumps(value).encode(), status)


def redirecting(target: str, status: str = "307 Temporary Redirect") -> Behaviour:
    """Send the client elsewhere."""
    return answering(b"", status, {"Location": target})


def endless(send: Send, server: Hostile) -> None:
    """Answer with a body that does not end."""
    send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[")
    while server.is_open:
        send(b"1," * (1 << 15))


def dripping(send: Send, server: Hostile) -> None:
    """Answer with a byte at a time, without an end."""
    send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
    while server.is_open:
        send(b" ")
        time.sleep(0.02)


def dripping_head(send: Send, server: Hostile) -> None:
    """Answer with headers a byte at a time, without an end."""
    send(b"HTTP/1.1 200 OK\r\nX: ")
    while server.is_open:
        send(b"x")
        time.sleep(0.02)


def continuing(send: Send, server: Hostile) -> None:
    """Say that more will come, without an end."""
    while server.is_open:
        send(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.01)


def gzip_bomb(megabytes: int) -> Behaviour:
    """Answer with few bytes that become many."""
    return answering(gzip.compress(b" " * (megabytes << 20)), headers={"Content-Encoding": "gzip"})
