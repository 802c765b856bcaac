"""A stand-in for Cloud Build and for the log of its builds, which runs the steps of a build in this machine's Docker.

A request is checked against the API's discovery document. Sources come from Cloud Storage, as `storage_url` has it. A
build runs steps of Google's Docker image alone and refuses all others by name. Images are pushed to `registry`, an
address on this machine in place of the host in their names, by whatever `docker_config` is logged in to.
"""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from tests.corpus.discovery import broken
from tests.standins.json_answers import send_json

DOCKER_STEP = "gcr.io/cloud-builders/docker"
_BUILD_PATH = re.compile(r"/v1/(?P<parent>projects/[^/]+/locations/[^/]+)/builds(?:/(?P<id>[^/:]+))?(?P<verb>:cancel)?")
_SUBSTITUTION = re.compile(r"\$\$|\$\{?(\w+)\}?")
_OWN_ACCOUNT = (
    "if 'build.service_account' is specified, the build must either (a) specify 'build.logs_bucket', (b) use the "
    "REGIONAL_USER_OWNED_BUCKET build.options.default_logs_bucket_behavior option, or (c) use either "
    "CLOUD_LOGGING_ONLY / NONE logging options"
)
"""As quoted in cert-manager#8851."""


@dataclass
class Refusal:
    """An answer in place of the service's: `code` is HTTP's, 0 to break the connection after the call is served."""

    code: int
    message: str = ""
    reason: str = ""


