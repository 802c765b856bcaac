"""Images that Cloud Build builds, through the real engine on a machine without Docker.

The registry, Docker behind the stand-in for Cloud Build, the emulator's Cloud Storage and `google.auth.default()` are
real; the account's key and Google's own services are the tests'.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import urllib.request
import uuid
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest
from vertex_training.errors import BuildFailed
from vertex_training.images import build_client
from vertex_training.images import cloud_build as builder
from vertex_training.images.build_client import BUILD_ENDPOINT_VARIABLE, LOGGING_ENDPOINT_VARIABLE
from vertex_training.images.cloud_build import CloudBuilder
from vertex_training.images.image import build_context

from tests import buildx
from tests.engine.cloud import CloudProject
from tests.engine.killing import find_providers
from tests.registry import NEEDED
from tests.registry import registry as registry_with_password
from tests.standins.artifact_registry import HOST, TokensStandIn, tokens
from tests.standins.cloud_build import CloudBuildStandIn, cloud_build
from tests.standins.proxied_artifact_registry import ProxiedRegistry, proxied_artifact_registry, why_impossible
from tests.vertex_emulator.running import IMAGE, PATIENCE_SECONDS, RunningEmulator, until

pytestmark = [pytest.mark.large, pytest.mark.skipif(bool(why_impossible()), reason=why_impossible())]
TOKEN, SECRET = "ya29.canary-of-a-google-token", "canary-of-a-build-secret"
VERSION = "projects/acme-dev/secrets/pip-token/versions/3"
OPTIONS = {
    "cache": True,
    "parent": "projects/acme-dev/locations/europe-west4",
    "serviceAccount": "b@acme-dev.iam.gserviceaccount.com",
    "sourceFolder": "gs://acme-dev-vertex-training-dev/build-sources",
}
READ = hashlib.md5(SECRET.encode(), usedforsecurity=False).hexdigest()
DOCKERFILE = f"""\
FROM python:3.11-slim-bookworm AS check
ARG GREETING
RUN --mount=type=secret,id=token test "$(md5sum < /run/secrets/token)" = '{READ}  -' && echo "$GREETING" > /ok
FROM scratch
COPY --from=check /ok /
COPY train.py /
"""

LOOK = (
    'import ipaddress, subprocess, sys; own = subprocess.check_output(["hostname", "-I"], text=True).split(); '
    "sys.exit(not any(ipaddress.ip_address(each) in ipaddress.ip_network(sys.argv[1]) for each in own))"
)
"""Whether a container is in a network."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cloud-build")


@pytest.fixture(scope="module")
def registry(folder: Path) -> Iterator[ProxiedRegistry]:
    with proxied_artifact_registry(folder / "registry", TOKEN) as made:
        buildx.install(made.docker_config, buildx.program())
        yield made


@pytest.fixture(scope="module")
def account(folder: Path) -> Iterator[TokensStandIn]:
    with tokens(folder, TOKEN) as made:
        yield made


@pytest.fixture(scope="module")
def service(vertex: RunningEmulator, registry: ProxiedRegistry) -> Iterator[CloudBuildStandIn]:
    with cloud_build() as standin:
        standin.storage_url, standin.registry = vertex.url, registry.address
        standin.docker_config, standin.secrets = registry.docker_config, {VERSION: SECRET}
        yield standin


@pytest.fixture(scope="module")
def cloud(
    folder: Path,
    vertex: RunningEmulator,
    registry: ProxiedRegistry,
    account: TokensStandIn,
    service: CloudBuildStandIn,
) -> Iterator[CloudProject]:
    """A stack `dev` with an image and nothing to run it, whose `pulumi` finds no Docker."""
    project = CloudProject(folder, vertex)
    del project.declarations["customJobs"], project.declarations["vars"]
    (project.root / "trainer" / "Dockerfile").write_text(DOCKERFILE)
    image = {"context": "trainer", "buildArgs": {"GREETING": "$HOME"}, "secrets": {"token": "${secrets.pipToken}"}}
    project.declarations["images"] = {"trainer": image}
    project.stack["vertex-training:builder"] = {
        "cloudBuild": {"machineType": "E2_HIGHCPU_8", "cache": True, "secrets": {"pipToken": VERSION}}
    }
    project.environment |= registry.variables | {
        "PATH": _create_path_without_docker(folder / "programs"),
        "DOCKER_HOST": "unix:///nowhere/docker.sock",
        "GOOGLE_APPLICATION_CREDENTIALS": str(account.credentials),
        "STORAGE_EMULATOR_HOST": vertex.url,
        BUILD_ENDPOINT_VARIABLE: service.url,
        LOGGING_ENDPOINT_VARIABLE: service.url,
    }
    project.declare()
    yield project
    with closing(docker.from_env()) as client:
        for build in service.builds.values():
            for name in build["images"]:
                for tag in (name, f"{registry.address}/{name.partition('/')[2]}"):
                    if client.images.list(tag):
                        client.images.remove(tag, force=True)


