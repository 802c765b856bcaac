"""A stand-in for a Google Cloud project as REST APIs show it: what exists, who may do what, and what is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.standins.json_answers import send_json

VARIABLES = {
    "cloudresourcemanager": "RESOURCE_MANAGER",
    "serviceusage": "SERVICE_USAGE",
    "cloudbilling": "CLOUD_BILLING",
    "iam": "IAM",
    "storage": "STORAGE",
    "artifactregistry": "ARTIFACT_REGISTRY",
    "cloudkms": "KMS",
    "secretmanager": "SECRET_MANAGER",
    "compute": "COMPUTE",
    "servicenetworking": "SERVICE_NETWORKING",
    "cloudquotas": "CLOUD_QUOTAS",
    "aiplatform": "VERTEX_AI",
    "monitoring": "MONITORING",
    "openidconnect": "OPENIDCONNECT",
}
"""The part of each API in the gcp provider's variable for another address of it."""


@dataclass
class GoogleProject:
    """`resources` are answers by `api/path`; a number in place of one is the status of a refusal.

    All permissions are held but those of `lacking`, all APIs are on but those in `off`, and no policy limits anything
    but `policies`, by constraint. `members` have roles by project or key. Whole APIs answer with `refusals`, are
    `disabled` or `forbidden`, never answer (`hanging`), or with a text (`garbage`).
    """

    resources: dict[str, Any] = field(default_factory=dict)
    refusals: dict[str, tuple[int, Any]] = field(default_factory=dict)
    lacking: set[str] = field(default_factory=set)
    off: set[str] = field(default_factory=set)
    policies: dict[str, Any] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    hanging: set[str] = field(default_factory=set)
    garbage: str | None = None
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each request."""
    variables: dict[str, str] = field(default_factory=dict)
    closing: threading.Event = field(default_factory=threading.Event)

    def answer(self, api: str, path: str, query: dict[str, list[str]], body: dict[str, Any]) -> tuple[int, Any]:
        """Answer a request: its status, and what it says."""
        if api in self.refusals:
            return self.refusals[api]
        if api in self.disabled:
            reason = {"reason": "SERVICE_DISABLED", "metadata": {"consumer": "projects/acme-dev"}}
            message = f"{api} API has not been used in project acme-dev before or it is disabled."
            return 403, _error(403, message, details=[reason])
        if api in self.forbidden:
            return 403, _error(403, "The caller does not have permission")
        there = self.resources.get(f"{api}/{path}")
        if isinstance(there, int):
            return there, _error(there, "refused")
        if there is not None:
            return 200, there
        name, _, verb = path.partition(":")
        if verb == "testIamPermissions":
            return 200, {"permissions": [each for each in body["permissions"] if each not in self.lacking]}
        if path.endswith("/iam/testPermissions"):
            return 200, {"permissions": [each for each in query["permissions"] if each not in self.lacking]}
        if verb == "getEffectiveOrgPolicy":
            constraint = body["constraint"].removeprefix("constraints/")
            return 200, {"constraint": body["constraint"], **self.policies.get(constraint, {})}
        if verb == "getIamPolicy":
            return 200, {"bindings": [{"role": "roles/x", "members": self.members.get(name, [])}]}
        if verb == "batchGet":
            states = {name: "DISABLED" if name in self.off else "ENABLED" for name in query["names"]}
            return 200, {"services": [{"name": name, "state": state} for name, state in states.items()]}
        return 404, _error(404, f"{path} was not found")


def _error(code: int, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **more}}


@contextmanager
def google_project(project: GoogleProject) -> Iterator[GoogleProject]:
    """Serve a project on a port of this machine; with its `variables`, the gcp provider's endpoints lead there."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(size) or "{}")
            url = urlsplit(self.path)
            api, _, path = unquote(url.path).lstrip("/").partition("/")
            project.requests.append((self.command, f"{api}/{path}"))
            if api in project.hanging:
                project.closing.wait()
                return
            if project.garbage is not None:
                content = project.garbage.encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                return
            send_json(self, *project.answer(api, path, parse_qs(url.query), body))

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

        def log_message(self, *arguments: object) -> None:
            """Nothing: a test's output is its own."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        project.variables = {f"GOOGLE_{part}_CUSTOM_ENDPOINT": f"{address}/{api}/" for api, part in VARIABLES.items()}
        yield project
        project.closing.set()
        server.shutdown()
