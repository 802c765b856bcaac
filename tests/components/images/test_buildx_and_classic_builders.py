"""Builders: the context goes in, steps are told on the way, and a failed build quotes its end."""

import gc
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import docker
import pytest
from vertex_training.errors import BuildFailed, DockerUnavailable
from vertex_training.images import buildx_and_classic_builders
from vertex_training.images.build_context import BuildContext, DockerfileContext
from vertex_training.images.buildx_and_classic_builders import Buildx, ClassicBuilder
from vertex_training.images.docker_push_and_digest_lookup import Daemon

URI = "localhost/team/digits:1"


@pytest.fixture
def context(tmp_path: Path) -> BuildContext:
    folder = tmp_path / "context"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM scratch\n")
    return DockerfileContext(folder, "Dockerfile", {"B": "2", "A": "1"}, "slim", "linux/amd64")


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A daemon that answers a build with `messages`, or fails with `error`; `asked` is what it was asked to build.

    To builds before that, it answers with one of `earlier_errors` each.
    """
    daemon = SimpleNamespace(messages=[], error=None, asked={}, files=[], earlier_errors=[])

    def build(fileobj: IO[bytes], **asked: Any) -> list[dict[str, str]]:
        daemon.asked = asked
        with tarfile.open(fileobj=fileobj) as tar:
            daemon.files = tar.getnames()
        if daemon.error:
            raise daemon.error
        if daemon.earlier_errors:
            return [{"stream": "Step 1/1 : FROM scratch\n"}, {"error": daemon.earlier_errors.pop(0)}]
        return list(daemon.messages)

    client = SimpleNamespace(api=SimpleNamespace(build=build), close=lambda: None)
    monkeypatch.setattr(buildx_and_classic_builders, "connect_to_docker", lambda: client)
    return daemon


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Writes `docker` as a shell script, the only program on PATH beside the system's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def write(script: str) -> Path:
        file = folder / "docker"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return folder

    return write


def failure(build: buildx_and_classic_builders.Builder, context: BuildContext) -> list[str]:
    with pytest.raises(BuildFailed) as failure:
        build.build_and_load(context, URI, {}, lambda line: None)
    first, *quoted = str(failure.value).splitlines()
    assert first == f"{URI} cannot be built; the last lines of its build:"
    return quoted


def test_the_classic_builder_gets_context_and_options(daemon: SimpleNamespace, context: BuildContext) -> None:
    ClassicBuilder().build_and_load(context, URI, {}, lambda line: None)
    assert daemon.files == ["Dockerfile"]
    expected = {
        "dockerfile": "Dockerfile",
        "tag": URI,
        "buildargs": {"A": "1", "B": "2"},
        "target": "slim",
        "platform": "linux/amd64",
    }
    assert daemon.asked.items() >= expected.items()


def test_only_the_steps_of_a_build_are_reported(daemon: SimpleNamespace, context: BuildContext) -> None:
    steps = ["Step 1/2 : FROM scratch", "Step 2/2 : RUN pip install"]
    daemon.messages = [{"stream": line + "\n"} for line in [steps[0], " ---> 123", steps[1], "Collecting numpy", ""]]
    told: list[str] = []
    ClassicBuilder().build_and_load(context, URI, {}, told.append)
    assert told == steps


def test_a_failed_build_quotes_last_lines_and_error(daemon: SimpleNamespace, context: BuildContext) -> None:
    daemon.messages = [{"stream": f"line {number}\n"} for number in range(30)] + [{"error": "exit code 1"}]
    assert failure(ClassicBuilder(), context) == [*[f"  line {number}" for number in range(19, 30)], "  exit code 1"]


def test_a_build_that_the_daemon_rejects_says_why(daemon: SimpleNamespace, context: BuildContext) -> None:
    reason = "dockerfile parse error line 1: unknown instruction: FRMO"
    daemon.error = docker.errors.APIError("400 Client Error", explanation=reason)
    assert failure(ClassicBuilder(), context) == [f"  {reason}"]


def test_buildx_gets_context_and_options(program: Callable[[str], Path], context: BuildContext) -> None:
    folder = program('echo "$@" > "$(dirname "$0")/asked"; tar -t > "$(dirname "$0")/files"; echo "#5 [2/3] RUN pip"')
    told: list[str] = []
    Buildx().build_and_load(context, URI, {}, told.append)
    assert told == ["#5 [2/3] RUN pip"]
    assert (folder / "files").read_text().split() == ["Dockerfile"]
    asked = (folder / "asked").read_text()
    assert asked.startswith("buildx build --load ")
    assert asked.endswith(
        f"--tag {URI} --platform linux/amd64 --file Dockerfile --target slim --build-arg=A=1 --build-arg=B=2 -\n"
    )


def test_a_failed_buildx_build_quotes_last_lines(program: Callable[[str], Path], context: BuildContext) -> None:
    program("cat > /dev/null; for i in 1 2 3; do echo line $i; done; echo 'ERROR: failed to solve' >&2; exit 1")
    assert failure(Buildx(), context) == ["  line 1", "  line 2", "  line 3", "  ERROR: failed to solve"]


def test_output_in_another_encoding_is_accepted(program: Callable[[str], Path], context: BuildContext) -> None:
    program(r"cat > /dev/null; printf '#5 [1/1] RUN caf\351\n'")
    told: list[str] = []
    Buildx().build_and_load(context, URI, {}, told.append)
    assert len(told) == 1


@pytest.mark.parametrize(("script", "kind"), [("exit 0", Buildx), ("exit 1", ClassicBuilder)])
def test_buildx_is_chosen_if_installed(program: Callable[[str], Path], script: str, kind: type) -> None:
    program(f'test "$*" = "buildx version" && {script}')
    assert type(buildx_and_classic_builders.get_buildx_or_classic_builder()) is kind


def test_without_docker_command_the_classic_builder_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert type(buildx_and_classic_builders.get_buildx_or_classic_builder()) is ClassicBuilder


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_a_silent_daemon_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = f"unix://{tmp_path}/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", host)
    for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DockerUnavailable) as unavailable:
        Daemon().get_digest_or_none(URI)
    assert str(unavailable.value).startswith(f"Docker does not answer on {host}: start it")
    assert len(str(unavailable.value).splitlines()) == 1
    del unavailable
    gc.collect()  # the Docker SDK leaves the socket open; here is where the warning is expected


def test_a_build_starts_again_if_an_image_was_removed(daemon: SimpleNamespace, context: BuildContext) -> None:
    gone = 'unable to find image "sha256:9e0334a920b3f259d6b6ffa52b6fdb0b"'
    daemon.messages, daemon.earlier_errors = [{"stream": "Successfully built\n"}], [gone, gone]
    ClassicBuilder().build_and_load(context, URI, {}, lambda line: None)
    assert daemon.files == ["Dockerfile"]

    daemon.earlier_errors = [gone, gone, gone, "a fourth build"]
    with pytest.raises(BuildFailed, match="unable to find image"):
        ClassicBuilder().build_and_load(context, URI, {}, lambda line: None)
    assert daemon.earlier_errors == ["a fourth build"]
    with pytest.raises(BuildFailed, match="a fourth build"):
        ClassicBuilder().build_and_load(context, URI, {}, lambda line: None)
