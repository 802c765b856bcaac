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

import pytest
import requests

from tests.standins.json_answers import send_json
from vertex_api.transport import BoundedAdapter

VARIABLES = {
    "cloudresourcemanager": "RESOURCE_MANAGER",
    "hierarchy": "RESOURCE_MANAGER_V3",
    "serviceusage": "SERVICE_USAGE",
    "cloudbilling": "CLOUD_BILLING",
    "iam": "IAM",
    "storage": "STORAGE",
    "artifactregistry": "ARTIFACT_REGISTRY",
    "cloudkms": "KMS",
    "secretmanager": "SECRET_MANAGER",
    "compute": "COMPUTE",
    "servicenetworking": "SERVICE_NETWORKING",
    "bigquery": "BIG_QUERY",
    "aiplatform": "VERTEX_AI",
    "monitoring": "MONITORING",
    "openidconnect": "OPENIDCONNECT",
}
"""The part of each API in the gcp provider's variable for another address of it."""
REGION = "europe-west4"
UNLIMITED = -1
LACKED_BY_OWNERS = frozenset(f"storage.buckets.{name}" for name in ("get", "getIamPolicy", "setIamPolicy"))
LACKED_BY_OWNERS |= {f"storage.objects.{name}" for name in ("create", "get", "list")}
"""What roles/owner has not on a project (IAM's page "Basic and predefined roles"); on buckets, owners have it."""
NEEDED = {
    ":getEffectiveOrgPolicy": "orgpolicy.policy.get",
    "services:batchGet": "serviceusage.services.get",
    "/consumerQuotaMetrics/": "serviceusage.quotas.get",
    "/billingInfo": "resourcemanager.projects.get",
    ":getAncestry": "resourcemanager.projects.get",
    ":getIamPolicy": "resourcemanager.projects.getIamPolicy",
    "/iam": "storage.buckets.getIamPolicy",
}
"""By a part of a path, the permission that the call needs (REST references); what is missing here needs none."""


