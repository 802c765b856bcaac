"""Builders of images on this machine: `docker buildx` if it is installed, otherwise the daemon's classic builder.

Where the latter cannot build an image, buildx is got first: by the set-up of the checkout that this package runs from.

Docker reads a Dockerfile that `.dockerignore` excludes, and lets no `COPY` see it. A `COPY` sees everything in an
archive, so BuildKit is given a folder and the Dockerfile beside it, and the classic builder is told what to remove (in
Moby's source, `remotecontext` removes the Dockerfile and `.dockerignore` if the latter names them).
"""

import os
import re
import select
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from .. import trees
from ..errors import BuildFailed, ComponentError, ContextUnusable, DockerUnavailable
from ..files import add_text, cache_folder
from .context import BuildContext
from .dockerfile import PLATFORM_PARTS, Dockerfile

Report = Callable[[str], None]
"""Called with each line of progress."""
Secrets = Mapping[str, str]
"""Values by the ids with which a Dockerfile mounts them."""
MAX_QUOTED_LINES = 12
"""How many of the last lines of a failed build an error quotes."""
_MAX_SHOWN = 120
_CLASSIC_STEP = re.compile(r"Step (\d+)/\d+ : ")
_BUILDKIT_FAILURE = re.compile(r" > (?:\[[^]]*\] )?(.+):$")
"""How the builders say of which step what follows is."""
_STEP_LINE = re.compile(r"Step \d+/\d+ : |#\d+ \[.*\d+/\d+\] ")
"""How the classic builder and BuildKit announce a step."""
_IMAGE_WAS_REMOVED = 'unable to find image "sha256:'
"""What Docker 20.10 says if any image is removed while it looks for cached layers (docs/gotchas.md)."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""How Docker and programs in a build colour what they write (ECMA-48, CSI)."""
_ADVICE = (
    (
        r"no such host|dial tcp|i/o timeout|network is unreachable|TLS handshake timeout|name resolution",
        "this machine does not reach a registry or server; connect it, or bring the base image here by `docker load`",
    ),
    (
        r"sent nothing for \d|sends nothing any more",
        "the last step writes nothing, such as a RUN that waits for an answer; let it write, or answer (apt-get -y)",
    ),
    (
        r"pull access denied|manifest unknown|manifest for \S+ not found|failed to resolve source metadata",
        "correct the image or stage after FROM or --from=, or log in to its registry by `docker login`",
    ),
    (
        r"(?i)failed to solve.*unknown (instruction|flag)",
        "Docker's BuildKit is older than the Dockerfile; let that begin with `# syntax=docker/dockerfile:1`",
    ),
    (r"(?i)no space left on device", "Docker's disk is full; `docker system df` says of what"),
    (r"unable to find (user|group)|no matching entries in", "no RUN before it makes the user that USER names"),
    (r"exec format error", "this machine runs no programs of the image's platform; name its own, or install binfmt"),
)
"""What helps, by what one of the last lines of a build says, in Docker's and runc's words."""
_MAX_ATTEMPTS = 3
_ANSWER_SECONDS, _SILENT_BUILD_SECONDS = 600, 3600
_IGNORE_FILE = ".dockerignore"
INSTALL_BUILDX = (
    "install buildx (Docker's package docker-buildx-plugin, or docker-buildx of Debian 13, Ubuntu and Homebrew; Docker "
    "Desktop has it), then run this again"
)
_SETUP = Path(__file__).resolve().parents[2] / "tools" / "setup" / "buildx.py"
"""What gets buildx, if this package runs from a checkout."""
_PLUGIN = ("docker", "buildx")


def build(context: BuildContext, uri: str, secrets: Secrets, report: Report) -> None:
    """Build an image in the daemon. The build can read the secrets; no layer has them. Raises BuildFailed."""
    choose(context, secrets, report).build(context, uri, secrets, report)


