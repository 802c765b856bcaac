"""Where images are kept: pushed to a real registry once, and found there by everyone after that."""

import gc
import io
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import google.auth
import pytest
from google.auth.exceptions import DefaultCredentialsError
from vertex_training.errors import RegistryRefused
from vertex_training.images.docker_push_and_digest_lookup import (
    Daemon,
    Registry,
    _iterate_messages_and_report_layers,
    get_image_store,
)
from vertex_training.images.google_registry_client import fetch_google_credentials_or_none
from vertex_training.images.training_image_resource import TrainingImageProvider

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
    assert isinstance(get_image_store("localhost/team/trainer:1"), Daemon)
    for uri in ("europe-west4-docker.pkg.dev/p/r/trainer:1", "localhost:5000/team/trainer:1"):
        assert isinstance(get_image_store(uri), Registry)


def test_a_pushed_image_has_a_digest(uri: str) -> None:
    registry, told = Registry(), list[str]()
    assert registry.get_digest_or_none(uri) is None
    digest = registry.publish_and_get_digest(uri, told.append)
    assert digest.startswith("sha256:") and len(digest) == 71
    assert registry.get_digest_or_none(uri) == digest
    assert told[-1] == "pushed 1 of 1 layers"


def test_a_second_push_returns_the_same_digest(uri: str) -> None:
    registry = Registry()
    assert registry.publish_and_get_digest(uri, print) == registry.publish_and_get_digest(uri, print)


def test_a_rejected_push_names_the_remedy_without_password(
    uri: str, there: RegistryServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "none"))
    for call in (
        lambda registry: registry.get_digest_or_none(uri),
        lambda registry: registry.publish_and_get_digest(uri, print),
    ):
        with pytest.raises(RegistryRefused) as refused:
            call(Registry())
        text = str(refused.value)
        assert text.startswith(uri) and f"log in with `docker login {there.host}`" in text
        assert len(text.splitlines()) == 1 and PASSWORD not in text


def test_a_push_succeeds_after_the_registry_returns(uri: str, there: RegistryServer) -> None:
    there.stop()
    with pytest.raises(RegistryRefused, match="connection refused"):
        Registry().get_digest_or_none(uri)
    there.start()
    assert Registry().publish_and_get_digest(uri, print) == Registry().get_digest_or_none(uri)


def test_a_moved_tag_is_drift(uri: str, tmp_path: Path) -> None:
    provider, props = TrainingImageProvider(), {"uri": uri, "context": "trainer"}
    ours = provider.create(props)
    (tmp_path / "Dockerfile").write_text("FROM scratch\nLABEL made=by-hand\n")
    with closing(docker.from_env()) as client:
        # A search for cached layers fails if another test removes any image meanwhile.
        client.images.build(path=str(tmp_path), dockerfile="Dockerfile", tag=uri, nocache=True)
        theirs = Registry().publish_and_get_digest(uri, print)
    assert ours.outs and theirs != ours.outs["digest"]
    read = provider.read(ours.id, ours.outs)
    assert (read.id, read.outs, read.inputs) == (ours.id, {**ours.outs, "digest": theirs}, props)
    assert provider.create(props).outs == read.outs  # trusted: nothing is built or pushed


def test_an_immutable_tag_that_exists_is_accepted(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Artifact Registry's refusal is a text of its own, which Debian's registry cannot give."""
    theirs = Registry().publish_and_get_digest(uri, print)
    refusal = {"error": "failed precondition: the repository has enabled tag immutability"}
    monkeypatch.setattr(docker.api.image.ImageApiMixin, "push", lambda *_, **__: iter([refusal]))
    assert Registry().publish_and_get_digest(uri, print) == theirs
    with pytest.raises(RegistryRefused, match="tag immutability"):
        Registry().publish_and_get_digest(uri.replace("abc", "other"), print)


def test_google_registries_get_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    class Credentials:
        token, valid = None, False

        def refresh(self, request: object) -> None:
            self.token = "fresh"

    monkeypatch.setattr(google.auth, "default", lambda scopes: (Credentials(), "p"))
    for host in ("europe-west4-docker.pkg.dev", "us-docker.pkg.dev", "gcr.io", "eu.gcr.io"):
        given = fetch_google_credentials_or_none(f"{host}/p/r/trainer:1")
        assert given == {"username": "oauth2accesstoken", "password": "fresh"}
    for host in ("localhost:5000", "docker.pkg.dev.example.com", "example.com"):
        assert fetch_google_credentials_or_none(f"{host}/p/r/trainer:1") is None


def test_missing_credentials_are_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(scopes: list[str]) -> None:
        raise DefaultCredentialsError("no")

    monkeypatch.setattr(google.auth, "default", none)
    with pytest.raises(RegistryRefused, match="gcloud auth application-default login"):
        Registry().get_digest_or_none("europe-west4-docker.pkg.dev/p/r/trainer:1")


def test_a_mounted_layer_counts_as_pushed() -> None:
    told: list[str] = []
    messages = [{"id": "1", "status": text} for text in ("Preparing", "Mounted from team/other")]
    assert list(_iterate_messages_and_report_layers(iter(messages), told.append)) == messages
    assert told == ["pushed 1 of 1 layers"]
