"""Where calls go. A target is resolved when a call is made, so that an address is never an input of a resource."""

from dataclasses import dataclass
from functools import cache

from components import emulator_process
from components.errors import SubmitFailed
from vertex.client import Endpoint, JobClient, RestClient
from vertex.names import ResourceName

LOCAL = "//local/"
"""How full resource names on this machine begin, as they do with `//aiplatform.googleapis.com/` in the cloud."""


@dataclass(frozen=True)
class Target:
    """An API that is ready for calls: its `client`, the `parent` of jobs (`projects/P/locations/R`), and its `url`."""

    client: JobClient
    parent: str
    url: str

    def page(self, name: ResourceName) -> str:
        """The address of a job's page."""
        return f"{self.url}/jobs/{name.kind.collection}/{name.id}"

    def logs(self, name: ResourceName) -> str:
        """The command that prints a job's log."""
        return f"python -m emulator logs {name.id}"


def connect(parent: str) -> Target:
    """The target of a full resource name such as `//local/projects/P/locations/R`. Starts the emulator if need be."""
    if not parent.startswith(LOCAL):
        raise SubmitFailed(f'"{parent}" in the state is not known to this version, whose only target is local')
    url = emulator_process.url()
    return Target(_client(url), parent.removeprefix(LOCAL), url)


@cache
def _client(url: str) -> JobClient:
    return RestClient(Endpoint.at(url))