def choose(context: BuildContext, secrets: Secrets, report: Report) -> "Buildx | ClassicBuilder":
    """Return the builder of an image: buildx if Docker has it or the image needs BuildKit, else the classic builder.

    Buildx is got first where that is needed and can be done; else the classic builder says what needs it. It does not
    matter whether the daemon answers.
    """
    if has_plugin():
        return Buildx()
    if not secrets and not [*Dockerfile.parse(context.dockerfile_text).buildkit_only()]:
        return ClassicBuilder()
    if not (program := cached_buildx()) and can_get_buildx():
        _get_buildx(report)
        if has_plugin():
            return Buildx()
        program = cached_buildx()
    return Buildx((str(program),)) if program else ClassicBuilder()


def has_plugin() -> bool:
    """Whether `docker` has buildx."""
    probe = [*_PLUGIN, "version"]
    return shutil.which("docker") is not None and not subprocess.run(probe, capture_output=True, check=False).returncode


def cached_buildx() -> Path | None:
    """Return the newest buildx that a set-up has built, as a program of its own."""
    folder = cache_folder()
    if not folder.is_dir() or any(each.stat().st_mode & 0o002 for each in (folder, *folder.glob("buildx-*"))):
        return None  # anyone may have put it there
    return max(folder.glob("buildx-*/buildx"), key=lambda each: each.stat().st_mtime, default=None)


def can_get_buildx() -> bool:
    """Whether this package runs from a checkout, whose set-up gets buildx."""
    return _SETUP.is_file()


