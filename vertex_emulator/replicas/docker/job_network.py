"""The network of a job: a bridge on which the names of all replicas resolve before any of them runs.

Docker's own names resolve only once a container runs, but on Vertex a replica may look for its peers as soon as it
starts. So addresses are fixed when containers are created, and every container gets the whole list as /etc/hosts.
"""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vertex_emulator.errors import NetworkUnavailable
from vertex_emulator.replicas.docker.docker_errors import ignore_api_errors

_TRIES = 5
_FIRST_HOST = 2  # the first address is the gateway's

Call = Callable[[Callable[[Any], Any]], Any]


def get_or_create_subnet(call_docker: Call, network_name: str, labels: Mapping[str, str]) -> ipaddress.IPv4Network:
    """Create a job's network unless it exists; return its subnet. `call_docker` runs a function on a Docker client.

    Docker accepts fixed addresses only in a requested subnet, and only Docker knows which subnets are free. So Docker
    chooses the subnet of a first network, which is then replaced by one that requests the same subnet.
    """
    for _ in range(_TRIES):
        known: ipaddress.IPv4Network | None = call_docker(lambda client: _get_subnet(client, network_name))
        if known is not None:
            return known
        call_docker(lambda client: _create_network_ignoring_conflicts(client, network_name, labels))
    raise NetworkUnavailable(
        f"Docker has no free subnet for {network_name}; remove unused networks with `docker network prune`"
    )


def assign_addresses(subnet: ipaddress.IPv4Network, hostnames: Sequence[str]) -> dict[str, str]:
    """Assign an address to each of a job's host names, in order."""
    return {name: str(subnet[_FIRST_HOST + i]) for i, name in enumerate(hostnames)}


def _get_subnet(client: Any, network_name: str) -> ipaddress.IPv4Network | None:
    from docker.errors import NotFound

    try:
        network = client.inspect_network(network_name)
    except NotFound:
        return None
    return ipaddress.IPv4Network(network["IPAM"]["Config"][0]["Subnet"])


def _create_network_ignoring_conflicts(client: Any, network_name: str, labels: Mapping[str, str]) -> None:
    from docker.types import IPAMConfig, IPAMPool

    probe_name = f"{network_name}-probe"
    options = {"driver": "bridge", "check_duplicate": True, "labels": dict(labels)}
    with ignore_api_errors(409):
        client.create_network(probe_name, **options)
    subnet = _get_subnet(client, probe_name)
    client.remove_network(probe_name)
    with ignore_api_errors(403, 409):  # 403: another job has got the subnet meanwhile; 409: the network exists
        client.create_network(network_name, **options, ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=str(subnet))]))
