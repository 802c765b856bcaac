"""Builders: the context goes in, steps are told on the way, a failed build quotes its end, and secrets stay out."""

import gc
import io
import json
import os
import subprocess
import tarfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import docker
import pytest
import requests
import urllib3
from vertex_training.errors import BuildFailed, ContextUnusable, DockerUnavailable
from vertex_training.images import builders
from vertex_training.images.builders import Buildx, ClassicBuilder, buildx_input, choose
from vertex_training.images.context import BuildContext, DockerfileContext
from vertex_training.images.registry import Daemon

from tests import buildx

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
    monkeypatch.setattr(builders, "connect", lambda _seconds: client)
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


def quoted_lines(build: Buildx | ClassicBuilder, context: BuildContext) -> list[str]:
    with pytest.raises(BuildFailed) as failure:
        build.build(context, URI, {}, lambda line: None)
    first, *quoted = str(failure.value).splitlines()
    assert first.startswith(f"{URI} cannot be built") and first.endswith("; the last lines of its build:")
    return quoted


def test_the_classic_builder_gets_context_and_options(daemon: SimpleNamespace, context: BuildContext) -> None:
    ClassicBuilder().build(context, URI, {}, lambda line: None)
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
    ClassicBuilder().build(context, URI, {}, told.append)
    assert told == steps


def test_a_failed_build_quotes_last_lines_and_error(daemon: SimpleNamespace, context: BuildContext) -> None:
    daemon.messages = [{"stream": f"line {number}\n"} for number in range(30)] + [{"error": "exit code 1"}]
    assert quoted_lines(ClassicBuilder(), context) == [
        *[f"  line {number}" for number in range(19, 30)],
        "  exit code 1",
    ]


def test_a_build_that_the_daemon_rejects_says_why(daemon: SimpleNamespace, context: BuildContext) -> None:
    reason = "dockerfile parse error line 1: unknown instruction: FRMO"
    daemon.error = refused(reason)
    assert quoted_lines(ClassicBuilder(), context) == [f"  {reason}"]


def lazily(error: Exception) -> Callable[..., Iterator[dict[str, str]]]:
    """Docker's answer to a build as the SDK gives it: a generator, which fails when it is read."""

    def build(**_: Any) -> Iterator[dict[str, str]]:
        yield {"stream": "Step 1/2 : FROM scratch\n"}
        raise error

    return build


def refused(reason: str) -> docker.errors.APIError:
    response = requests.Response()
    response.status_code, response.reason = 400, "Bad Request"
    return docker.errors.APIError("400 Client Error", response, reason)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (refused("dockerfile parse error line 1: unknown instruction: FORM"), "dockerfile parse error line 1: unkn"),
        (refused(""), "Bad Request"),
        (requests.ConnectionError("UnixHTTPConnectionPool: Read timed out."), "Docker sends nothing any more ("),
        (requests.exceptions.ChunkedEncodingError("Connection broken"), "the connection to Docker was lost ("),
        (urllib3.exceptions.ProtocolError("Connection broken"), "the connection to Docker was lost ("),
        (docker.errors.StreamParseError("x"), "the connection to Docker was lost ("),
    ],
)
def test_an_error_amid_an_answer_is_docker_s(
    monkeypatch: pytest.MonkeyPatch, context: BuildContext, error: Exception, reason: str
) -> None:
    client = SimpleNamespace(api=SimpleNamespace(build=lazily(error)), close=lambda: None)
    monkeypatch.setattr(builders, "connect", lambda _seconds: client)
    last = quoted_lines(ClassicBuilder(), context)[-1]
    assert last.startswith(f"  {reason}")


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ('Get "https://a.test/v2/": dial tcp: lookup a.test: no such host', "this machine does not reach a registry"),
        (
            "pull access denied for buidler, repository does not exist",
            "correct the image or stage after FROM or --from=",
        ),
        ("failed to solve: line 3: unknown instruction: PRINT(1)", "Docker's BuildKit is older than the Dockerfile"),
        ("failed to solve: line 2: Unknown flag: link", "Docker's BuildKit is older than the Dockerfile"),
        ("dd: error writing '/x': No space left on device", "Docker's disk is full"),
        ("write /x: no space left on device", "Docker's disk is full; `docker system df` says of what"),
        ("unable to find user trainer: no matching entries in passwd file", "no RUN before it makes the user"),
        ("exec /bin/sh: exec format error", "this machine runs no programs of the image's platform"),
    ],
)
def test_a_known_failure_says_what_helps(
    daemon: SimpleNamespace, context: BuildContext, error: str, advice: str
) -> None:
    daemon.messages = [{"error": error}]
    with pytest.raises(BuildFailed) as failure:
        ClassicBuilder().build(context, URI, {}, lambda line: None)
    assert str(failure.value).startswith(f"{URI} cannot be built; {advice}")
    assert str(failure.value).endswith(f"the last lines of its build:\n  {error}")


