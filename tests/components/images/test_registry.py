"""Registries for real: pushes, digests as the registry serves them, and a line that is cut on the way."""

import base64
import gc
import hashlib
import io
import os
import shutil
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import docker
import google.auth
import pytest
from google.auth.exceptions import DefaultCredentialsError
from vertex_training.errors import RegistryRefused
from vertex_training.images import builders
from vertex_training.images.builders import Buildx, ClassicBuilder
from vertex_training.images.image import TrainingImageProvider, build_context
from vertex_training.images.registry import Daemon, Registry, _report_layers, google_login, store

from tests import buildx
from tests.cutting_proxy import CuttingProxy
from tests.registry import NEEDED, PASSWORD, SOCKETS_LEFT_OPEN
from tests.registry import Registry as RegistryServer

pytestmark = [NEEDED, SOCKETS_LEFT_OPEN]


@pytest.fixture
def uri(there: RegistryServer) -> Iterator[str]:
    """The URI of an image that the daemon has and the registry has not."""
    uri = f"{there.url}/trainer:abc"
    client = docker.from_env()
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        archive.add(__file__, "trainer.py")
    client.api.import_image_from_data(layer.getvalue(), repository=f"{there.url}/trainer", tag="abc")
    yield uri
    client.images.remove(uri, noprune=True)
    client.close()
    gc.collect()


def test_the_prefix_of_a_uri_decides_its_store() -> None:
    assert isinstance(store("localhost/team/trainer:1"), Daemon)
    for uri in ("europe-west4-docker.pkg.dev/p/r/trainer:1", "localhost:5000/team/trainer:1"):
        assert isinstance(store(uri), Registry)


def test_a_pushed_image_has_a_digest(uri: str) -> None:
    registry, told = Registry(), list[str]()
    assert registry.digest(uri) is None
    digest = registry.publish(uri, told.append)
    assert digest.startswith("sha256:") and len(digest) == 71
    assert registry.digest(uri) == digest
    assert told[-1] == "pushed 1 of 1 layers"


def test_a_second_push_returns_the_same_digest(uri: str) -> None:
    registry = Registry()
    assert registry.publish(uri, print) == registry.publish(uri, print)


def test_a_rejected_push_names_the_remedy(
    uri: str, there: RegistryServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "none"))
    for call in (
        lambda registry: registry.digest(uri),
        lambda registry: registry.publish(uri, print),
    ):
        with pytest.raises(RegistryRefused) as refused:
            call(Registry())
        text = str(refused.value)
        assert text.startswith(uri) and f"log in with `docker login {there.host}`" in text
        assert len(text.splitlines()) == 1 and PASSWORD not in text


def test_a_push_succeeds_after_the_registry_returns(uri: str, there: RegistryServer) -> None:
    there.stop()
    with pytest.raises(RegistryRefused, match="connection refused"):
        Registry().digest(uri)
    there.start()
    assert Registry().publish(uri, print) == Registry().digest(uri)


def test_a_moved_tag_is_drift(uri: str, tmp_path: Path) -> None:
    provider, props = TrainingImageProvider(), {"uri": uri, "context": "trainer"}
    ours = provider.create(props)
    (tmp_path / "Dockerfile").write_text("FROM scratch\nLABEL made=by-hand\n")
    with closing(docker.from_env()) as client:
        # A search for cached layers fails if another test removes any image meanwhile.
        client.images.build(path=str(tmp_path), dockerfile="Dockerfile", tag=uri, nocache=True)
        theirs = Registry().publish(uri, print)
    assert ours.outs and theirs != ours.outs["digest"]
    read = provider.read(ours.id, ours.outs)
    assert (read.id, read.outs, read.inputs) == (ours.id, {**ours.outs, "digest": theirs}, props)
    assert provider.create(props).outs == read.outs  # trusted: nothing is built or pushed


