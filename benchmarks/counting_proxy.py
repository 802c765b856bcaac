"""A proxy before the emulator that counts the calls of its API."""

from __future__ import annotations

import http.client
import http.server
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

_COLLECTIONS = ("customJobs", "hyperparameterTuningJobs", "trainingPipelines", "operations")


class CountingProxy:
    """Forwards to `upstream`; `calls` says how many of each verb and collection there were."""

    def __init__(self, upstream: str) -> None:
        self.calls: Counter[str] = Counter()
        self._address = urlsplit(upstream).netloc

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The proxy's URL, while it serves."""
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                proxy.calls[proxy._named(self.command, self.path)] += 1
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                upstream = http.client.HTTPConnection(proxy._address)
                headers = {"Content-Type": self.headers.get("Content-Type", "application/json")}
                upstream.request(self.command, self.path, body or None, headers)
                reply = upstream.getresponse()
                content = reply.read()
                upstream.close()
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.headers.get("Content-Type", "application/json"))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()

    @staticmethod
    def _named(method: str, path: str) -> str:
        """`list customJobs`, as Google's pages call it."""
        parts = urlsplit(path).path.split("/")
        collection = next((part for part in parts if part.partition(":")[0] in _COLLECTIONS), None)
        if collection is None:
            return f"{method} {parts[-1]}"
        custom = parts[-1].partition(":")[2]
        verb = {"GET": "list" if parts[-1] == collection else "get", "POST": "create", "DELETE": "delete"}[method]
        return f"{custom or verb} {collection}"
