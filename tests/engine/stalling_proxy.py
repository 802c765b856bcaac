"""A stand-in for the network between the provider and the emulator: it can hold back the answer to one call."""

import http.server
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager


class StallingProxy:
    """Forwards to `upstream`, all but the answer to the first `method` call whose path holds `path`.

    When that call has been made, `reached` is set; its answer waits until `release` is. `seen` are all calls so far,
    as `METHOD path`.
    """

    def __init__(self, upstream: str, method: str, path: str) -> None:
        self.seen: list[str] = []
        self.reached, self.release = threading.Event(), threading.Event()
        self.stalled = (method, path)
        self.upstream = upstream

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The proxy's URL, while it serves."""
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {"Content-Type": self.headers.get("Content-Type", "application/json")}
                request = urllib.request.Request(proxy.upstream + self.path, body or None, headers, method=self.command)
                try:
                    with urllib.request.urlopen(request) as reply:
                        status, content = reply.status, reply.read()
                except urllib.error.HTTPError as error:
                    status, content = error.code, error.read()
                proxy.seen.append(f"{self.command} {self.path.partition('?')[0]}")
                method, path = proxy.stalled
                if self.command == method and path in self.path and not proxy.reached.is_set():
                    proxy.reached.set()
                    proxy.release.wait(60)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            self.release.set()
            server.shutdown()
            server.server_close()
