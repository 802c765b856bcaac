"""The digest of an image that was built and pushed, by each builder: it is what the registry itself serves."""

import base64
import gc
import hashlib
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import docker
import pytest
from vertex_training.images import training_image_resource
from vertex_training.images.buildx_and_classic_builders import Buildx, ClassicBuilder, get_buildx_or_classic_builder
from vertex_training.images.training_image_resource import TrainingImageProvider, create_build_context

from tests import buildx
from tests.registry import NEEDED, PASSWORD, SOCKETS_LEFT_OPEN, Registry

pytestmark = [NEEDED, SOCKETS_LEFT_OPEN]
MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)


@pytest.fixture(params=[Buildx, ClassicBuilder])
def props(
    request: pytest.FixtureRequest, there: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """An image to be built by one of the builders, in a folder of its own."""
    if request.param is Buildx:
        buildx.install(there.docker_config, buildx.program())
        assert isinstance(get_buildx_or_classic_builder(), Buildx)
    else:
        monkeypatch.setattr(training_image_resource, "get_buildx_or_classic_builder", ClassicBuilder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "Dockerfile").write_text(f"FROM scratch\nLABEL of={tmp_path}\nCOPY Dockerfile /\n")
    context = create_build_context(tmp_path, {"context": "trainer"})
    uri = f"{there.url}/trainer:{context.tag}"
    yield {"uri": uri, "context": "trainer", "dockerfile": "Dockerfile", "platform": context.platform}
    with closing(docker.from_env()) as client:
        client.images.remove(uri, force=True)
    gc.collect()


def fetch_served_digest(there: Registry, uri: str) -> tuple[str, str]:
    """The digest that a registry gives to a tag, and that of the manifest it sends."""
    name, _, tag = uri.removeprefix(f"{there.host}/").partition(":")
    login = base64.b64encode(f"team:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {login}", "Accept": ", ".join(MANIFESTS)}
    with urllib.request.urlopen(
        urllib.request.Request(f"http://{there.host}/v2/{name}/manifests/{tag}", None, headers)
    ) as reply:
        return reply.headers["Docker-Content-Digest"], f"sha256:{hashlib.sha256(reply.read()).hexdigest()}"


def test_the_digest_is_that_of_the_registry_manifest(props: dict[str, Any], there: Registry) -> None:
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
