"""A client that is patient: it asks again when its answer was lost, as users' tools do."""

import json
import time
from pathlib import Path
from typing import Any

import requests

from tests.vertex_emulator.running import PARENT, PATIENCE_SECONDS

_SECONDS = 120.0


class PatientClient:
    """Calls on the emulator of a data folder, wherever it listens at the moment."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._http = requests.Session()
        self._http.trust_env = False
        self.lost_answers = 0

    def create(self, collection: str, body: dict[str, Any]) -> str:
        """Submit a job; its name. One whose answer was lost is looked for by its label before it is sent again."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            reply = self._try("POST", f"{PARENT}/{collection}", body)
            if reply is not None:
                assert reply.status_code == 200, reply.text
                return str(reply.json()["name"])
            found = self._ask("GET", f"{PARENT}/{collection}", {"filter": f'labels.item="{body["labels"]["item"]}"'})
            jobs = found.json().get(collection, [])
            assert len(jobs) <= 1, f"{len(jobs)} jobs for one request"
            if jobs:
                return str(jobs[0]["name"])
        raise AssertionError("a job cannot be submitted")

    def get(self, name: str) -> dict[str, Any] | None:
        """The job; None when there is none."""
        reply = self._ask("GET", name)
        assert reply.status_code in (200, 404), reply.text
        return dict(reply.json()) if reply.status_code == 200 else None

    def cancel(self, name: str) -> None:
        """Cancel it, as often as it takes to hear that it is done."""
        reply = self._ask("POST", f"{name}:cancel")
        assert reply.status_code == 200, reply.text

    def delete(self, name: str) -> None:
        """Delete it; when the answer is lost, the next may say that it is gone already."""
        reply = self._ask("DELETE", name)
        assert reply.status_code in (200, 404), reply.text

    def close(self) -> None:
        self._http.close()

    def _ask(self, method: str, path: str, query: dict[str, str] | None = None) -> requests.Response:
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            reply = self._try(method, path, query=query)
            if reply is not None:
                return reply
        raise AssertionError(f"{method} {path} gets no answer for {_SECONDS:.0f} seconds")

    def _try(self, method: str, path: str, body: Any = None, query: Any = None) -> requests.Response | None:
        """An answer, or None when there was none."""
        try:
            url = json.loads((self._data / "endpoint.json").read_text())["url"]
            return self._http.request(method, f"{url}/v1/{path}", json=body, params=query, timeout=PATIENCE_SECONDS)
        except (OSError, ValueError, requests.RequestException):
            self.lost_answers += 1
            time.sleep(0.03)
            return None
