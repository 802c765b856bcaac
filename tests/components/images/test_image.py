"""Training images: built once for a content, and never from other files than a preview has shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import BuildFailed, DockerUnavailable
from vertex_training.files import MAX_LISTED_FILES, listed
from vertex_training.images import image
from vertex_training.images.builders import Report
from vertex_training.images.context import BuildContext, DockerfileContext
from vertex_training.images.image import TrainingImageProvider, build_context


class Daemon:
    """Images by URI, and the URIs that were built."""

    def __init__(self) -> None:
        self.images: dict[str, str] = {}
        self.built: list[str] = []

    def digest(self, uri: str) -> str | None:
        return self.images.get(uri)

    def publish(self, uri: str, report: Report) -> str:
        return self.images[uri]

    def build(self, context: BuildContext, tagged_uri: str, secrets_by_id: Mapping[str, str], report: Report) -> None:
        self.built.append(tagged_uri)
        report("Step 1/1")
        self.images[tagged_uri] = f"sha256:{context.tag}"


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Daemon:
    daemon = Daemon()
    monkeypatch.setattr(image.registry, "Daemon", lambda: daemon)
    monkeypatch.setattr(image.registry, "store", lambda uri: daemon)
    monkeypatch.setattr(image.builders, "build", daemon.build)
    return daemon


@pytest.fixture
def props(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a TrainingImage of the folder `trainer` has as inputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer/Dockerfile").write_text("FROM scratch\n")
    context = build_context(tmp_path, {"context": "trainer"})
    return {
        "uri": f"localhost/team/digits:{context.tag}",
        "context": "trainer",
        "dockerfile": "Dockerfile",
        "buildArgs": {},
        "platform": "linux/amd64",
        "files": listed(context.digests),
    }


def test_a_missing_image_is_built_with_progress(
    props: dict[str, Any], daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    created = TrainingImageProvider().create(props)
    assert daemon.built == [props["uri"]]
    assert created.id == "localhost/team/digits"  # stays the same from build to build
    assert created.outs == {**props, "digest": daemon.images[props["uri"]]}
    assert capsys.readouterr().out == "digits: Step 1/1\n"


def test_an_image_with_secrets_is_built(props: dict[str, Any], daemon: Daemon) -> None:
    """Their names are part of its tag, as in the preview."""
    secrets = {"token": "of-pip"}
    context = build_context(Path.cwd(), {"context": "trainer", "secrets": secrets})
    uri = f"localhost/team/digits:{context.tag}"
    TrainingImageProvider().create({**props, "uri": uri, "secrets": secrets})
    assert daemon.built == [uri] != [props["uri"]]


def test_an_existing_image_is_not_built(props: dict[str, Any], daemon: Daemon) -> None:
    daemon.images[props["uri"]] = "sha256:1"
    created = TrainingImageProvider().create(props)
    updated = TrainingImageProvider().update(props["uri"], {}, props)
    assert daemon.built == []
    assert created.outs == updated.outs == {**props, "digest": "sha256:1"}


def test_files_changed_since_the_preview_are_not_built(props: dict[str, Any], daemon: Daemon) -> None:
    Path("trainer/Dockerfile").write_text("FROM other\n")
    with pytest.raises(BuildFailed) as failure:
        TrainingImageProvider().create(props)
    message = f'{props["uri"]}: the files in "trainer" changed since the preview; run `pulumi up` again'
    assert str(failure.value) == message
    assert daemon.built == []


def test_a_package_is_built_as_previewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, daemon: Daemon) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer/train.py").touch()
    package = {"path": "trainer", "script": "train.py", "baseImage": "python:3.11"}
    context = build_context(tmp_path, {"package": package})
    uri = f"localhost/team/digits:{context.tag}"
    props = {
        "uri": uri,
        "context": "trainer",
        "package": package,
        "platform": "linux/amd64",
        "dockerfile": "Dockerfile",
    }
    assert TrainingImageProvider().create(props).outs["digest"] == daemon.images[uri]
    (tmp_path / "trainer/train.py").write_text("edited")
    with pytest.raises(BuildFailed, match='the files in "trainer" changed since the preview'):
        TrainingImageProvider().create({**props, "uri": uri.replace(":", "-other:")})
    assert daemon.built == [uri]


def test_reading_returns_the_inputs_or_nothing(props: dict[str, Any], daemon: Daemon) -> None:
    gone = TrainingImageProvider().read(props["uri"], props)
    assert (gone.id, gone.outs) == (None, {})
    daemon.images[props["uri"]] = "sha256:1"
    found = TrainingImageProvider().read(props["uri"], {**props, "digest": "sha256:0"})
    assert (found.id, found.outs, found.inputs) == (props["uri"], {**props, "digest": "sha256:1"}, props)


def test_deleting_keeps_the_image_for_others(props: dict[str, Any], daemon: Daemon) -> None:
    daemon.images[props["uri"]] = "sha256:1"
    TrainingImageProvider().delete(props["uri"], props)
    assert daemon.images == {props["uri"]: "sha256:1"}


def test_images_are_built_for_amd64_by_default(tmp_path: Path) -> None:
    assert build_context(tmp_path, {"context": "a"}) == DockerfileContext(
        tmp_path / "a", "Dockerfile", build_args={}, target=None, platform="linux/amd64"
    )
    whole = {
        "context": "a",
        "dockerfile": "./docker/../Dockerfile.gpu",
        "buildArgs": {"A": "1"},
        "target": "slim",
        "platform": "linux/arm64",
    }
    assert build_context(tmp_path, whole) == DockerfileContext(
        tmp_path / "a", "Dockerfile.gpu", build_args={"A": "1"}, target="slim", platform="linux/arm64"
    )


def test_digests_of_few_files_are_shortened() -> None:
    files = {f"f{number}": f"{number:064}" for number in range(MAX_LISTED_FILES)}
    assert listed(files) == {name: digest[:10] for name, digest in files.items()}
    assert listed(files | {"one more": "0" * 64}) is None


def test_a_preview_names_the_files_that_differ(props: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    provider, uri = TrainingImageProvider(), "localhost/project/line"
    old = {**props, "uri": f"{uri}:0", "files": {"a.py": "1", "b.py": "1", **{f"{n}.txt": "1" for n in range(7)}}}
    new = {**props, "uri": f"{uri}:1", "files": {"a.py": "2", "b.py": "1", "c.py": "1"}}
    assert provider.diff("id", old, new).changes is None
    text = "line: a.py changed, c.py added, 0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 2 more removed\n"
    assert capsys.readouterr().out == text
    for same in (old, {**old, "files": None}, {**old, "buildArgs": {"A": "b"}}):
        provider.diff("id", old, same)
        provider.diff("id", same, old)
    assert capsys.readouterr().out == ""


def test_how_an_image_is_built_is_no_change(props: dict[str, Any]) -> None:
    provider, olds = TrainingImageProvider(), {**props, "secrets": {"token": "1"}, "digest": "sha256:1"}
    for news in (olds, props, {**props, "builder": {"cloudBuild": {}}}, {**props, "secrets": {"token": "2"}}):
        assert provider.diff("id", olds, news).changes is False
        assert provider.diff("id", {**news, "digest": "sha256:1"}, olds).changes is False
    for name, value in {"uri": "other", "platform": "linux/arm64", "files": {}, "target": "slim"}.items():
        assert provider.diff("id", olds, {**props, name: value}).changes is None, "the engine shows which"


def test_a_remote_builder_builds_without_docker(props: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[tuple[str, tuple[str, ...]]] = []
    digests = {"other": "sha256:theirs"}

    class Builder:
        def __init__(self, options: Mapping[str, Any]) -> None:
            self.options = options

        def build(self, context: BuildContext, tagged_uri: str, report: Report) -> str:
            built.append((tagged_uri, context.secret_ids))
            return "sha256:remote"

    monkeypatch.setattr(image, "CloudBuilder", Builder)
    monkeypatch.setattr(image.registry.GoogleRegistry, "digest", lambda self, uri: digests.get(uri))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    secrets = {"token": "projects/p/secrets/pip/versions/1"}
    context = build_context(Path.cwd(), {"context": "trainer", "secrets": secrets})
    uri = f"host/team/digits:{context.tag}"
    given = {**props, "uri": uri, "builder": {"cloudBuild": {"secrets": secrets}}}
    provider = TrainingImageProvider()
    assert provider.create(given).outs == {**given, "digest": "sha256:remote"}
    assert built == [(uri, ("token",))]
    assert provider.create({**given, "uri": "other"}).outs["digest"] == "sha256:theirs"
    assert provider.read("id", {**given, "uri": "other"}).outs["digest"] == "sha256:theirs"
    assert len(built) == 1, "an image that is there is not built"


def test_google_registries_need_no_docker(props: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As of an image that another machine has built, with its Docker."""

    class NoDocker:
        def digest(self, uri: str) -> str:
            raise DockerUnavailable("none")

    monkeypatch.setattr(image.registry, "store", lambda uri: NoDocker())
    monkeypatch.setattr(image.registry.GoogleRegistry, "digest", lambda self, uri: "sha256:1")
    uri = "europe-west4-docker.pkg.dev/acme/team/digits:1"
    assert TrainingImageProvider().read("id", {**props, "uri": uri}).outs["digest"] == "sha256:1"
    with pytest.raises(DockerUnavailable):
        TrainingImageProvider().read("id", {**props, "uri": "registry.test/team/digits:1"})