def test_colours_of_a_build_are_left_out(daemon: SimpleNamespace, context: BuildContext) -> None:
    daemon.messages = [{"stream": "\x1b[91mE: no such package\x1b[0m\n"}, {"error": "exit code 1"}]
    assert quoted_lines(ClassicBuilder(), context) == ["  E: no such package", "  exit code 1"]


def test_buildx_gets_context_and_options(program: Callable[[str], Path], context: BuildContext) -> None:
    folder = program('echo "$@" > "$(dirname "$0")/asked"; tar -t > "$(dirname "$0")/files"; echo "#5 [2/3] RUN pip"')
    told: list[str] = []
    Buildx().build(context, URI, {}, told.append)
    assert told == ["#5 [2/3] RUN pip"]
    assert (folder / "files").read_text().split() == ["Dockerfile"]
    asked = (folder / "asked").read_text()
    assert asked.startswith("buildx build --load ")
    assert asked.endswith(
        f"--tag {URI} --platform linux/amd64 --file Dockerfile --target slim --build-arg=A=1 --build-arg=B=2 -\n"
    )


def test_a_failed_buildx_build_quotes_last_lines(program: Callable[[str], Path], context: BuildContext) -> None:
    program("cat > /dev/null; for i in 1 2 3; do echo line $i; done; echo 'ERROR: failed to solve' >&2; exit 1")
    assert quoted_lines(Buildx(), context) == ["  line 1", "  line 2", "  line 3", "  ERROR: failed to solve"]


def test_output_in_another_encoding_is_accepted(program: Callable[[str], Path], context: BuildContext) -> None:
    program(r"cat > /dev/null; printf '#5 [1/1] RUN caf\351\n'")
    told: list[str] = []
    Buildx().build(context, URI, {}, told.append)
    assert len(told) == 1


def needing(folder: Path, step: str = "RUN --mount=type=cache,target=/c x") -> BuildContext:
    """The context of a Dockerfile with a step."""
    (folder / "Dockerfile").write_text(f"FROM scratch\n{step}\n")
    return DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64")


