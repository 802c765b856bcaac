"""The network of a job: a bridge on which the names of all replicas resolve before any of them runs.

Docker's own names resolve only once a container runs, but on Vertex a replica may look for its peers as soon as it
starts. So addresses are fixed when containers are created, and every container gets the whole list as /etc/hosts.
"""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vertex_emulator.errors import NetworkUnavailable

_TRIES = 5
_FIRST_HOST = 2  # the first address is the gateway's

Call = Callable[[Callable[[Any], Any]], Any]


def ensure_network(call: Call, name: str, labels: Mapping[str, str]) -> ipaddress.IPv4Network:
    """Create a job's network if it does not exist, and return its subnet. `call` runs a function on a Docker client.

    Docker fixes addresses only in a subnet that was asked for, and only Docker knows which are free: so it chooses one
    for a first network, which then makes room for one that asks for the same.
    """
    for _ in range(_TRIES):
        known: ipaddress.IPv4Network | None = call(lambda client: _get_subnet(client, name))
        if known is not None:
            return known
        call(lambda client: _create_in_free_subnet(client, name, f"{name}-probe", labels))
    raise NetworkUnavailable(
        f"Docker has no free subnet for {name}; remove unused networks with `docker network prune`"
    )


def assign_addresses(subnet: ipaddress.IPv4Network, hostnames: Sequence[str]) -> dict[str, str]:
    """Assign an address to each of a job's host names, in order."""
    return {name: str(subnet[_FIRST_HOST + i]) for i, name in enumerate(hostnames)}


def _get_subnet(client: Any, name: str) -> ipaddress.IPv4Network | None:
    from docker.errors import NotFound

    try:
        network = client.inspect_network(name)
    except NotFound:
        return None
    return ipaddress.IPv4Network(network["IPAM"]["Config"][0]["Subnet"])


def _create_in_free_subnet(client: Any, name: str, probe: str, labels: Mapping[str, str]) -> None:
    from docker.errors import APIError
    from docker.types import IPAMConfig, IPAMPool

    try:
        client.create_network(probe, driver="bridge", check_duplicate=True, labels=dict(labels))
    except APIError as error:
        if error.status_code != 409:
            raise
    subnet = _get_subnet(client, probe)
    client.remove_network(probe)
    try:
        pools = [IPAMPool(subnet=str(subnet))]
        client.create_network(
            name, driver="bridge", check_duplicate=True, labels=dict(labels), ipam=IPAMConfig(pool_configs=pools)
        )
    except APIError as error:
        # 403: another job was given the subnet in between; 409: the network is there.
        if error.status_code not in (403, 409):
            raise