@dataclass
class GoogleProject:
    """`resources` are answers by `api/path`; a number in place of one is the status of a refusal.

    All permissions are held but those of `lacking`, or only those of `held`: then calls that need another one are
    refused. An owner (`is_owner`) holds what roles/owner has. All APIs are on but those in `off`, and no policy limits
    anything but `policies`, by constraint. `grants` are roles and members by project, folder, bucket, repository or
    key. The project is below `ancestors`. Of each metric there is more than enough, but for `quotas`. Whole APIs answer
    with `refusals`, are `disabled` or `forbidden`, never answer (`hanging`), or with a text (`garbage`).
    """

    resources: dict[str, Any] = field(default_factory=dict)
    refusals: dict[str, tuple[int, Any]] = field(default_factory=dict)
    lacking: set[str] = field(default_factory=set)
    held: set[str] | None = None
    is_owner: bool = False
    off: set[str] = field(default_factory=set)
    policies: dict[str, Any] = field(default_factory=dict)
    grants: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    ancestors: list[str] = field(default_factory=list)
    quotas: dict[str, int] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    hanging: set[str] = field(default_factory=set)
    garbage: str | None = None
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each request."""
    variables: dict[str, str] = field(default_factory=dict)
    closing: threading.Event = field(default_factory=threading.Event)

    def hear(self, method: str, target: str, content: str | bytes | None) -> tuple[int, Any] | None:
        """Note a request and answer it; None if no proper answer comes."""
        url = urlsplit(target)
        api, _, path = unquote(url.path).lstrip("/").partition("/")
        self.requests.append((method, f"{api}/{path}"))
        if api in self.hanging or self.garbage is not None:
            return None
        return self.answer(api, path, parse_qs(url.query), json.loads(content or "{}"))

    def answer(self, api: str, path: str, query: dict[str, list[str]], body: dict[str, Any]) -> tuple[int, Any]:
        """Answer a request: its status, and what it says."""
        if api in self.refusals:
            return self.refusals[api]
        if api in self.disabled:
            reason = {"reason": "SERVICE_DISABLED", "metadata": {"consumer": "projects/acme-dev"}}
            message = f"{api} API has not been used in project acme-dev before or it is disabled."
            return 403, _error(403, message, details=[reason])
        needed = {permission for part, permission in NEEDED.items() if part in path}
        if api in self.forbidden or (self.held is not None and not needed <= self.held):
            return 403, _error(403, "The caller does not have permission")
        there = self.resources.get(f"{api}/{path}")
        if isinstance(there, int):
            return there, _error(there, "refused")
        if there is not None:
            return 200, there
        name, _, verb = path.partition(":")
        if verb == "testIamPermissions":
            return 200, {"permissions": self._held(body["permissions"], name)}
        if path.endswith("/testIamPermissions"):
            return 200, {"permissions": self._held(body["permissions"], path)}
        if path.endswith("/iam/testPermissions"):
            return 200, {"permissions": self._held(query["permissions"], path)}
        if verb == "getEffectiveOrgPolicy":
            constraint = body["constraint"].removeprefix("constraints/")
            return 200, {"constraint": body["constraint"], **self.policies.get(constraint, {})}
        if verb == "getIamPolicy":
            return 200, {"bindings": self._bindings(name)}
        if path.endswith(("/iam", "/getIamPolicy")):
            return 200, {"bindings": self._bindings(path.rpartition("/")[0])}
        if verb == "getAncestry":
            line = [f"project/{name.partition('/')[2]}", *self.ancestors]
            ids = [dict(zip(("type", "id"), each.split("/"), strict=True)) for each in line]
            return 200, {"ancestor": [{"resourceId": each} for each in ids]}
        if "/consumerQuotaMetrics/" in path:
            return 200, self._quota(path.rpartition("/consumerQuotaMetrics/")[2])
        if verb == "batchGet":
            states = {name: "DISABLED" if name in self.off else "ENABLED" for name in query["names"]}
            return 200, {"services": [{"name": name, "state": state} for name, state in states.items()]}
        return 404, _error(404, f"{path} was not found")

    def _held(self, permissions: list[str], path: str) -> list[str]:
        missing = self.lacking | (LACKED_BY_OWNERS if self.is_owner and path.count("/") == 1 else set())
        held = {*permissions} if self.held is None else self.held
        return [each for each in permissions if each in held - missing]

    def _bindings(self, name: str) -> list[dict[str, Any]]:
        return [{"role": role, "members": [member]} for role, member in self.grants.get(name, [])]

    def _quota(self, metric: str) -> dict[str, Any]:
        """A ConsumerQuotaMetric, as its view FULL shows it: buckets, from the default to those of regions."""
        value = self.quotas.get(metric.rpartition("custom_model_training_")[2], UNLIMITED)
        buckets: list[dict[str, Any]] = [{"effectiveLimit": "0", "defaultLimit": "0"}]
        buckets += [{"effectiveLimit": str(value), "dimensions": {"region": REGION}}]
        return {"metric": metric, "consumerQuotaLimits": [{"unit": "1/{project}/{region}", "quotaBuckets": buckets}]}


def _error(code: int, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **more}}


@contextmanager
def google_project(project: GoogleProject) -> Iterator[GoogleProject]:
    """Serve a project on a port of this machine; with its `variables`, the gcp provider's endpoints lead there."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if answer := project.hear(self.command, self.path, content):
                send_json(self, *answer)
            elif project.garbage is None:
                project.closing.wait()
            else:
                content = project.garbage.encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

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


def answer_in_memory(project: GoogleProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the requests of this process have the answers of a served project without HTTP, where one comes."""
    over_http = BoundedAdapter.send
    bases = tuple(project.variables.values())

    def send(adapter: BoundedAdapter, request: Any, **options: Any) -> Any:
        if not request.url.startswith(bases) or project.hanging or project.garbage is not None:
            return over_http(adapter, request, **options)
        heard = project.hear(request.method, request.path_url, request.body)
        assert heard is not None
        answer = requests.Response()
        answer.status_code, answer.url, answer.request = heard[0], request.url, request
        answer._content = json.dumps(heard[1]).encode()
        return answer

    monkeypatch.setattr(BoundedAdapter, "send", send)