def chosen(context: BuildContext, secrets: builders.Secrets | None = None) -> list[str]:
    """Return how the program of the chosen builder begins; nothing for the classic builder."""
    found = choose(context, secrets or {}, lambda line: None)
    return [*found._command] if isinstance(found, Buildx) else []


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose set-up does what its `buildx.py` says, and an empty cache."""
    setup = tmp_path / "checkout/tools/setup"
    setup.mkdir(parents=True)
    (setup / "__main__.py").write_text("from tools.setup import buildx")
    monkeypatch.setattr(builders, "_SETUP", setup / "buildx.py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return setup


@pytest.fixture
def cached(tmp_path: Path, checkout: Path) -> Path:
    program = tmp_path / "cache/vertex-training/buildx-0.19.3/buildx"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    return program


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(("script", "found"), [("exit 0", ["docker", "buildx"]), ("exit 1", [])])
def test_buildx_is_chosen_if_installed(
    program: Callable[[str], Path], context: BuildContext, script: str, found: list[str]
) -> None:
    program(f'test "$*" = "buildx version" && {script}')
    assert chosen(context) == found


def test_the_classic_builder_needs_no_command(
    context: BuildContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert chosen(context) == []


def test_what_a_set_up_built_builds_what_needs_it(
    program: Callable[[str], Path], context: BuildContext, cached: Path
) -> None:
    program("exit 1")
    assert chosen(context) == []
    assert chosen(context, {"token": "t"}) == chosen(needing(context.folder)) == [str(cached)]
    cached.parent.chmod(0o777)
    assert chosen(needing(context.folder)) == []


def test_buildx_is_got_when_first_needed(
    program: Callable[[str], Path], context: BuildContext, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("exit 1")
    (checkout / "buildx.py").write_text(
        "import os, pathlib\n"
        "made = pathlib.Path(os.environ['XDG_CACHE_HOME'], 'vertex-training/buildx-1/buildx')\n"
        "made.parent.mkdir(parents=True)\nmade.touch(0o755)\nprint('building buildx ... 3 s')\n"
    )
    told: list[str] = []
    assert isinstance(choose(context, {}, told.append), ClassicBuilder) and not told
    assert isinstance(choose(needing(context.folder), {}, told.append), Buildx)
    assert isinstance(choose(needing(context.folder), {}, told.append), Buildx)
    assert told == ["building buildx ... 3 s"]


def test_what_cannot_be_had_is_said_with_the_lines_that_need_it(
    program: Callable[[str], Path], context: BuildContext, checkout: Path
) -> None:
    program("exit 1")
    (checkout / "buildx.py").write_text("raise SystemExit('buildx: no network')")
    told: list[str] = []
    with pytest.raises(BuildFailed) as failure:
        builders.build(needing(context.folder), URI, {}, told.append)
    assert told == ["buildx: no network"]
    assert (
        str(failure.value)
        .splitlines()[-1]
        .endswith("Dockerfile:2: RUN --mount needs BuildKit; without it, leave the cache out, as it only saves time")
    )


def test_a_silent_build_is_ended(
    program: Callable[[str], Path], context: BuildContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builders, "_SILENT_BUILD_SECONDS", 0.3)
    program("echo '#5 [1/1] RUN read'; exec sleep 60")
    with pytest.raises(BuildFailed) as failure:
        Buildx().build(context, URI, {}, lambda line: None)
    first, *_, last = str(failure.value).splitlines()
    assert "the last step writes nothing, such as a RUN that waits for an answer" in first
    assert last == "  the build has sent nothing for 0.3 s, so it was ended"


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_a_silent_daemon_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = f"unix://{tmp_path}/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", host)
    for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DockerUnavailable) as unavailable:
        Daemon().digest(URI)
    assert str(unavailable.value).startswith(f"Docker does not answer on {host}: start it")
    assert len(str(unavailable.value).splitlines()) == 1
    del unavailable
    gc.collect()  # the Docker SDK leaves the socket open; here is where the warning is expected


def test_a_removed_image_restarts_the_build(daemon: SimpleNamespace, context: BuildContext) -> None:
    gone = 'unable to find image "sha256:9e0334a920b3f259d6b6ffa52b6fdb0b"'
    daemon.messages, daemon.earlier_errors = [{"stream": "Successfully built\n"}], [gone, gone]
    ClassicBuilder().build(context, URI, {}, lambda line: None)
    assert daemon.files == ["Dockerfile"]

    daemon.earlier_errors = [gone, gone, gone, "a fourth build"]
    with pytest.raises(BuildFailed, match="unable to find image"):
        ClassicBuilder().build(context, URI, {}, lambda line: None)
    assert daemon.earlier_errors == ["a fourth build"]
    with pytest.raises(BuildFailed, match="a fourth build"):
        ClassicBuilder().build(context, URI, {}, lambda line: None)


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
    build: Buildx | ClassicBuilder = request.param()
    if request.param is Buildx:
        buildx.install(tmp_path / "docker", buildx.program())
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    uri = f"localhost/vertex-training-test/{uuid.uuid4().hex[:12]}:1"

    def files(context: BuildContext) -> set[str]:
        umask = os.umask(0o077)
        try:
            build.build(context, uri, {}, lambda line: None)
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
def test_an_ignored_dockerfile_is_not_copied(tmp_path: Path, copied: Copied, left_out: str) -> None:
    context = tree(tmp_path / "context", *HIDDEN[left_out])
    assert context.dockerfile in context.digests
    assert copied(context) == set(context.digests) - {context.dockerfile}


@pytest.mark.parametrize("left_out", SEEN)
def test_an_included_dockerfile_is_copied(tmp_path: Path, copied: Copied, left_out: str) -> None:
    context = tree(tmp_path / "context", *SEEN[left_out])
    assert context.dockerfile in context.digests
    assert copied(context) == set(context.digests)


def test_a_dockerfile_linking_to_an_ignored_file_fails(tmp_path: Path) -> None:
    context = tree(tmp_path / "context", "Dockerfile", {".dockerignore": "Dockerfile\nreal\n"})
    (context.folder / "Dockerfile").rename(context.folder / "real")
    (context.folder / "Dockerfile").symlink_to("real")
    with (
        pytest.raises(ContextUnusable, match="Dockerfile is a link to a file that is not in the build context"),
        buildx_input(context),
    ):
        pass


FAILING = {
    "RUN  echo why  &&  exit 3": ("d1/Dockerfile:4 (RUN echo why  &&  exit 3); the last lines of its build", "3"),
    "USER nobody2\nRUN true": ("d1/Dockerfile:5 (RUN true); no RUN before it makes the user that USER names", "passwd"),
    "COPY --from=buidler /a /b": ("d1/Dockerfile:4 (COPY --from=buidler /a /b); ", ""),
    "RUN dd if=/dev/zero of=/dev/full": ("d1/Dockerfile:4 (RUN dd if=/dev/zero of=/dev/full); Docker's disk is f", "1"),
}
"""What only a builder finds: a step, what is said of it, and how the build's last line ends."""


