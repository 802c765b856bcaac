"""What `COPY . /` copies of a context that is sent: all that `.dockerignore` lets through, with both builders."""

import io
import json
import os
import subprocess
import tarfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest
from vertex_training.errors import ContextUnusable
from vertex_training.images.build_context import BuildContext, DockerfileContext
from vertex_training.images.buildx_and_classic_builders import (
    Builder,
    Buildx,
    ClassicBuilder,
    open_buildx_dockerfile_context_and_stdin,
)

from tests import buildx

Copied = Callable[[BuildContext], set[str]]
TREE = ("Dockerfile", "gpu/Dockerfile.[x]", "train.py", "data/a.csv")
HIDDEN = {
    "the Dockerfile": ("Dockerfile", {".dockerignore": "Dockerfile\n"}),
    "the Dockerfile and the ignore file": ("Dockerfile", {".dockerignore": "Dockerfile\n.dockerignore\n"}),
    "everything, and files let in again": ("Dockerfile", {".dockerignore": "*\n!train.py\n!data\n"}),
    "a Dockerfile in a folder": ("gpu/Dockerfile.[x]", {".dockerignore": "gpu\n.dockerignore\n"}),
    "a Dockerfile by its own ignore file": ("Dockerfile", {"Dockerfile.dockerignore": "Dockerfile*\n"}),
}
"""The Dockerfile that is built, and what ignore files say, by what is left out."""
SEEN = {
    "nothing": ("Dockerfile", {".dockerignore": "\n"}),
    "another Dockerfile": ("gpu/Dockerfile.[x]", {".dockerignore": "Dockerfile\n"}),
}


@pytest.fixture(params=[Buildx, ClassicBuilder])
def copied(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Copied]:
    """What a builder copies: the files of the image's one layer."""
    build: Builder = request.param()
    if request.param is Buildx:
        buildx.install(tmp_path / "docker", buildx.program())
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    uri = f"localhost/vertex-training-test/{uuid.uuid4().hex[:12]}:1"

    def files(context: BuildContext) -> set[str]:
        umask = os.umask(0o077)
        try:
            build.build_and_load(context, uri, {}, lambda line: None)
        finally:
            os.umask(umask)
        with closing(docker.from_env()) as client:
            image = client.images.get(uri)
            saved = io.BytesIO(b"".join(image.save()))
        with tarfile.open(fileobj=saved) as archive:
            (layer,) = json.load(_open(archive, "manifest.json"))[0]["Layers"]
            with tarfile.open(fileobj=_open(archive, layer)) as tar:
                members = tar.getmembers()
        assert {oct(member.mode & 0o777) for member in members} == {"0o755", "0o644"}
        return {member.name for member in members if not member.isdir()}

    yield files
    subprocess.run(["docker", "image", "rm", "--force", uri], capture_output=True, check=False)


def _open(archive: tarfile.TarFile, name: str) -> io.BufferedIOBase:
    file = archive.extractfile(name)
    assert file
    return io.BytesIO(file.read())


def tree(folder: Path, dockerfile: str, ignores: dict[str, str]) -> BuildContext:
    folder.mkdir()
    for path in TREE:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("FROM scratch\nCOPY . /\n")
    for path, text in ignores.items():
        (folder / path).write_text(text)
    return DockerfileContext(folder, dockerfile, {}, None, "linux/amd64")


@pytest.mark.parametrize("left_out", HIDDEN)
def test_an_ignored_dockerfile_is_built_and_not_copied(tmp_path: Path, copied: Copied, left_out: str) -> None:
    context = tree(tmp_path / "context", *HIDDEN[left_out])
    assert context.dockerfile in context.digests_by_context_path
    assert copied(context) == set(context.digests_by_context_path) - {context.dockerfile}


@pytest.mark.parametrize("left_out", SEEN)
def test_an_included_dockerfile_is_copied(tmp_path: Path, copied: Copied, left_out: str) -> None:
    context = tree(tmp_path / "context", *SEEN[left_out])
    assert context.dockerfile in context.digests_by_context_path
    assert copied(context) == set(context.digests_by_context_path)


def test_a_dockerfile_linking_to_an_ignored_file_fails(tmp_path: Path) -> None:
    context = tree(tmp_path / "context", "Dockerfile", {".dockerignore": "Dockerfile\nreal\n"})
    (context.folder / "Dockerfile").rename(context.folder / "real")
    (context.folder / "Dockerfile").symlink_to("real")
    with (
        pytest.raises(ContextUnusable, match="Dockerfile is a link to a file that is not in the build context"),
        open_buildx_dockerfile_context_and_stdin(context),
    ):
        pass
