"""buildx for real, built from its Go module where no package has it: secrets stay out, and failures are quoted."""

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest
from vertex_training.errors import BuildFailed
from vertex_training.images.build_context import BuildContext, DockerfileContext
from vertex_training.images.buildx_and_classic_builders import Buildx, get_buildx_or_classic_builder

from tests import buildx

SECRET = "canary-of-a-build-secret"
BASE = "python:3.11-slim-bookworm"


@pytest.fixture(scope="module")
def plugin() -> Path:
    return buildx.program()


@pytest.fixture
def uri(plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of an image, while `docker buildx` is the plugin."""
    buildx.install(tmp_path / "docker", plugin)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    name = f"localhost/vertex-training-test/{uuid.uuid4().hex[:12]}:1"
    yield name
    with closing(docker.from_env()) as client:
        if client.images.list(name):
            client.images.remove(name, noprune=True)


def context(folder: Path, *steps: str) -> BuildContext:
    folder.mkdir()
    (folder / "Dockerfile").write_text("\n".join([f"FROM {BASE}", *steps]) + "\n")
    return DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64", ("token",))


def test_the_image_does_not_contain_the_build_secret(uri: str, tmp_path: Path) -> None:
    assert isinstance(get_buildx_or_classic_builder(), Buildx)
    step = f"RUN --mount=type=secret,id=token test \"$(cat /run/secrets/token)\" = {SECRET[:6]}'{SECRET[6:]}'"
    told: list[str] = []
    Buildx().build_and_load(context(tmp_path / "c", step), uri, {"token": SECRET}, told.append)
    history = subprocess.run(["docker", "history", "--no-trunc", uri], capture_output=True, text=True, check=True)
    saved = tmp_path / "image.tar"
    with closing(docker.from_env()) as client, saved.open("wb") as file:
        image = client.images.get(uri)
        assert (image.attrs["Os"], image.attrs["Architecture"]) == ("linux", "amd64")
        for part in image.save():
            file.write(part)
    for text in (history.stdout, "\n".join(told), str(image.attrs)):
        assert SECRET not in text
    assert SECRET.encode() not in saved.read_bytes()


def test_a_failed_build_quotes_no_secret(uri: str, tmp_path: Path) -> None:
    steps = ["RUN --mount=type=secret,id=token test -s /run/secrets/token && echo so far && exit 3"]
    with pytest.raises(BuildFailed) as raised:
        Buildx().build_and_load(context(tmp_path / "c", *steps), uri, {"token": SECRET}, lambda line: None)
    assert "exit code: 3" in str(raised.value)
    assert SECRET not in str(raised.value)
