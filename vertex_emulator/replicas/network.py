"""The network of a job: a bridge on which the names of all replicas resolve before any of them runs.

Docker's own names resolve only once a container runs, but on Vertex a replica may look for its peers as soon as it
starts. So addresses are fixed when containers are created, and every container gets the whole list as /etc/hosts.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from vertex_emulator.errors import NetworkUnavailable
from vertex_emulator.replicas import daemon

_TRIES = 5
_FIRST_HOST = 2  # the first address is the gateway's


def ensure(call: daemon.Call, name: str, labels: Mapping[str, str], egress: bool) -> ipaddress.IPv4Network:
    """Create a job's network unless it exists; return its subnet.

    Without `egress`, containers on it reach each other only. Raises NetworkUnavailable.

    Docker accepts fixed addresses only in a requested subnet, and only Docker knows which subnets are free. So Docker
    chooses the subnet of a first network, which is then replaced by one that requests the same subnet.
    """
    options = {"driver": "bridge", "check_duplicate": True, "labels": dict(labels), "internal": not egress}
    for _ in range(_TRIES):
        known: ipaddress.IPv4Network | None = call(lambda client: _subnet(client, name))
        if known is not None:
            return known
        call(lambda client: _create(client, name, options))
    raise _no_subnet(name)


def _subnet(client: Any, name: str) -> ipaddress.IPv4Network | None:
    from docker.errors import NotFound

    try:
        network = client.inspect_network(name)
    except NotFound:
        return None
    return ipaddress.IPv4Network(network["IPAM"]["Config"][0]["Subnet"])


def _create(client: Any, name: str, options: Mapping[str, Any]) -> None:
    """Create a network in a subnet that Docker finds free; do nothing if its name or subnet is taken meanwhile."""
    from docker.errors import APIError
    from docker.types import IPAMConfig, IPAMPool

    probe = f"{name}-probe"
    try:
        client.create_network(probe, **options)
    except APIError as error:
        if "address pool" in daemon.error_text(error):
            raise _no_subnet(name) from error
        if error.status_code != 409:
            raise
    subnet = _subnet(client, probe)
    client.remove_network(probe)
    with daemon.ignore(403, 409):  # 403: another job has got the subnet meanwhile; 409: the network exists
        client.create_network(name, **options, ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=str(subnet))]))


def _no_subnet(name: str) -> NetworkUnavailable:
    advice = "remove unused networks with `docker network prune`"
    return NetworkUnavailable(f"Docker has no free subnet for {name}; {advice}")


def addresses(subnet: ipaddress.IPv4Network, hostnames: Sequence[str]) -> dict[str, str]:
    """Assign an address to each of a job's host names, in order."""
    return {name: str(subnet[_FIRST_HOST + i]) for i, name in enumerate(hostnames)}


def endpoint_options(client: Any, network: str, address: str | None, mac_address: str | None) -> dict[str, Any]:
    """Arguments of the SDK's `create_container` that give a container its addresses on a network."""
    from docker.utils import version_gte

    if network == "none":
        return {}
    if version_gte(client.api_version, "1.44"):
        endpoint = client.create_endpoint_config(ipv4_address=address, mac_address=mac_address)
        return {"networking_config": client.create_networking_config({network: endpoint})}
    options: dict[str, Any] = {} if mac_address is None else {"mac_address": mac_address}
    if address is not None:
        endpoint = client.create_endpoint_config(ipv4_address=address)
        options["networking_config"] = client.create_networking_config({network: endpoint})
    return options
