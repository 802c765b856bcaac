"""Builds images with Docker: `docker buildx` where it is installed, else the daemon's classic builder."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Protocol

from ..errors import BuildFailed, DockerUnavailable
from .context import BuildContext
from .sent_context import for_buildkit, for_classic

Report = Callable[[str], None]
_STEP = re.compile(r"Step \d+/\d+ : |#\d+ \[.*\d+/\d+\] ")
"""How the classic builder and BuildKit announce a step."""
QUOTED_LINES = 12
"""How much of a failed build's output an error quotes."""


class Builder(Protocol):
    """Something that turns a context into an image in the daemon."""

    def build(self, context: BuildContext, uri: str, secrets: Mapping[str, str], report: Report) -> None:
        """Builds and tags the image, and reports progress line by line.

        `secrets` has the value of each of the context's `secret_ids`, which the build can read and the image does not
        keep. Raises BuildFailed.
        """


class Buildx:
    """`docker buildx build`, which can do all that a Dockerfile may ask for."""

    def build(self, context: BuildContext, uri: str, secrets: Mapping[str, str], report: Report) -> None:
        # A secret goes by the environment: a command line can be read by everyone on the machine.
        variables = {f"BUILD_SECRET_{index}": id_ for index, id_ in enumerate(sorted(secrets))}
        command = ["docker", "buildx", "build", "--load", "--progress=plain", "--provenance=false", "--tag", uri]
        options = ["--target", context.target] if context.target else []
        options += [f"--build-arg={name}={value}" for name, value in sorted(context.build_args.items())]
        options += [f"--secret=id={id_},env={variable}" for variable, id_ in variables.items()]
        environment = {**os.environ, **{variable: secrets[id_] for variable, id_ in variables.items()}}
        with (
            for_buildkit(context) as (dockerfile, origin, stdin),
            subprocess.Popen(
                [*command, "--platform", context.platform, "--file", dockerfile, *options, origin],
                stdin=stdin,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            ) as process,
        ):
            assert process.stdout
            lines = list(_reported(process.stdout, report))
        if process.returncode:
            raise _failure(uri, lines)


class ClassicBuilder:
    """The daemon's own builder through the Docker SDK: no BuildKit features such as `RUN --mount`."""

    def build(self, context: BuildContext, uri: str, secrets: Mapping[str, str], report: Report) -> None:
        import docker

        if secrets:
            raise BuildFailed(
                f"{uri} needs build secrets, which Docker's classic builder cannot keep out of the image: install "
                "buildx (the package docker-buildx-plugin or docker-buildx), then run this again"
            )
        errors: list[str] = []

        def output(stream: Iterator[dict[str, Any]]) -> Iterator[str]:
            for message in stream:
                if "error" in message:
                    errors.append(str(message["error"]))
                yield from str(message.get("stream", "")).splitlines()

        with closing(docker_client()) as client, for_classic(context) as archive:
            try:
                stream = client.api.build(
                    fileobj=archive,
                    custom_context=True,
                    dockerfile=context.dockerfile,
                    tag=uri,
                    buildargs=dict(context.build_args),
                    target=context.target or "",
                    platform=context.platform,
                    rm=True,
                    forcerm=True,
                    decode=True,
                )
            except docker.errors.APIError as error:
                raise _failure(uri, [str(error.explanation or error)]) from error
            lines = list(_reported(output(stream), report))
        if errors:
            raise _failure(uri, [*lines, *errors])


def builder() -> Builder:
    """The best builder that this machine has."""
    if shutil.which("docker"):
        probe = subprocess.run(["docker", "buildx", "version"], capture_output=True, check=False)
        if probe.returncode == 0:
            return Buildx()
    return ClassicBuilder()


def docker_client() -> Any:
    """A client of the daemon, to be closed. Raises DockerUnavailable."""
    import docker
    import requests

    try:
        client = docker.from_env(timeout=600)
        client.ping()
    except (docker.errors.DockerException, requests.RequestException) as error:
        host = os.environ.get("DOCKER_HOST", "its default socket")
        raise DockerUnavailable(
            f"Docker does not answer on {host}: start it (`make setup` does so on Linux), then run this again"
        ) from error
    return client


def _reported(lines: Iterable[str], report: Report) -> Iterator[str]:
    """All lines that say something; those that begin a step of the Dockerfile are reported on the way."""
    for line in lines:
        text = line.rstrip()
        if _STEP.match(text):
            report(text)
        if text:
            yield text


def _failure(uri: str, lines: list[str]) -> BuildFailed:
    quoted = "\n".join(f"  {line}" for line in lines[-QUOTED_LINES:])
    return BuildFailed(f"{uri} cannot be built; the last lines of its build:\n{quoted}")
