"""Builders of images: `docker buildx` if it is installed, otherwise the daemon's classic builder."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Protocol

from ..errors import BuildFailed, DockerUnavailable
from .build_context import BuildContext
from .buildx_and_classic_builder_input import open_buildx_dockerfile_context_and_stdin, open_classic_builder_input

Report = Callable[[str], None]
"""Called with each line of progress."""
ValuesById = Mapping[str, str]
_STEP_LINE = re.compile(r"Step \d+/\d+ : |#\d+ \[.*\d+/\d+\] ")
"""How the classic builder and BuildKit announce a step."""
_IMAGE_WAS_REMOVED = 'unable to find image "sha256:'
"""What Docker 20.10 says if any image is removed while it looks for cached layers (docs/gotchas.md)."""
_MAX_ATTEMPTS = 3
MAX_QUOTED_LINES = 12
"""How many of the last lines of a failed build an error quotes."""


class Builder(Protocol):
    """Something that turns a context into an image in the daemon."""

    def build_and_load(self, context: BuildContext, tagged_uri: str, secrets_by_id: ValuesById, report: Report) -> None:
        """Build a tagged image in the daemon. The build can read the secrets; no layer has them. Raises BuildFailed."""


class Buildx:
    """`docker buildx build`, which supports every feature of a Dockerfile."""

    def build_and_load(self, context: BuildContext, tagged_uri: str, secrets_by_id: ValuesById, report: Report) -> None:
        # Secrets are passed in the environment: everyone on the machine can read a command line.
        variables = {f"BUILD_SECRET_{index}": id_ for index, id_ in enumerate(sorted(secrets_by_id))}
        command = ["docker", "buildx", "build", "--load", "--progress=plain", "--provenance=false", "--tag", tagged_uri]
        options = ["--target", context.target] if context.target else []
        options += [f"--build-arg={name}={value}" for name, value in sorted(context.build_args.items())]
        options += [f"--secret=id={id_},env={variable}" for variable, id_ in variables.items()]
        environment = {**os.environ, **{variable: secrets_by_id[id_] for variable, id_ in variables.items()}}
        with (
            open_buildx_dockerfile_context_and_stdin(context) as (dockerfile, source, stdin),
            subprocess.Popen(
                [*command, "--platform", context.platform, "--file", dockerfile, *options, source],
                stdin=stdin,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            ) as process,
        ):
            assert process.stdout
            lines = list(iterate_lines_and_report_steps(process.stdout, report))
        if process.returncode:
            raise create_build_failed_error(tagged_uri, lines)


class ClassicBuilder:
    """The daemon's classic builder through the Docker SDK, without BuildKit's features such as `RUN --mount`."""

    def build_and_load(self, context: BuildContext, tagged_uri: str, secrets_by_id: ValuesById, report: Report) -> None:
        if secrets_by_id:
            raise BuildFailed(
                f"{tagged_uri} needs build secrets, which Docker's classic builder would store in the image: install "
                "buildx (the package docker-buildx-plugin or docker-buildx), then run this again"
            )
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            lines, error = self._build_and_get_lines_and_error(context, tagged_uri, report)
            if error is None:
                return
            if attempt == _MAX_ATTEMPTS or not error.startswith(_IMAGE_WAS_REMOVED):
                raise create_build_failed_error(tagged_uri, [*lines, error])

    def _build_and_get_lines_and_error(
        self, context: BuildContext, tagged_uri: str, report: Report
    ) -> tuple[list[str], str | None]:
        import docker

        lines: list[str] = []
        error: str | None = None
        with closing(open_docker_client()) as client, open_classic_builder_input(context) as archive:
            try:
                messages = client.api.build(
                    fileobj=archive,
                    custom_context=True,
                    dockerfile=context.dockerfile,
                    tag=tagged_uri,
                    buildargs=dict(context.build_args),
                    target=context.target or "",
                    platform=context.platform,
                    rm=True,
                    forcerm=True,
                    decode=True,
                )
            except docker.errors.APIError as refusal:
                return [], str(refusal.explanation or refusal)
            for message in messages:
                lines += iterate_lines_and_report_steps(str(message.get("stream", "")).splitlines(), report)
                error = str(message["error"]) if "error" in message else error
        return lines, error


def get_buildx_or_classic_builder() -> Builder:
    """Return buildx if it is installed, otherwise the classic builder, whether or not the daemon answers."""
    probe = ["docker", "buildx", "version"]
    if shutil.which("docker") and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
        return Buildx()
    return ClassicBuilder()


def open_docker_client() -> Any:
    """Return a client of the Docker daemon, which the caller closes. Raises DockerUnavailable."""
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


def iterate_lines_and_report_steps(lines: Iterable[str], report: Report) -> Iterator[str]:
    """Yield all lines that are not blank, and report those that start a step of the Dockerfile."""
    for text in filter(None, map(str.rstrip, lines)):
        if _STEP_LINE.match(text):
            report(text)
        yield text


def create_build_failed_error(tagged_uri: str, lines: list[str]) -> BuildFailed:
    """Return the error of a failed build, with its last lines."""
    quoted = "\n".join(f"  {line}" for line in lines[-MAX_QUOTED_LINES:])
    return BuildFailed(f"{tagged_uri} cannot be built; the last lines of its build:\n{quoted}")
