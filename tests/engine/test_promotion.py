"""Images of the target gcp: pushed to a real registry, and run by another stack exactly as they were tested."""

import copy
import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest
import yaml

from tests import buildx
from tests.blocks import taken
from tests.engine.cloud import CloudProject
from tests.engine.golden import load_golden_steps
from tests.registry import NEEDED, PASSWORD, Registry, registry
from tests.vertex_emulator.running import RunningEmulator

pytestmark = NEEDED
TOKEN = "canary-of-a-secret-value"
_MAX_OWN_LAYER_BYTES = 10_000_000


@pytest.fixture(scope="module")
def shared_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry to which the layers of the base image are sent once."""
    with registry(tmp_path_factory.mktemp("shared") / "registry") as shared:
        yield shared


@pytest.fixture(scope="class")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("promotion")


@pytest.fixture(scope="class")
def local_registry(folder: Path, shared_registry: Registry) -> Registry:
    """A repository of its own in the shared registry, with a login of its own."""
    own = copy.copy(shared_registry)
    own.url = f"{own.host}/{folder.name.lower()}"
    own.docker_config = shutil.copytree(shared_registry.docker_config, folder / "docker")
    return own


@pytest.fixture(scope="class")
def cloud(folder: Path, vertex: RunningEmulator, local_registry: Registry) -> Iterator[CloudProject]:
    """A stack `dev` that builds the image `trainer` and pushes it to a registry of this machine."""
    project = CloudProject(folder, vertex)
    images = {"images": project.declarations.pop("images")}
    (project.root / "training" / "images.yaml").write_text(yaml.safe_dump(images))
    project.stack["vertex-training:include"] = ["training"]
    project.stack["vertex-training:registry"] = {"url": local_registry.url}
    project.environment["DOCKER_CONFIG"] = str(local_registry.docker_config)
    project.declare()
    yield project
    with closing(docker.from_env()) as client:
        for image in client.images.list(f"{local_registry.url}/trainer"):
            for tag in image.tags:
                # Not the image itself, which other tests may have under other names.
                if tag.startswith(local_registry.url):
                    client.images.remove(tag, noprune=True)


def digest(local_registry: Registry, uri: str) -> str:
    """Return the digest that the registry has for a tag."""
    with closing(docker.from_env()) as client:
        login = {"username": "team", "password": PASSWORD}
        return str(client.images.get_registry_data(uri, auth_config=login).id)


class TestPromotion:
    """Tests of the stacks `dev` and `prod`, in order: each goes on from what the one before it has left."""

    def test_an_image_missing_in_dev_is_reported(self, cloud: CloudProject) -> None:
        cloud.create_stack("prod")
        _write_prod_stack(cloud, "organization/vertex-training/dev")
        output = cloud.pulumi("preview", "--stack", "prod", fails=True)
        assert "images.trainer: the stack organization/vertex-training/dev has no image of this name" in output

    def test_an_image_is_pushed_once_with_its_digest(self, cloud: CloudProject, local_registry: Registry) -> None:
        output = cloud.up()
        assert "trainer: pushed " in output
        outputs = cloud.outputs()
        uri = outputs["images"]["trainer"]
        assert uri.startswith(f"{local_registry.url}/trainer:")
        assert outputs["pinnedImages"]["trainer"] == f"{local_registry.url}/trainer@{digest(local_registry, uri)}"
        assert outputs["jobs"]["train"]["state"] == "JOB_STATE_SUCCEEDED"

    def test_prod_runs_the_digest_that_dev_tested(self, cloud: CloudProject) -> None:
        prod = _write_prod_stack(cloud, "dev")
        cloud.pulumi("up", "--yes", "--skip-preview", "--stack", "prod")
        tested = cloud.outputs()["pinnedImages"]["trainer"]
        assert _read_job_image(cloud, "prod") == tested

        cloud.edit_code()
        assert cloud.steps() == load_golden_steps("code-edit")  # of an image that was pushed, and nothing else
        cloud.up()
        newer = cloud.outputs()["pinnedImages"]["trainer"]
        assert newer != tested
        shown, steps = cloud.preview("prod")
        assert steps == load_golden_steps("promotion")
        assert tested in shown and newer in shown
        (on_the_page,) = taken("docs/ci.md", "output", "    +-pulumi-python")
        assert _strip_values(on_the_page) in _strip_values(shown)

        config = yaml.safe_load(prod.read_text())
        config["config"]["vertex-training:guardrails"] = {"registries": ["registry.test/approved"]}
        prod.write_text(yaml.safe_dump(config))
        refused = cloud.pulumi("preview", "--stack", "prod", fails=True)
        assert f'images.trainer: guardrails.registries: "{newer}" is not in an allowed registry' in refused

    def test_another_machine_builds_no_pushed_image(self, cloud: CloudProject) -> None:
        outputs = cloud.outputs()
        with closing(docker.from_env()) as client:
            client.images.remove(outputs["images"]["trainer"], force=True)
        assert "Step 1/" not in cloud.up("--replace", _urn(cloud, "trainer"))
        assert cloud.outputs() == outputs


class TestSecrets:
    """Tests of one stack with a secret, in order: built by the classic builder, then by buildx."""

    def test_no_secret_is_seen_anywhere(self, cloud: CloudProject, local_registry: Registry) -> None:
        cloud.container["env"] = [{"name": "TOKEN", "value": "${secrets.token}"}]
        _set_secret(cloud)
        seen = _collect_readable_texts(cloud, "--json")
        cloud.environment["DOCKER_CONFIG"] = str(local_registry.folder / "none")
        cloud.edit_code()
        seen.append(cloud.up(fails=True))
        assert "cannot be pushed" in seen[-1] or "its registry refuses" in seen[-1]
        assert _find_texts_with(TOKEN, seen, cloud) == _find_texts_with(PASSWORD, seen, cloud) == []

    @pytest.mark.large
    def test_a_build_secret_is_used_but_never_shown(self, cloud: CloudProject, local_registry: Registry) -> None:
        cloud.environment["DOCKER_CONFIG"] = str(local_registry.docker_config)
        buildx.install(local_registry.docker_config, buildx.program())
        images = {"images": {"trainer": {"context": "trainer", "secrets": {"token": "${secrets.token}"}}}}
        (cloud.root / "training" / "images.yaml").write_text(yaml.safe_dump(images))
        dockerfile = cloud.root / "trainer" / "Dockerfile"
        step = 'RUN --mount=type=secret,id=token test "$(md5sum < /run/secrets/token)" = '
        read = hashlib.md5(TOKEN.encode(), usedforsecurity=False).hexdigest()
        dockerfile.write_text(f"{dockerfile.read_text()}{step}'{read}  -'\n")
        seen = _collect_readable_texts(cloud, "--diff")
        dockerfile.write_text(f"{dockerfile.read_text()}{step}another\n")
        seen.append(cloud.up(fails=True))
        assert "trainer" in seen[-1] and "cannot be built: trainer/Dockerfile:" in seen[-1]
        assert _find_texts_with(TOKEN, seen, cloud) == _find_texts_with(PASSWORD, seen, cloud) == []


def _set_secret(cloud: CloudProject) -> None:
    """Set the secret `token` as a user does."""
    cloud.declare()
    cloud.pulumi("config", "set", "--secret", "--path", "vertex-training:secrets.token", TOKEN, "--stack", "dev")


def _collect_readable_texts(cloud: CloudProject, preview_option: str) -> list[str]:
    """Bring the stack up, and return what that and its preview show, and all that can be read of its image."""
    seen = [cloud.pulumi("preview", preview_option, "--stack", "dev"), cloud.up()]
    uri = cloud.outputs()["images"]["trainer"]
    with closing(docker.from_env()) as client:
        image = client.images.get(uri)
        layers = _read_layers(b"".join(image.save()))
        assert (cloud.root / "trainer" / "train.py").read_text() in layers
        return [*seen, json.dumps([image.history(), image.attrs]), layers]


def _read_layers(saved: bytes) -> str:
    """Return all files of a saved image and of its layers but the base image's, as text."""
    texts = []
    with tarfile.open(fileobj=io.BytesIO(saved)) as archive:
        for member in archive:
            if member.size > _MAX_OWN_LAYER_BYTES:
                continue
            content = file.read() if (file := archive.extractfile(member)) else b""
            texts.append(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    return b"\n".join(texts).decode("latin-1")


def _find_texts_with(canary: str, seen: list[str], cloud: CloudProject) -> list[str]:
    """Return the texts that hold a canary, including the files of the stack's backend."""
    state = [file.read_text(errors="replace") for file in cloud.root.parent.glob("state/**/*.json")]
    assert state
    return [text[:2000] for text in [*seen, *state] if canary in text]


def _write_prod_stack(cloud: CloudProject, stack: str) -> Path:
    """Write a stack file that runs what the stack `dev` has built."""
    config = {
        **cloud.stack,
        "vertex-training:include": ["training/jobs.yaml"],
        "vertex-training:project": "acme-prod",
        "vertex-training:projectNumber": "210987654321",
        "vertex-training:images": {"trainer": {"stack": stack}},
    }
    file = cloud.root / "stacks" / "Pulumi.prod.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "config": config}))
    return file


def _strip_values(preview: str) -> str:
    """Return a preview without texts and ids, which differ from project to project."""
    return re.sub(r'"[^"]*"|(?<=\[id=).*(?=\])|(?<=\[urn=).*(?=\])', "", preview)


def _read_job_image(cloud: CloudProject, stack: str) -> str:
    (pool,) = cloud.resources(stack)["train"]["inputs"]["spec"]["jobSpec"]["workerPoolSpecs"]
    return str(pool["containerSpec"]["imageUri"])


def _urn(cloud: CloudProject, name: str) -> str:
    return str(cloud.resources()[name]["urn"])
