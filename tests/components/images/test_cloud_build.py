"""Builds by Cloud Build: the source that is sent once, and what each end of a build says, over the stand-ins."""

import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import BuildFailed, ContextUnusable
from vertex_training.images import build_client
from vertex_training.images import cloud_build as builder
from vertex_training.images.build_client import BUILD_ENDPOINT_VARIABLE, LOGGING_ENDPOINT_VARIABLE
from vertex_training.images.cloud_build import CloudBuilder, source_archive
from vertex_training.images.context import BuildContext, DockerfileContext
from vertex_training.images.image import build_context
from vertex_training.images.registry import GoogleRegistry
from vertex_training.runtime import engine

from tests.standins.cloud_build import CloudBuildStandIn, cloud_build
from tests.standins.cloud_storage import CloudStorageStandIn
from vertex_api.retry import PROPAGATION_SECONDS

URI = "europe-west4-docker.pkg.dev/acme-dev/team/trainer:0123456789abcdef"
ACCOUNT = "team-dev-build@acme-dev.iam.gserviceaccount.com"
OPTIONS: dict[str, Any] = {
    "parent": "projects/acme-dev/locations/europe-west4",
    "serviceAccount": ACCOUNT,
    "sourceFolder": "gs://acme/team/dev/build-sources",
}
BUILT = {"status": "SUCCESS", "results": {"images": [{"name": URI, "digest": "sha256:1"}]}}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the registry has: digests by URI."""
    images: dict[str, str] = {}
    monkeypatch.setattr(GoogleRegistry, "digest", lambda self, uri: images.get(uri))
    return images


@pytest.fixture
def service(
    monkeypatch: pytest.MonkeyPatch, storage: CloudStorageStandIn, registry: dict[str, str]
) -> Iterator[CloudBuildStandIn]:
    """A service whose builds have ended when they are started."""
    for module in (engine, builder):
        monkeypatch.setattr(module, "wait_for_cancellation", lambda seconds: False)
    monkeypatch.setattr(build_client, "READ_INTERVAL_SECONDS", 0.0)
    with cloud_build() as standin:
        for variable in (BUILD_ENDPOINT_VARIABLE, LOGGING_ENDPOINT_VARIABLE):
            monkeypatch.setenv(variable, standin.url)
        standin.outcome = BUILT
        yield standin


@pytest.fixture
def context(tmp_path: Path) -> BuildContext:
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
    (tmp_path / "train.py").write_text("print()\n")
    return DockerfileContext(tmp_path, "Dockerfile", {"A": "1"}, None, "linux/amd64", ("token",))


def list_source(storage: CloudStorageStandIn) -> list[str]:
    (archive,) = storage.objects.values()
    return list_archive(archive)


def list_built_source(service: CloudBuildStandIn, storage: CloudStorageStandIn) -> list[str]:
    """What the last build has fetched."""
    source = list(service.builds.values())[-1]["source"]["storageSource"]
    return list_archive(storage.objects.read((source["bucket"], source["object"]), source["generation"]))


def list_archive(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive))) as tar:
        return sorted(tar.getnames())


def fail(context: BuildContext) -> str:
    with pytest.raises(BuildFailed) as failed:
        CloudBuilder(OPTIONS).build(context, URI, print)
    return str(failed.value)


def test_a_source_is_sent_once(context: BuildContext, service: CloudBuildStandIn, storage: CloudStorageStandIn) -> None:
    told: list[str] = []
    for _ in range(2):
        assert CloudBuilder(OPTIONS).build(context, URI, told.append) == "sha256:1"
    assert (storage.sent, service.count("create")) == (1, 2)
    assert list(storage.objects) == [("acme", f"team/dev/build-sources/{context.digest}.tar.gz")]
    assert list_source(storage) == ["context/Dockerfile", "context/train.py"]
    assert told[0] == f"sent 2 files to gs://acme/team/dev/build-sources/{context.digest}.tar.gz"
    assert told[1].startswith("builds in Cloud Build: https://console.cloud.google.com/cloud-build/builds/")


def test_a_foreign_source_is_not_built(
    context: BuildContext, service: CloudBuildStandIn, storage: CloudStorageStandIn
) -> None:
    source = ("acme", f"team/dev/build-sources/{context.digest}.tar.gz")
    storage.objects[source] = b"theirs"
    CloudBuilder(OPTIONS).build(context, URI, print)
    assert list_built_source(service, storage) == ["context/Dockerfile", "context/train.py"]


def test_a_replaced_source_is_not_built(
    context: BuildContext, service: CloudBuildStandIn, storage: CloudStorageStandIn
) -> None:
    source = ("acme", f"team/dev/build-sources/{context.digest}.tar.gz")
    service.before_create = lambda: storage.objects.__setitem__(source, b"theirs")
    CloudBuilder(OPTIONS).build(context, URI, print)
    assert storage.objects == {source: b"theirs"}
    assert list_built_source(service, storage) == ["context/Dockerfile", "context/train.py"]


def test_a_retry_names_the_new_generation(
    context: BuildContext, service: CloudBuildStandIn, storage: CloudStorageStandIn
) -> None:
    source = ("acme", f"team/dev/build-sources/{context.digest}.tar.gz")
    service.outcomes = [{"status": "FAILURE", "failureInfo": {"type": "FETCH_SOURCE_FAILED"}}, BUILT]
    replacements = [b"theirs"]

    def replace_once() -> None:
        if replacements:
            storage.objects[source] = replacements.pop()

    service.before_create = replace_once
    CloudBuilder(OPTIONS).build(context, URI, print)
    generations = [build["source"]["storageSource"]["generation"] for build in service.builds.values()]
    assert generations == ["1", "3"]
    assert list_built_source(service, storage) == ["context/Dockerfile", "context/train.py"]


@pytest.mark.usefixtures("service")
def test_equal_files_make_an_equal_source(context: BuildContext, storage: CloudStorageStandIn, tmp_path: Path) -> None:
    CloudBuilder(OPTIONS).build(context, URI, print)
    first = dict(storage.objects)
    storage.objects.clear()
    (tmp_path / "train.py").touch()
    (tmp_path / "train.py").chmod(0o600)
    CloudBuilder(OPTIONS).build(context, URI, print)
    assert storage.objects == first
    (content,) = first.values()
    assert content[4:8] == bytes(4), "no time is in it"


def test_no_copy_sees_an_ignored_dockerfile(context: BuildContext, tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("Dockerfile\n")
    entries, dockerfile = source_archive(context)
    assert dockerfile == "Dockerfile"
    assert sorted(entries.digests) == ["Dockerfile", "context/.dockerignore", "context/train.py"]


def test_an_ignored_dockerfile_must_be_a_file(context: BuildContext, tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("Dockerfile\n")
    (tmp_path / "Dockerfile").rename(tmp_path / "other")
    (tmp_path / "Dockerfile").symlink_to("other")
    with pytest.raises(ContextUnusable, match=r'include it by a line "!Dockerfile" in \.dockerignore'):
        source_archive(context)


def test_a_failed_step_quotes_last_lines(context: BuildContext, service: CloudBuildStandIn) -> None:
    service.logs["next"] = [f"line {number}" for number in range(30)]
    service.outcome = {"status": "FAILURE", "failureInfo": {"type": "USER_BUILD_STEP", "detail": "step 0"}}
    first, *lines = fail(context).splitlines()
    assert first == f"{URI} cannot be built; the last lines of its build:"
    assert lines == [f"  line {number}" for number in range(18, 30)]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (
            {"status": "TIMEOUT", "timeout": "60s"},
            "longer than its timeout of 60s; raise vertex-training:builder",
        ),
        ({"status": "CANCELLED"}, "its build was cancelled in Cloud Build; run `pulumi up` again to build it"),
        ({"status": "EXPIRED"}, "its build got no worker in time; run `pulumi up` again, or name another"),
        ({"status": "INTERNAL_ERROR", "statusDetail": "worker\nlost"}, "had an internal error (worker lost); run"),
        ({"failureInfo": {"type": "PUSH_NOT_AUTHORIZED"}}, f"{ACCOUNT} needs roles/artifactregistry.writer on the"),
        (
            {"failureInfo": {"type": "PUSH_FAILED", "detail": "reset"}},
            "was built and cannot be pushed (reset)",
        ),
        ({"failureInfo": {"type": "LOGGING_FAILURE"}}, f"{ACCOUNT} needs roles/logging.logWriter on the project"),
        (
            {"failureInfo": {"type": "FETCH_SOURCE_FAILED"}},
            f"{ACCOUNT} needs roles/storage.objectViewer on",
        ),
        ({"failureInfo": {"type": "SOMETHING_NEW", "detail": "why"}}, "cannot be built: why"),
        ({"status": "SUCCESS", "results": {}}, "Cloud Build reports no digest of the image; run `pulumi up` again"),
    ],
    ids=lambda value: str(value.get("status") or value["failureInfo"]["type"]) if isinstance(value, dict) else "",
)
def test_other_failures_are_one_line(
    context: BuildContext, service: CloudBuildStandIn, outcome: dict[str, Any], expected: str
) -> None:
    service.outcome = {"status": "FAILURE", **outcome}
    (line,) = fail(context).splitlines()
    assert line.startswith(f"{URI}: ") and expected in line and re.search(r"/builds/[0-9-]{36}\)$", line)


def test_a_new_grant_is_waited_for(context: BuildContext, service: CloudBuildStandIn) -> None:
    failures = [{"status": "FAILURE", "failureInfo": {"type": type_}} for type_ in ("FETCH_SOURCE_FAILED",) * 2]
    service.outcomes = [*failures, BUILT]
    told: list[str] = []
    assert CloudBuilder(OPTIONS).build(context, URI, told.append) == "sha256:1"
    assert service.count("create") == 3
    assert told[-2].endswith("on the staging bucket (no details); trying again in 20 s")


def test_a_grant_that_stays_missing_is_explained(
    context: BuildContext, service: CloudBuildStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(builder, "wait_for_cancellation", pauses.append)
    service.outcome = {"status": "FAILURE", "failureInfo": {"type": "FETCH_SOURCE_FAILED"}}
    assert "needs roles/storage.objectViewer on the staging bucket" in fail(context)
    assert sum(pauses) == PROPAGATION_SECONDS and max(pauses) <= 60


def test_ctrl_c_ends_the_wait_for_a_grant(
    context: BuildContext, service: CloudBuildStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder, "wait_for_cancellation", lambda seconds: True)
    service.outcome = {"status": "FAILURE", "failureInfo": {"type": "FETCH_SOURCE_FAILED"}}
    fail(context)
    assert service.count("create") == 1


DENIED = (
    "failed to access secret version for secret projects/acme-dev/secrets/t/versions/3: rpc error: code = "
    "PermissionDenied desc = Permission 'secretmanager.versions.access' denied for resource "
    "'projects/acme-dev/secrets/t/versions/3' (or it may not exist)."
)
"""googlecodelabs/feedback#1458."""
STEP = 'build step 0 "gcr.io/cloud-builders/docker" failed: '
UNREADABLE: list[tuple[dict[str, Any], list[str]]] = [
    ({"failureInfo": {"type": "USER_BUILD_STEP", "detail": f"Build step failure: {STEP}{DENIED}"}}, []),
    ({"statusDetail": STEP + DENIED}, []),
    (
        {"failureInfo": {"type": "USER_BUILD_STEP", "detail": "Build step failure"}},
        ["Fetching", f"ERROR: {STEP}{DENIED}"],
    ),
]


