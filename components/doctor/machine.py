"""What `pulumi up` needs of this machine: Pulumi itself, its plugin for Google Cloud, and Docker."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from ..images.declaration import is_built_here, uses_cloud_build
from ..settings.settings import Settings
from .findings import Finding, found

_NO_DOWNLOADS = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
_DOCKER_SECONDS = 2


def look(settings: Settings) -> Iterator[Finding]:
    """Yield what a stack with these settings lacks here. It asks nobody but Docker, which answers at once or not."""
    if not shutil.which("pulumi"):
        yield found("pulumi-missing")
    if settings.cloud is not None and _is_true(os.environ.get(_NO_DOWNLOADS)) and not _has_plugin():
        yield found("plugin-missing", version=version("pulumi-gcp"), variable=_NO_DOWNLOADS)
    if (user := _docker_user(settings)) and not _docker_answers():
        yield found("docker-missing", host=os.environ.get("DOCKER_HOST", "its default socket"), user=user)


def _docker_user(settings: Settings) -> str:
    """Return what a stack needs Docker for, empty if for nothing."""
    if settings.cloud is None:
        return "jobs run in it"
    builder = settings.cloud.get("builder")
    built = [
        name for name, each in settings.images.items() if is_built_here(each) and not uses_cloud_build(builder, each)
    ]
    return (
        f"images are built with it, unless vertex-training:builder names Cloud Build ({', '.join(built)})"
        if built
        else ""
    )


def _docker_answers() -> bool:
    import docker
    import requests

    try:
        with closing(docker.from_env(timeout=_DOCKER_SECONDS)) as client:
            client.ping()
    except (docker.errors.DockerException, requests.RequestException):
        return False
    return True


def _has_plugin() -> bool:
    """Whether Pulumi would find a plugin of the right major version (its page "Plugins")."""
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    major = version("pulumi-gcp").partition(".")[0]
    is_given = "gcp:" in os.environ.get("PULUMI_DEBUG_PROVIDERS", "")
    return is_given or bool(shutil.which("pulumi-resource-gcp") or [*home.glob(f"plugins/resource-gcp-v{major}.*")])


def _is_true(text: str | None) -> bool:
    return (text or "").lower() in ("1", "true")
