"""A push whose connection is lost in the middle, with the real Docker and a real registry.

Docker gives a layer up after five tries, which take it most of a minute, or at once when it is told so.
"""

import gc
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest
from vertex_training.errors import RegistryRefused
from vertex_training.images.docker_push_and_digest_lookup import Registry

from tests.cutting_proxy import CuttingProxy
from tests.registry import NEEDED, SOCKETS_LEFT_OPEN
from tests.registry import Registry as RegistryServer

SMALL, LARGE = 1 << 20, 8 << 20
"""Bytes in the two layers of the image; they are random, so no layer gets smaller on the way."""

pytestmark = [NEEDED, SOCKETS_LEFT_OPEN]


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
def uri(line: tuple[CuttingProxy, str], tmp_path: Path) -> Iterator[str]:
    """An image of two layers in the daemon."""
    uri = f"{line[1]}/team/trainer:abc"
    context = tmp_path / "context"
    context.mkdir()
    (context / "small").write_bytes(os.urandom(SMALL))
    (context / "large").write_bytes(os.urandom(LARGE))
    (context / "Dockerfile").write_text("FROM scratch\nCOPY small /\nCOPY large /\n")
    with closing(docker.from_env()) as client:
        # A search for cached layers fails if another test removes any image meanwhile.
        client.images.build(path=str(context), tag=uri, rm=True, nocache=True)
        shutil.rmtree(context)
        yield uri
        client.images.remove(uri, force=True)
    gc.collect()


def test_an_interrupted_push_continues_next_time(line: tuple[CuttingProxy, str], uri: str) -> None:
    proxy, _ = line
    registry, told = Registry(), list[str]()
    with pytest.raises(RegistryRefused) as lost:
        registry.publish_and_get_digest(uri, told.append)
    text = str(lost.value)
    assert text.startswith(f"{uri} cannot be pushed: ") and len(text.splitlines()) == 1
    assert "check that it is reachable; layers that were pushed are not sent again" in text
    assert "the line was lost" in text and proxy.cuts < 0, "it was cut before"
    assert told == ["pushed 1 of 2 layers"]
    proxy.limit, proxy.sent = None, 0
    digest = registry.publish_and_get_digest(uri, told.append)
    assert registry.get_digest_or_none(uri) == digest
    assert LARGE <= proxy.sent < LARGE + SMALL
