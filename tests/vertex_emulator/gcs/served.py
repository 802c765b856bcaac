"""Cloud Storage alone, over real HTTP."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import requests
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs import messages, routes


def _refusal(_request: Request, error: Any) -> JSONResponse:
    return JSONResponse(error.to_json(), status_code=error.http)


class ServedStorage:
    """A server on two folders below `root`; another one on the same root is one that was restarted."""

    def __init__(self, root: Path) -> None:
        app = Starlette(
            routes=routes.build(root / "gcs", root / "uploads", root / "objects.db"),
            exception_handlers={ApiError: _refusal, **messages.ERROR_HANDLERS},
        )
        listener = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
        self._thread = threading.Thread(target=self._server.run, args=([listener],))
        self._thread.start()
        self._listener = listener
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._http = requests.Session()
        self._http.trust_env = False

    def __enter__(self) -> ServedStorage:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        """A request and its reply."""
        return self._http.request(method, self.url + path, **options)
