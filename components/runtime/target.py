"""Where calls go. A target is resolved when a call is made, so that an address is never an input of a resource."""

import os
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from vertex_api.client import Endpoint, JobClient, RestClient
from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.names import ResourceName

from ..errors import SubmitFailed
from . import emulator_process

LOCAL = "//local/"
"""How full resource names on this machine begin, as they do with `//aiplatform.googleapis.com/` in the cloud."""
CLOUD = "//aiplatform.googleapis.com/"
OVERRIDES = ("CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM", "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING")
"""gcloud's own variables for another address of an API, honoured here too; the emulator's `env` prints them."""


class Links(Protocol):
    """Where a person looks at a job."""

    def page(self, name: ResourceName) -> str:
        """The address of a job's page."""

    def logs(self, name: ResourceName) -> str:
        """The command that prints a job's log; the page of a pipeline in the cloud, which has none of its own."""


@dataclass(frozen=True)
class Target:
    """An API that is ready for calls: its `client`, the `parent` of jobs (`projects/P/locations/R`), and `links`."""

    client: JobClient
    parent: str
    links: Links


@dataclass(frozen=True)
class EmulatorLinks:
    """The emulator's page, at `url`."""

    url: str

    def page(self, name: ResourceName) -> str:
        return f"{self.url}/jobs/{name.kind.collection}/{name.id}"

    def logs(self, name: ResourceName) -> str:
        return f"vertex-emulator logs {name.id}"


_COMMANDS = {CUSTOM_JOB: "custom-jobs", HYPERPARAMETER_TUNING_JOB: "hp-tuning-jobs"}


@dataclass(frozen=True)
class ConsoleLinks:
    """Google Cloud's console and command line."""

    project: str

    def page(self, name: ResourceName) -> str:
        return (
            f"https://console.cloud.google.com/vertex-ai/locations/{name.region}/training/{name.id}"
            f"?project={self.project}"
        )

    def logs(self, name: ResourceName) -> str:
        command = _COMMANDS.get(name.kind)
        if command is None:
            return self.page(name)
        return f"gcloud ai {command} stream-logs {name.id} --region={name.region} --project={self.project}"


def connect(parent: str) -> Target:
    """The target of a full resource name such as `//local/projects/P/locations/R`. Starts the emulator if need be."""
    if parent.startswith(LOCAL):
        url = emulator_process.url()
        return Target(_client(Endpoint.at(url)), parent.removeprefix(LOCAL), EmulatorLinks(url))
    if parent.startswith(CLOUD):
        name = parent.removeprefix(CLOUD)
        _, project, _, region = name.split("/")
        return Target(_client(_cloud(region)), name, ConsoleLinks(project))
    raise SubmitFailed(f'"{parent}" in the state is not known to this version, whose targets are local and gcp')


def _cloud(region: str) -> Endpoint:
    known = Endpoint.cloud(region)
    jobs, logging = (os.environ.get(variable, "").rstrip("/") for variable in OVERRIDES)
    return Endpoint(jobs or known.jobs, logging or known.logging)


@cache
def _client(endpoint: Endpoint) -> JobClient:
    return RestClient(endpoint)