def _get_buildx(report: Report) -> None:
    command = [sys.executable, "-m", "tools.setup", "buildx"]
    with subprocess.Popen(
        command,
        cwd=_SETUP.parents[2],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout
        for line in filter(None, map(str.rstrip, process.stdout)):
            report(line)


class Buildx:
    """`docker buildx build`, which supports every feature of a Dockerfile; `command` is `docker buildx`."""

    def __init__(self, command: Sequence[str] = _PLUGIN) -> None:
        self._command = command

    def build(self, context: BuildContext, uri: str, secrets: Secrets, report: Report) -> None:
        """See `build`."""
        # Secrets are passed in the environment: everyone on the machine can read a command line.
        variables = {f"BUILD_SECRET_{index}": id_ for index, id_ in enumerate(sorted(secrets))}
        command = [*self._command, "build", "--load", "--progress=plain", "--provenance=false", "--tag", uri]
        options = ["--target", context.target] if context.target else []
        options += [f"--build-arg={name}={value}" for name, value in sorted(context.build_args.items())]
        options += [f"--secret=id={id_},env={variable}" for variable, id_ in variables.items()]
        with (
            buildx_input(context) as (dockerfile, source, stdin),
            subprocess.Popen(
                [*command, "--platform", context.platform, "--file", dockerfile, *options, source],
                stdin=stdin,
                # Else it runs git in a context that is a folder, which obeys what files there say.
                env={
                    **os.environ,
                    "BUILDX_GIT_INFO": "false",
                    **{variable: secrets[id_] for variable, id_ in variables.items()},
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            ) as process,
        ):
            lines = list(follow(_lines(process, _SILENT_BUILD_SECONDS), report))
        if process.returncode:
            raise failure(uri, lines, at=_failed_at(context, uri, lines))


def _lines(process: "subprocess.Popen[bytes]", silence_seconds: float) -> Iterator[str]:
    """Yield what a program writes, by lines. One that writes nothing for so long is ended, and a last line says so."""
    assert process.stdout
    rest = b""
    while select.select([process.stdout], [], [], silence_seconds)[0]:
        if not (read := os.read(process.stdout.fileno(), 1 << 16)):
            break
        *lines, rest = (rest + read).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    else:
        process.terminate()
        rest += f"\nthe build has sent nothing for {silence_seconds:g} s, so it was ended".encode()
    yield from rest.decode(errors="replace").split("\n")


@contextmanager
def buildx_input(context: BuildContext) -> Iterator[tuple[str, str, IO[bytes] | int]]:
    """Yield what `docker buildx build` takes: the Dockerfile, the context (`-` or a folder), and standard input.

    Raises ContextUnusable for a Dockerfile that is a link to nothing in the context.
    """
    with context.open() as archive:
        if not context.hides_dockerfile:
            yield context.dockerfile, "-", archive
            return
        with TemporaryDirectory() as temporary:
            folder, dockerfile = Path(temporary, "context"), Path(temporary, "Dockerfile")
            folder.mkdir()
            # tar creates the folders in between: with the same mode whatever the umask.
            subprocess.run(["tar", "-xpf", "-", "-C", folder], stdin=archive, umask=0o022, check=True)
            try:
                dockerfile.write_bytes(trees.read(folder / context.dockerfile, folder))
            except FileNotFoundError:
                raise ContextUnusable(
                    f"{context.folder / context.dockerfile} is a link to a file that is not in the build context; "
                    'include that by a line "!…" in .dockerignore'
                ) from None
            (folder / context.dockerfile).unlink()
            # Replaces a .dockerignore in the folder, which is already applied.
            dockerfile.with_suffix(_IGNORE_FILE).touch()
            yield str(dockerfile), str(folder), subprocess.DEVNULL


class ClassicBuilder:
    """The daemon's classic builder through the Docker SDK, without BuildKit's features such as `RUN --mount`."""

    def build(self, context: BuildContext, uri: str, secrets: Secrets, report: Report) -> None:
        """See `build`; refuses secrets."""
        parsed = Dockerfile.parse(context.dockerfile_text)
        if found := [*parsed.buildkit_only()]:
            needs = "".join(f"\n  {context.place(uri, line)}: {text}" for line, text in found)
            raise BuildFailed(f"{uri} cannot be built by Docker's classic builder; {INSTALL_BUILDX}:{needs}")
        if secrets:
            raise BuildFailed(
                f"{uri} needs build secrets, which Docker's classic builder would store in the image; {INSTALL_BUILDX}"
            )
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            lines, error = self._attempt(context, uri, report)
            if error is None:
                return
            if attempt == _MAX_ATTEMPTS or not error.startswith(_IMAGE_WAS_REMOVED):
                raise failure(uri, [*lines, error], at=_failed_at(context, uri, lines))

    def _attempt(self, context: BuildContext, uri: str, report: Report) -> tuple[list[str], str | None]:
        """Return the lines of a build, and its error."""
        lines: list[str] = []
        error: str | None = None
        with closing(connect(_SILENT_BUILD_SECONDS)) as client, classic_input(context) as archive:
            try:
                with docker_errors():
                    messages = client.api.build(
                        fileobj=archive,
                        custom_context=True,
                        dockerfile=context.dockerfile,
                        tag=uri,
                        buildargs={**_platform_arguments(client, context), **context.build_args},
                        target=context.target or "",
                        platform=context.platform,
                        rm=True,
                        forcerm=True,
                        decode=True,
                    )
                    for message in messages:
                        lines += follow(str(message.get("stream", "")).splitlines(), report)
                        error = str(message["error"]) if "error" in message else error
            except DockerRefused as refusal:
                return lines, str(refusal)
            except DockerUnavailable as lost:
                raise failure(uri, [*lines, str(lost)], at=_failed_at(context, uri, lines)) from lost
        return lines, error


def _platform_arguments(client: Any, context: BuildContext) -> dict[str, str]:
    """Return the arguments that BuildKit would define and the classic builder does not, so that images are equal."""
    names = Dockerfile.parse(context.dockerfile_text).undefined_arguments()
    if not names:
        return {}
    version = client.version()
    values: dict[str, str] = {}
    for side, platform in (("BUILD", f"{version['Os']}/{version['Arch']}"), ("TARGET", context.platform)):
        parts = [platform, *platform.split("/"), "", ""]
        values |= dict(zip((f"{side}{part}" for part in PLATFORM_PARTS), parts, strict=False))
    return {name: values[name] for name in names}


@contextmanager
def classic_input(context: BuildContext) -> Iterator[IO[bytes]]:
    """Yield the archive that the daemon's classic builder takes."""
    with context.open() as archive:
        # If the context contains .dockerignore, the daemon reads there what to remove.
        if context.hides_dockerfile and _IGNORE_FILE not in context.digests:
            with tarfile.open(fileobj=archive, mode="a") as tar:
                pattern = re.sub(r"([*?\[\]\\!#])", r"\\\1", context.dockerfile)
                add_text(tar, _IGNORE_FILE, f"{_IGNORE_FILE}\n{pattern}\n")
            archive.seek(0)
        yield archive


class DockerRefused(ComponentError):
    """The Docker daemon does not do what it was asked to; the message is its own, in one line."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(" ".join(message.split()))
        self.status = status


@contextmanager
def docker_errors() -> Iterator[None]:
    """Raise what the Docker SDK raises as DockerRefused, if the daemon has answered, or DockerUnavailable.

    Its errors are of four libraries, and most are an OSError by inheritance. What reads an answer stands in the block:
    a stream (`decode=True`) sends its request when its first message is read.
    """
    import docker
    import requests
    import urllib3

    lost = (docker.errors.DockerException, docker.errors.StreamParseError, requests.RequestException)
    try:
        yield
    except docker.errors.APIError as error:
        reason = str(error.explanation or error.response.reason)
        raise DockerRefused(reason, error.status_code or 0) from error
    except (*lost, urllib3.exceptions.HTTPError) as error:
        is_silent = "timed out" in str(error)  # in a stream, the type of requests' error does not say so
        reason = "Docker sends nothing any more" if is_silent else "the connection to Docker was lost"
        raise DockerUnavailable(f"{reason} ({_host()}); run this again") from error


def connect(timeout_seconds: int = _ANSWER_SECONDS) -> Any:
    """Return a client of the Docker daemon once it has answered; the caller closes it. Raises DockerUnavailable."""
    import docker
    import requests

    try:
        client = docker.from_env(timeout=timeout_seconds)
        client.ping()
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise DockerUnavailable(
            f"Docker does not answer on {_host()}: start it (`make setup` does so on Linux), then run this again"
        ) from error
    return client


def _host() -> str:
    return os.environ.get("DOCKER_HOST", "its default socket")


def follow(lines: Iterable[str], report: Report) -> Iterator[str]:
    """Yield all lines of a build that are not blank, without colours, and report those that start a step."""
    for text in filter(None, (_COLOURS.sub("", line).rstrip() for line in lines)):
        if _STEP_LINE.match(text):
            report(text)
        yield text


def _failed_at(context: BuildContext, uri: str, lines: Sequence[str]) -> str:
    """Return the place and the text of the instruction that has failed, as a build's lines say; "" if none does."""
    instructions = Dockerfile.parse(context.dockerfile_text).instructions
    by_text = {" ".join([each.name, *each.flags, *each.rest.split()]): each for each in instructions}
    for each in instructions:
        if name := each.flag("--from") or (each.words[0] if each.name == "FROM" and each.words else ""):
            by_text |= {f"{prefix} {_full_name(name)}": each for prefix in ("load metadata for", "FROM")}
    for line in reversed(lines if not context.texts else []):  # a generated Dockerfile has no place
        found = None
        if (step := _CLASSIC_STEP.match(line)) and int(step[1]) <= len(instructions):
            found = instructions[int(step[1]) - 1]
        elif step := _BUILDKIT_FAILURE.match(line):
            found = by_text.get(" ".join(step[1].split()))
        if found:
            text = " ".join([found.name, *found.flags, found.rest])
            return f"{context.place(uri, found.line)} ({text[:_MAX_SHOWN]})"
    return ""


def _full_name(image: str) -> str:
    """Return the name of an image as BuildKit writes it: `docker.io/library/python:latest` for `python`."""
    host, _, path = image.partition("/")
    if not path or not ("." in host or ":" in host or host == "localhost"):
        image = f"docker.io/{image if path else f'library/{image}'}"
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def failure(uri: str, lines: list[str], advice: str = "", at: str = "") -> BuildFailed:
    """Return the error of a failed build `at` a place, with its last lines, and what helps where they say so."""
    ending = "\n".join(lines[-MAX_QUOTED_LINES:])
    advice = advice or next((text for pattern, text in _ADVICE if re.search(pattern, ending)), "")
    quoted = "\n".join(f"  {line}" for line in lines[-MAX_QUOTED_LINES:])
    return BuildFailed(
        f"{uri} cannot be built{at and ': '}{at}{advice and '; '}{advice}; the last lines of its build:\n{quoted}"
    )
