"""A stand-in for the network before the emulator: every call goes through it."""

import http.server
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from vertex_api.emulator import VERSION_HEADER

# Past the proxies that are set for the internet.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ForwardingProxy:
    """Forwards to the URL `upstream`. `record_call` is told of each call before its answer is passed on.

    `edit_answer` and `edit_head` may change it.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream

    def record_call(self, method: str, path: str) -> None:
        """A call has been made and answered; whoever made it has no answer yet."""

    def edit_answer(self, method: str, path: str, content: bytes) -> bytes:
        """Return what to pass on of an answer."""
        return content

    def edit_head(self, method: str, path: str, status: int, content_type: str) -> tuple[int, str]:
        """Return the status and the content type to pass on with it."""
        return status, content_type

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The proxy's URL, while it serves."""
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {"Content-Type": self.headers.get("Content-Type", "application/json")}
                request = urllib.request.Request(proxy.upstream + self.path, body or None, headers, method=self.command)
                try:
                    reply = _DIRECT.open(request)
                except urllib.error.HTTPError as error:
                    reply = error
                with reply:
                    status, passed_on, content = reply.status, reply.headers, reply.read()
                proxy.record_call(self.command, self.path)
                content = proxy.edit_answer(self.command, self.path, content)
                content_type = passed_on.get("Content-Type", "application/json")
                status, content_type = proxy.edit_head(self.command, self.path, status, content_type)
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header(VERSION_HEADER, passed_on.get(VERSION_HEADER, ""))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = answer  # noqa: N815

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
