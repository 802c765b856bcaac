"""The executions API of a workflow over HTTP, for clients that are not workflows."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.standins.json_answers import send_json
from tests.standins.workflows.executions import Workflow


class ExecutionsServer(ThreadingHTTPServer):
    """Answers for `workflows` by their names; any other is not found."""

    def __init__(self) -> None:
        self.workflows: dict[str, Workflow] = {}
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: ExecutionsServer

    def do_GET(self) -> None:  # the name that the base class calls
        path, query = urlsplit(self.path).path, dict(parse_qsl(urlsplit(self.path).query))
        workflow = self.server.workflows.get(path.removeprefix("/v1/").removesuffix("/executions"))
        if workflow is None:
            send_json(self, 404, {"error": {"code": 404, "status": "NOT_FOUND", "message": f"{path} is not there"}})
            return
        url = f"https://workflowexecutions.googleapis.com{path}"
        send_json(self, 200, workflow.request("GET", url, query, None))

    def log_message(self, *_arguments: Any) -> None:
        """Nothing is written to the tests' output."""


@contextmanager
def serve_executions() -> Iterator[ExecutionsServer]:
    with ExecutionsServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
