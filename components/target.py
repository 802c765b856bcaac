"""Where calls go. A target is resolved when a call is made, so that an address is never an input of a resource."""

from functools import cache

from components import emulator_process
from components.errors import SubmitFailed
from vertex.client import Endpoint, JobClient, RestClient
from vertex.names import ResourceName


def connect(target: str) -> JobClient:
    """A client of the target's API. For target `local` this starts the emulator when it does not run."""
    return _client(_endpoint(target))


def page(target: str, name: ResourceName) -> str:
    """The address of a job's page."""
    return f"{_endpoint(target).jobs}/jobs/{name.kind.collection}/{name.id}"


@cache
def _client(endpoint: Endpoint) -> JobClient:
    return RestClient(endpoint)


def _endpoint(target: str) -> Endpoint:
    if target != "local":
        raise SubmitFailed(f'target "{target}" in the state is not known to this version, which has "local" only')
    return Endpoint.at(emulator_process.url())
