"""A deployer with the roles of "The least it needs" pushes, uploads and builds; with one less it is told which."""

import io
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import pytest
from vertex_training.errors import ComponentError
from vertex_training.images import build_client, registry
from vertex_training.images import cloud_build as builder
from vertex_training.images.build_client import BUILD_ENDPOINT_VARIABLE, LOGGING_ENDPOINT_VARIABLE
from vertex_training.images.cloud_build import CloudBuilder
from vertex_training.images.context import DockerfileContext
from vertex_training.images.registry import GoogleRegistry, Registry
from vertex_training.runtime.storage import CloudStorage

from tests import access_page
from tests.standins.cloud_build import CloudBuildStandIn, Refusal, cloud_build
from tests.standins.cloud_storage import CloudStorageStandIn
from tests.standins.permissions import ROLES, UPLOADS, text
from vertex_api import credentials, retry

POOL = "projects/acme-pools/locations/europe-west4/workerPools/private"
ACCOUNT = "team-dev-build@acme-dev.iam.gserviceaccount.com"
REPOSITORY = "projects/acme-dev/locations/europe-west4/repositories/team"
URI = "europe-west4-docker.pkg.dev/acme-dev/team/trainer:0123456789abcdef"
PACKAGE = "gs://acme/team/dev/packages/code-0123.tar.gz"
PLACES = {
    "bucket": "b/acme",
    "repository": REPOSITORY,
    "project": "acme-dev",
    "account": ACCOUNT,
    "pool": POOL,
}
LEAST = access_page.least_roles()


class Deployer:
    """Who has all of the `roles` on what the page names, and what its calls then are answered."""

    def __init__(self, roles: Set[str]) -> None:
        self._held = {permission for role in roles for permission in ROLES[role]}

    def refusal(self, call: str) -> str | None:
        """What Google answers to a call, if it is refused."""
        lacked = [(each, at) for each, at in UPLOADS[call].items() if each not in self._held]
        return text(lacked[0][0], PLACES[lacked[0][1]]) if lacked else None


class Daemon:
    """Docker, which asks the registry as the deployer."""

    def __init__(self, deployer: Deployer) -> None:
        self._deployer = deployer
        self.images, self.api = SimpleNamespace(get_registry_data=self._find), SimpleNamespace(push=self._push)

    def close(self) -> None:
        """Nothing is open."""

    def _find(self, uri: str, auth_config: Any) -> Any:
        assert auth_config["username"] == "oauth2accesstoken"
        if refused := self._deployer.refusal("manifests.get"):
            raise docker.errors.APIError("refused", SimpleNamespace(status_code=403), f"denied: {refused}")
        return SimpleNamespace(id="sha256:1")

    def _push(self, name: str, tag: str, **options: Any) -> Iterator[dict[str, Any]]:
        refused = self._deployer.refusal("blobs.upload")
        yield {"error": f"denied: {refused}"} if refused else {"aux": {"Digest": "sha256:1"}}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudBuildStandIn]:
    monkeypatch.setattr(builder, "wait_for_cancellation", lambda seconds: False)
    monkeypatch.setattr(build_client, "READ_INTERVAL_SECONDS", 0.0)
    with cloud_build() as standin:
        for variable in (BUILD_ENDPOINT_VARIABLE, LOGGING_ENDPOINT_VARIABLE):
            monkeypatch.setenv(variable, standin.url)
        failed = {"type": "USER_BUILD_STEP", "detail": "Build step failure: build step 0 failed: 1"}
        standin.outcome = {"status": "FAILURE", "failureInfo": failed}
        yield standin


@pytest.fixture
def told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, storage: CloudStorageStandIn, service: CloudBuildStandIn
) -> Callable[[Set[str]], Mapping[str, str]]:
    """What a deployer with these roles is told of each step; nothing of one that passes."""
    monkeypatch.setattr(credentials, "fetch_token", lambda: "token")
    monkeypatch.setattr(retry, "rule_for", lambda *_: None)  # what is retried for minutes first is the caller's
    monkeypatch.setattr(GoogleRegistry, "digest", lambda *_: None)
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    context = DockerfileContext(tmp_path, "Dockerfile", {}, None, "linux/amd64", ())
    options = {"parent": "projects/acme-dev/locations/europe-west4", "serviceAccount": ACCOUNT, "pool": POOL}

    def run(roles: Set[str]) -> Mapping[str, str]:
        deployer = Deployer(roles)
        monkeypatch.setattr(registry, "connect", lambda: Daemon(deployer))
        storage.refused = {
            method: refused for method in ("GET", "POST") if (refused := deployer.refusal(f"objects.{method}"))
        }
        service.refusals = {
            call: [Refusal(403, refused)] * 2
            for call in ("create", "get", "list", "log")
            if (refused := deployer.refusal(f"builds.{call}"))
        }
        lines: dict[str, list[str]] = {"look": [], "push": [], "upload": [], "build": []}
        steps: dict[str, Callable[[], object]] = {
            "look": lambda: Registry().digest(URI),
            "push": lambda: Registry().publish(URI, print),
            "upload": lambda: CloudStorage().put(PACKAGE, io.BytesIO(b"package")),
            "build": lambda: CloudBuilder({**options, "sourceFolder": "gs://acme/team/dev/build-sources"}).build(
                context, URI, lines["build"].append
            ),
        }
        for step, take in steps.items():
            try:
                take()
            except ComponentError as error:
                lines[step].append(str(error))
        storage.objects.clear()
        return {step: "\n".join(line for line in said if "roles/" in line) for step, said in lines.items()}

    return run


def test_the_least_roles_push_upload_and_build(
    told: Callable[[Set[str]], Mapping[str, str]], service: CloudBuildStandIn, storage: CloudStorageStandIn
) -> None:
    assert not any(told(LEAST).values())
    assert (storage.uploads, service.count("create"), service.count("log") > 0) == (2, 1, True)


@pytest.mark.parametrize(
    ("role", "steps"),
    [
        ("roles/artifactregistry.writer", {"look", "push"}),
        ("roles/storage.objectUser", {"upload", "build"}),
        ("roles/cloudbuild.builds.editor", {"build"}),
        ("roles/iam.serviceAccountUser", {"build"}),
        ("roles/cloudbuild.workerPoolUser", {"build"}),
        ("roles/logging.viewer", {"build"}),
    ],
)
def test_a_role_less_is_named(told: Callable[[Set[str]], Mapping[str, str]], role: str, steps: set[str]) -> None:
    lines = {step: line for step, line in told(LEAST - {role}).items() if line}
    assert lines.keys() == steps and all(role in line for line in lines.values()), lines


def test_each_role_is_of_a_call() -> None:
    """But that of jobs, which are submitted."""
    needed = {permission for call in UPLOADS.values() for permission in call}
    assert {role for role in LEAST if not needed.intersection(ROLES[role])} == {"roles/aiplatform.user"}