def test_an_immutable_tag_that_exists_is_accepted(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Artifact Registry's refusal is a text of its own, which Debian's registry cannot give."""
    theirs = Registry().publish(uri, print)
    refusal = {"error": "failed precondition: the repository has enabled tag immutability"}
    monkeypatch.setattr(docker.api.image.ImageApiMixin, "push", lambda *_, **__: iter([refusal]))
    assert Registry().publish(uri, print) == theirs
    with pytest.raises(RegistryRefused, match="tag immutability"):
        Registry().publish(uri.replace("abc", "other"), print)


def test_google_registries_get_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    class Credentials:
        token, valid = None, False

        def refresh(self, request: object) -> None:
            self.token = "fresh"

    monkeypatch.setattr(google.auth, "default", lambda scopes: (Credentials(), "p"))
    for host in ("europe-west4-docker.pkg.dev", "us-docker.pkg.dev", "gcr.io", "eu.gcr.io"):
        given = google_login(f"{host}/p/r/trainer:1")
        assert given == {"username": "oauth2accesstoken", "password": "fresh"}
    for host in ("localhost:5000", "docker.pkg.dev.example.com", "example.com"):
        assert google_login(f"{host}/p/r/trainer:1") is None


def test_missing_credentials_are_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(scopes: list[str]) -> None:
        raise DefaultCredentialsError("no")

    monkeypatch.setattr(google.auth, "default", none)
    with pytest.raises(RegistryRefused, match="gcloud auth application-default login"):
        Registry().digest("europe-west4-docker.pkg.dev/p/r/trainer:1")


def test_a_mounted_layer_counts_as_pushed() -> None:
    told: list[str] = []
    messages = [{"id": "1", "status": text} for text in ("Preparing", "Mounted from team/other")]
    assert list(_report_layers(iter(messages), told.append)) == messages
    assert told == ["pushed 1 of 1 layers"]


MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)


@pytest.fixture(params=[Buildx, ClassicBuilder])
def props(
    request: pytest.FixtureRequest, there: RegistryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """An image to be built by one of the builders, in a folder of its own."""
    if request.param is Buildx:
        buildx.install(there.docker_config, buildx.program())
        assert builders.has_plugin()
    else:
        monkeypatch.setattr(builders, "has_plugin", lambda: False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "Dockerfile").write_text(f'FROM scratch\nLABEL of="{tmp_path}"\nCOPY Dockerfile /\n')
    context = build_context(tmp_path, {"context": "trainer"})
    uri = f"{there.url}/trainer:{context.tag}"
    yield {"uri": uri, "context": "trainer", "dockerfile": "Dockerfile", "platform": context.platform}
    with closing(docker.from_env()) as client:
        client.images.remove(uri, force=True)
    gc.collect()


def fetch_served_digest(there: RegistryServer, uri: str) -> tuple[str, str]:
    """The digest that a registry gives to a tag, and that of the manifest it sends."""
    name, _, tag = uri.removeprefix(f"{there.host}/").partition(":")
    login = base64.b64encode(f"team:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {login}", "Accept": ", ".join(MANIFESTS)}
    with urllib.request.urlopen(
        urllib.request.Request(f"http://{there.host}/v2/{name}/manifests/{tag}", None, headers)
    ) as reply:
        return reply.headers["Docker-Content-Digest"], f"sha256:{hashlib.sha256(reply.read()).hexdigest()}"


def test_the_digest_is_that_of_the_registry_manifest(props: dict[str, Any], there: RegistryServer) -> None:
    provider = TrainingImageProvider()
    created = provider.create(props)
    assert created.outs
    assert fetch_served_digest(there, props["uri"]) == (created.outs["digest"], created.outs["digest"])
    assert provider.read(created.id, created.outs).outs == created.outs
    with closing(docker.from_env()) as client:
        # By its digest it can be pulled, as another stack does.
        login = {"username": "team", "password": PASSWORD}
        client.images.remove(props["uri"], force=True)
        pulled = client.images.pull(f"{there.url}/trainer@{created.outs['digest']}", auth_config=login)
        assert (pulled.attrs["Os"], pulled.attrs["Architecture"]) == ("linux", "amd64")
        pulled.tag(f"{there.url}/trainer", props["uri"].rpartition(":")[2])


SMALL, LARGE = 1 << 20, 8 << 20
"""Bytes in the two layers of the image; they are random, so no layer gets smaller on the way."""


@pytest.fixture
def line(there: RegistryServer) -> Iterator[tuple[CuttingProxy, str]]:
    """A line to the registry that carries the small layer and not the large one, and the host it is reached by."""
    proxy = CuttingProxy(there.port, limit=SMALL * 2, cuts=1)
    with proxy.serving() as port:
        host = f"localhost:{port}"
        config = there.docker_config / "config.json"
        config.write_text(config.read_text().replace(there.host, host))
        yield proxy, host


@pytest.fixture
def layered_uri(line: tuple[CuttingProxy, str], tmp_path: Path) -> Iterator[str]:
    """An image of two layers in the daemon."""
    layered_uri = f"{line[1]}/team/trainer:abc"
    context = tmp_path / "context"
    context.mkdir()
    (context / "small").write_bytes(os.urandom(SMALL))
    (context / "large").write_bytes(os.urandom(LARGE))
    (context / "Dockerfile").write_text("FROM scratch\nCOPY small /\nCOPY large /\n")
    with closing(docker.from_env()) as client:
        # A search for cached layers fails if another test removes any image meanwhile.
        client.images.build(path=str(context), tag=layered_uri, rm=True, nocache=True)
        shutil.rmtree(context)
        yield layered_uri
        client.images.remove(layered_uri, force=True)
    gc.collect()


def test_an_interrupted_push_continues_next_time(line: tuple[CuttingProxy, str], layered_uri: str) -> None:
    proxy, _ = line
    registry, told = Registry(), list[str]()
    with pytest.raises(RegistryRefused) as lost:
        registry.publish(layered_uri, told.append)
    text = str(lost.value)
    assert text.startswith(f"{layered_uri} cannot be pushed: ") and len(text.splitlines()) == 1
    assert "check that it is reachable; layers that were pushed are not sent again" in text
    assert "the line was lost" in text and proxy.cuts < 0, "it was cut before"
    assert told == ["pushed 1 of 2 layers"]
    proxy.limit, proxy.sent = None, 0
    digest = registry.publish(layered_uri, told.append)
    assert registry.digest(layered_uri) == digest
    assert LARGE <= proxy.sent < LARGE + SMALL