class CloudBuildStandIn:
    """What it has been asked, and what it shall do.

    `calls` are methods and paths, `builds` are by id. `refusals` are the next answers to the call that they name
    (`create`, `get`, `list`, `cancel`, `log`). A build has the fields of the next of `outcomes` at once, or of
    `outcome` after those; if that is empty, it runs, once `may_run` is set. `secrets` are values by the names of their
    versions. Steps find no layers of earlier builds unless `has_layer_cache`. `before_create` is called
    before a build is created.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.calls: list[tuple[str, str]] = []
        self.builds: dict[str, dict[str, Any]] = {}
        self.logs: dict[str, list[str]] = {}
        self.refusals: dict[str, list[Refusal]] = {}
        self.outcome: dict[str, Any] = {}
        self.outcomes: list[dict[str, Any]] = []
        self.secrets: dict[str, str] = {}
        self.storage_url = self.registry = ""
        self.docker_config: Path | None = None
        self.has_layer_cache = self.has_empty_first_log_page = False
        self.before_create: Callable[[], object] = lambda: None
        self.may_run = threading.Event()
        self.may_run.set()
        self._lock = threading.Lock()

    def count(self, call: str) -> int:
        """Return how many calls of a name there were."""
        return sum(name == call for name, _ in self.calls)

    def answer(self, method: str, path: str, query: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
        """Answer a call: its status and what it says."""
        matched = _BUILD_PATH.fullmatch(path)
        name = "log" if path == "/v2/entries:list" else ""
        if matched:
            name = "cancel" if matched["verb"] else "get" if matched["id"] else "list" if method == "GET" else "create"
        self.calls.append((name, path))
        refusal = self.refusals[name].pop(0) if self.refusals.get(name) else None
        if refusal and refusal.code:
            return _error(refusal.code, refusal.message, refusal.reason)
        answer = self._serve(name, matched, query, body)
        return (0, None) if refusal else answer

    def _serve(self, name: str, matched: Any, query: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
        if name == "log":
            is_early = self.has_empty_first_log_page and "pageToken" not in body
            return 200, {"nextPageToken": "next"} if is_early else {"entries": self._list_entries(body)}
        if name == "create":
            return self._create(matched["parent"], body)
        if name == "list":
            (tag,) = re.fullmatch(r'tags="([\w.-]+)"', query["filter"][0]).groups()  # type: ignore[union-attr]
            return 200, {"builds": [build for build in reversed(self.builds.values()) if tag in build["tags"]]}
        build = self.builds.get(matched["id"]) if matched else None
        if build is None:
            return _error(404, "Requested entity was not found.")
        if name == "cancel":
            with self._lock:
                build["status"] = "CANCELLED"
        return 200, build

    def _create(self, parent: str, build: dict[str, Any]) -> tuple[int, Any]:
        if problems := list(_find_problems(build)):
            return _error(400, problems[0])
        self.before_create()
        id_ = f"00000000-0000-4000-8000-{len(self.builds):012}"
        name = f"projects/123456789012/locations/{parent.split('/')[3]}/builds/{id_}"
        page = f"https://console.cloud.google.com/cloud-build/builds/{id_}"
        created = {"timeout": "3600s", **build, "id": id_, "name": name, "logUrl": page, "status": "QUEUED"}
        with self._lock:
            self.builds[id_] = created
        self.logs.setdefault(id_, list(self.logs.pop("next", [])))
        if outcome := self.outcomes.pop(0) if self.outcomes else self.outcome:
            created |= outcome
        else:
            threading.Thread(target=self._run, args=[created], daemon=True).start()
        return 200, {"name": "operations/build", "metadata": {"build": created}}

    def _run(self, build: dict[str, Any]) -> None:
        self._update_unless_cancelled(build, {"status": "WORKING"})
        self.may_run.wait()
        # Its steps would push the image of the build that took its place.
        if build["status"] == "CANCELLED":
            return
        with tempfile.TemporaryDirectory() as folder:
            source = build["source"]["storageSource"]
            url = f"{self.storage_url}/storage/v1/b/{source['bucket']}/o/{quote(source['object'], safe='')}?alt=media"
            url += f"&generation={source['generation']}"
            with urllib.request.urlopen(url) as reply, tarfile.open(fileobj=reply, mode="r|gz") as archive:
                archive.extractall(folder, filter="fully_trusted")
            result = self._run_steps(build, folder)
        self._update_unless_cancelled(build, result)

    def _update_unless_cancelled(self, build: dict[str, Any], fields: Mapping[str, Any]) -> None:
        with self._lock:
            if build["status"] != "CANCELLED":
                build |= fields

    def _run_steps(self, build: dict[str, Any], folder: str) -> dict[str, Any]:
        environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "DOCKER_CONFIG": str(self.docker_config)}
        versions = {
            each["env"]: each["versionName"] for each in build.get("availableSecrets", {}).get("secretManager", [])
        }
        for index, step in enumerate(build["steps"]):
            own = dict(each.split("=", 1) for each in step.get("env", []))
            own |= {name: self.secrets[versions[name]] for name in step.get("secretEnv", [])}
            arguments = [self._find_in_registry(argument.replace("$$", "$")) for argument in step["args"]]
            # A worker has no layers of earlier builds, and a search for some fails if another test removes an image.
            arguments[1:1] = [] if self.has_layer_cache else ["--no-cache"]
            code = self._run_docker(build["id"], arguments, environment | own, folder)
            if code:
                failure = {
                    "type": "USER_BUILD_STEP",
                    "detail": f"Build step failure: build step {index} failed: {code}",
                }
                return {"status": "FAILURE", "failureInfo": failure}
        images = []
        for name in build["images"]:
            pushed = f"{self.registry}/{name.partition('/')[2]}"
            if self._run_docker(build["id"], ["tag", name, pushed], environment, folder):
                return _failure("PUSH_IMAGE_NOT_FOUND", name)
            if self._run_docker(build["id"], ["push", pushed], environment, folder):
                return {
                    "status": "FAILURE",
                    "failureInfo": {"type": "PUSH_FAILED", "detail": self.logs[build["id"]][-1]},
                }
            digest = re.search(r"digest: (sha256:\w+)", "\n".join(self.logs[build["id"]][-3:]))
            assert digest
            images.append({"name": name, "digest": digest[1]})
        return {"status": "SUCCESS", "results": {"images": images}}

    def _find_in_registry(self, argument: str) -> str:
        option, _, image = argument.partition("--cache-from=")
        return f"--cache-from={self.registry}/{image.partition('/')[2]}" if image and not option else argument

    def _run_docker(self, id_: str, arguments: list[str], environment: dict[str, str], folder: str) -> int:
        output = subprocess.PIPE
        with subprocess.Popen(
            ["docker", *arguments], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout
            self.logs[id_] += [line.rstrip() for line in process.stdout]
        return process.returncode

    def _list_entries(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        assert body["orderBy"] == "timestamp desc"
        id_ = re.search(r'resource.labels.build_id="([\w-]+)"', body["filter"])
        lines = enumerate(self.logs.get(id_[1], []) if id_ else [])
        entries = [{"insertId": f"line-{number}", "textPayload": line} for number, line in lines]
        return entries[::-1][: body["pageSize"]]


def _find_problems(build: dict[str, Any]) -> Iterator[str]:
    yield from broken("Build", build, "cloudbuild.v1")
    for index, step in enumerate(build["steps"]):
        if step["name"] != DOCKER_STEP:
            yield f"steps[{index}].name: this stand-in runs {DOCKER_STEP} alone, not {step['name']}"
        for match in (found for argument in step["args"] for found in _SUBSTITUTION.finditer(argument)):
            if match.group() != "$$":
                yield f'key in the template "{match[1]}" is not a valid built-in substitution'
    if "serviceAccount" in build and build.get("options", {}).get("logging") not in ("CLOUD_LOGGING_ONLY", "NONE"):
        yield _OWN_ACCOUNT
    if {"machineType", "pool"} <= build.get("options", {}).keys():
        yield "options.machineType must not be set for a build in a private pool"


def _failure(type_: str, detail: str) -> dict[str, Any]:
    return {"status": "FAILURE", "failureInfo": {"type": type_, "detail": detail}}


def _error(code: int, message: str, reason: str = "") -> tuple[int, Any]:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}] if reason else []
    return code, {"error": {"code": code, "message": message, "details": details}}


@contextmanager
def cloud_build() -> Iterator[CloudBuildStandIn]:
    """The stand-in, on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}"))

        def _answer(self, body: Any) -> None:
            parts = urlsplit(self.path)
            status, answer = standin.answer(self.command, parts.path, parse_qs(parts.query), body)
            if not status:
                return
            send_json(self, status, answer)

        def log_message(self, *arguments: object) -> None:
            """Nothing: a test's output is its own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        standin = CloudBuildStandIn(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield standin
        standin.may_run.set()
        server.shutdown()