@pytest.mark.parametrize(("failure", "log"), UNREADABLE, ids=["detail", "status", "log"])
def test_a_new_secret_grant_is_waited_for(
    context: BuildContext, service: CloudBuildStandIn, failure: dict[str, Any], log: list[str]
) -> None:
    service.outcomes, service.logs["next"] = [{"status": "FAILURE", **failure}, BUILT], log
    told: list[str] = []
    assert CloudBuilder(OPTIONS).build(context, URI, told.append) == "sha256:1"
    assert any(line.startswith(f"{ACCOUNT} needs roles/secretmanager.secretAccessor") for line in told)


def test_a_missing_secret_grant_is_named(context: BuildContext, service: CloudBuildStandIn) -> None:
    service.outcome = {"status": "FAILURE", **UNREADABLE[0][0]}
    line = fail(context)
    assert line.startswith(f"{URI}: {ACCOUNT} needs roles/secretmanager.secretAccessor on the secrets of ")
    assert "vertex-training:builder.cloudBuild.secrets (Build step failure: " in line and "log says why" not in line


def test_an_absent_secret_is_not_retried(context: BuildContext, service: CloudBuildStandIn) -> None:
    missing = "failed to access secret version for secret projects/1/secrets/T/versions/9: rpc error: code = NotFound"
    service.outcome = {"status": "FAILURE", "failureInfo": {"type": "USER_BUILD_STEP", "detail": STEP + missing}}
    assert fail(context).startswith(f"{URI}: a secret of vertex-training:builder.cloudBuild.secrets cannot be read")
    assert service.count("create") == 1