class TestRemoteBuild:
    """Tests of one stack, in order."""

    def test_a_machine_without_docker_builds_and_pushes(
        self, cloud: CloudProject, service: CloudBuildStandIn, registry: ProxiedRegistry, account: TokensStandIn
    ) -> None:
        output = cloud.up()
        uri, pinned = (cloud.outputs()[key]["trainer"] for key in ("images", "pinnedImages"))
        assert uri.startswith(f"{HOST}/acme-dev/vertex-training-dev/trainer:")
        assert pinned == f"{uri.rpartition(':')[0]}@{_fetch_served_digest(registry, uri)}"
        assert "trainer: sent 2 files to gs://acme-dev-vertex-training-dev/vertex-training/dev/build-sources/" in output
        assert re.search(r"trainer: #\d+ \[check 2/2\] RUN --mount=type=secret", output)
        (build,) = service.builds.values()
        assert build["serviceAccount"].endswith("/vertex-training-dev-build@acme-dev.iam.gserviceaccount.com")
        with closing(docker.from_env()) as client:
            layers = b"".join(client.images.get(uri).save()).decode("latin-1")
        assert "$HOME\n" in layers and (cloud.root / "trainer" / "train.py").read_text() in layers
        seen = [output, json.dumps(service.builds), layers, cloud.read_state()]
        assert [text[:2000] for text in seen if SECRET in text or TOKEN in text or account.private_key in text] == []

    def test_either_builder_previews_no_change(self, cloud: CloudProject, service: CloudBuildStandIn) -> None:
        cloud.assert_no_changes()
        cloud.declarations["images"]["trainer"]["builder"] = {"local": True}
        cloud.stack["vertex-training:secrets"] = {"pipToken": SECRET}
        cloud.declare()
        cloud.assert_no_changes()
        del cloud.declarations["images"]["trainer"]["builder"], cloud.stack["vertex-training:secrets"]
        cloud.declare()
        assert service.count("create") == 1

    def test_interrupts_cancel_and_kills_leave_one_build(
        self, cloud: CloudProject, service: CloudBuildStandIn, registry: ProxiedRegistry
    ) -> None:
        cloud.edit_code()
        service.may_run.clear()
        interrupted = _start_up_and_wait_for_build(cloud, service, 2)
        interrupted.send_signal(signal.SIGINT)
        output, _ = interrupted.communicate(timeout=PATIENCE_SECONDS)
        assert "its build was cancelled with this run; run `pulumi up` again to build it" in output
        assert [build["status"] for build in service.builds.values()] == ["SUCCESS", "CANCELLED"]

        killed = _start_up_and_wait_for_build(cloud, service, 3)
        killed.kill()
        killed.communicate()
        until(lambda: not find_providers(cloud), "the end of the provider")
        cloud.pulumi("cancel", "--yes", cloud.name)
        lists = service.count("list")
        resumed = cloud.start_pulumi("up", "--yes", "--skip-preview", "--stack", cloud.name)
        until(lambda: service.count("list") > lists, "the search for an active build")
        service.may_run.set()
        output, _ = resumed.communicate(timeout=120)
        assert resumed.returncode == 0, output
        assert "which an earlier run has started" in output and service.count("create") == 3
        first, _, third = service.builds.values()
        assert f"--cache-from={first['images'][0]}" in third["steps"][0]["args"]
        uri = cloud.outputs()["images"]["trainer"]
        assert cloud.outputs()["pinnedImages"]["trainer"].endswith(_fetch_served_digest(registry, uri))