@pytest.mark.parametrize("builder", [Buildx, ClassicBuilder])
def test_what_only_a_builder_finds_is_named_by_line(
    builder: type[Buildx] | type[ClassicBuilder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d1").mkdir()
    build = Buildx([str(buildx.program())]) if builder is Buildx else ClassicBuilder()
    for step, (said, ending) in FAILING.items():
        Path("d1/Dockerfile").write_text(f"FROM {BASE} AS one\nFROM one\n# {tmp_path}\n{step}\n")
        context = DockerfileContext(Path("d1"), "Dockerfile", {}, None, "linux/amd64")
        with pytest.raises(BuildFailed) as failure:
            build.build(context, URI, {}, lambda line: None)
        first, *_, last = str(failure.value).splitlines()
        assert first.startswith(f"{URI} cannot be built: {said}")
        assert ending in last and "None" not in str(failure.value)


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


def secret_context(folder: Path, *steps: str) -> BuildContext:
    folder.mkdir()
    (folder / "Dockerfile").write_text("\n".join([f"FROM {BASE}", *steps]) + "\n")
    return DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64", ("token",))


def test_the_image_does_not_contain_the_build_secret(uri: str, tmp_path: Path) -> None:
    assert builders.has_plugin()
    step = f"RUN --mount=type=secret,id=token test \"$(cat /run/secrets/token)\" = {SECRET[:6]}'{SECRET[6:]}'"
    told: list[str] = []
    Buildx().build(secret_context(tmp_path / "c", step), uri, {"token": SECRET}, told.append)
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
        Buildx().build(secret_context(tmp_path / "c", *steps), uri, {"token": SECRET}, lambda line: None)
    assert "exit code: 3" in str(raised.value)
    assert SECRET not in str(raised.value)