def test_a_step_may_speak_of_secrets(context: BuildContext, service: CloudBuildStandIn) -> None:
    service.logs["next"] = [DENIED, "ERROR: failed to solve"]
    service.outcome = {"status": "FAILURE", "failureInfo": {"type": "USER_BUILD_STEP", "detail": "step 0"}}
    assert fail(context).startswith(f"{URI} cannot be built; the last lines of its build:")
    assert service.count("create") == 1


@pytest.mark.parametrize("text", ["dockerfile parse error line 3: unknown instruction: EOF", "Unknown flag: link"])
def test_an_unknown_instruction_is_explained(context: BuildContext, service: CloudBuildStandIn, text: str) -> None:
    service.logs["next"] = [text, "ERROR: build step 0 failed"]
    service.outcome = {"status": "FAILURE", "failureInfo": {"type": "USER_BUILD_STEP", "detail": "step 0"}}
    first, *lines = fail(context).splitlines()
    assert "let it begin with `# syntax=docker/dockerfile:1`, or name a version of Docker in" in first
    assert first.endswith("builder.cloudBuild.dockerImage; the last lines of its build:") and lines[0] == f"  {text}"


def test_a_package_s_dockerfile_is_sent(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    package = {"path": str(tmp_path), "script": "train.py", "baseImage": "python:3.11"}
    entries, dockerfile = source_archive(build_context(tmp_path, {"package": package}))
    assert dockerfile == "context/Dockerfile" and "FROM python:3.11" in entries.texts[dockerfile]
    assert "context/package/train.py" in entries.files


def test_an_image_pushed_first_counts(
    context: BuildContext, service: CloudBuildStandIn, registry: dict[str, str]
) -> None:
    service.outcome = {"status": "FAILURE", "failureInfo": {"type": "PUSH_FAILED", "detail": "tag is immutable"}}
    registry[URI] = "sha256:theirs"
    assert CloudBuilder(OPTIONS).build(context, URI, print) == "sha256:theirs"