@NEEDED
def test_an_edited_image_reuses_layers_of_the_last(
    tmp_path: Path, vertex: RunningEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers come from the registry: the daemon has forgotten them. A last image that is gone fails nothing."""
    context = tmp_path / "context"
    context.mkdir()
    shell = (f"--mount=from={IMAGE},source=/usr/{folder},target=/{folder}" for folder in ("bin", "lib", "lib64"))
    run = f"RUN {' '.join(shell)} echo {tmp_path} > /ok"
    (context / "Dockerfile").write_text(f"FROM scratch\n{run}\nCOPY train.py /\n")
    with (
        registry_with_password(tmp_path / "registry") as plain,
        cloud_build() as service,
        closing(docker.from_env()) as client,
    ):
        service.storage_url, service.registry, service.docker_config = vertex.url, plain.host, plain.docker_config
        buildx.install(plain.docker_config, buildx.program())
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", vertex.url)
        for variable in (BUILD_ENDPOINT_VARIABLE, LOGGING_ENDPOINT_VARIABLE):
            monkeypatch.setenv(variable, service.url)

        monkeypatch.setattr(builder, "FIRST_PAUSE_SECONDS", 0.2)

        def build_and_forget(code: str) -> str:
            (context / "train.py").write_text(code)
            image = build_context(context, {"context": "."})
            uri = f"{HOST}/acme-dev/team/trainer:{image.tag}"
            try:
                CloudBuilder(OPTIONS).build(image, uri, print)
            finally:
                for tag in (uri, f"{plain.host}/{uri.partition('/')[2]}"):
                    client.images.remove(tag, force=True)
                _remove_cached_layers(client, str(tmp_path))
            return "\n".join([*service.logs.values()][-1])

        step = rf"#(\d+) \[stage-0 1/2\] {re.escape(run)}\n(?:#\1 sha256:.*\n)*#\1 "
        assert re.search(f"{step}DONE", build_and_forget("1"))
        service.has_layer_cache = True
        assert re.search(f"{step}CACHED", build_and_forget("2"))
        shutil.rmtree(plain.folder / "images")
        log = build_and_forget("3")
    assert re.search(f"{step}DONE", log) and re.search(r"#\d+ ERROR: .*: not found", log), log


def test_steps_are_in_the_network_that_a_stack_names(
    tmp_path: Path,
    vertex: RunningEmulator,
    registry: ProxiedRegistry,
    service: CloudBuildStandIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without it, the step that looks for the network fails, and the error ends with its last lines."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", vertex.url)
    for variable in (BUILD_ENDPOINT_VARIABLE, LOGGING_ENDPOINT_VARIABLE):
        monkeypatch.setenv(variable, service.url)
    monkeypatch.setattr(build_client, "_RETRY_SECONDS", 0.0)
    with closing(docker.from_env()) as client:
        network = client.networks.create(f"vertex-training-test-{uuid.uuid4().hex[:12]}")
        try:
            network.reload()
            looks = f"'{LOOK}' {network.attrs['IPAM']['Config'][0]['Subnet']}"
            (tmp_path / "Dockerfile").write_text(
                f'FROM {IMAGE} AS check\nLABEL of="{tmp_path}"\nRUN python -c {looks} && touch /ok\n'
                "FROM scratch\nCOPY --from=check /ok /\n"
            )
            context = build_context(tmp_path, {"context": "."})
            uri = f"{HOST}/acme-dev/team/network:{context.tag}"
            with pytest.raises(BuildFailed) as failed:
                CloudBuilder(OPTIONS).build(context, uri, print)
            first, *last_lines = str(failed.value).splitlines()
            assert first == f"{uri} cannot be built; the last lines of its build:"
            assert len(last_lines) == 12 and "exit code: 1" in last_lines[-1]
            options = {**OPTIONS, "network": network.name}
            digest = CloudBuilder(options).build(context, uri, print)
        finally:
            network.remove()
        assert digest == _fetch_served_digest(registry, uri)
        for tag in (uri, f"{registry.address}/{uri.partition('/')[2]}"):
            client.images.remove(tag, force=True)
        client.images.prune({"label": f"of={tmp_path}"})  # the classic builder keeps its first stage


def _start_up_and_wait_for_build(
    cloud: CloudProject, service: CloudBuildStandIn, number: int
) -> "subprocess.Popen[str]":
    run = cloud.start_pulumi("up", "--yes", "--skip-preview", "--stack", cloud.name)
    until(lambda: len(service.builds) == number and service.calls[-1][0] == "get", "a build that is waited for")
    return run


def _create_path_without_docker(folder: Path) -> str:
    """Return a PATH with the programs of this machine, except Docker's and gcloud."""
    folder.mkdir()
    kept = []
    for place in os.environ["PATH"].split(os.pathsep):
        programs = list(Path(place).iterdir()) if Path(place).is_dir() else []
        if not any(program.name in ("docker", "gcloud") for program in programs):
            kept.append(place)
            continue
        for program in programs:
            link = folder / program.name
            if not program.name.startswith(("docker", "gcloud")) and not link.is_symlink():
                link.symlink_to(program)
    return os.pathsep.join([*kept, str(folder)])


def _remove_cached_layers(client: docker.DockerClient, text: str) -> None:
    """Remove the layers of steps that contain a text from the daemon's cache, and the layers upon them."""
    layers = client.api.df()["BuildCache"]
    steps = [layer["ID"] for layer in layers if text in layer["Description"]]
    for id_ in [*(layer["ID"] for layer in layers if layer["Parent"] in steps), *steps]:
        client.api.prune_builds(filters={"id": id_}, all=True)


def _fetch_served_digest(registry: ProxiedRegistry, uri: str) -> str:
    """Return the digest that the registry itself gives to a tag."""
    repository, _, tag = uri.partition("/")[2].rpartition(":")
    login = b64encode(f"oauth2accesstoken:{TOKEN}".encode()).decode()
    headers = {"Authorization": f"Basic {login}", "Accept": "application/vnd.docker.distribution.manifest.v2+json"}
    url = f"https://{registry.address}/v2/{repository}/manifests/{tag}"
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(urllib.request.Request(url, None, headers), context=context) as reply:
        return str(reply.headers["Docker-Content-Digest"])
