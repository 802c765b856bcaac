"""Addresses of containers: the bodies of requests to daemons of two versions."""

import docker
import pytest

from vertex_emulator.replicas import containers

MAC = "06:ab:cd:00:00:01"


@pytest.mark.parametrize(
    ("version", "in_container", "in_endpoint"), [("1.41", MAC, None), ("1.44", None, MAC), ("1.51", None, MAC)]
)
def test_mac_address_stands_where_daemon_reads_it(version: str, in_container: str | None, in_endpoint: str) -> None:
    client = docker.APIClient(version=version)
    options = containers.endpoint_options(client, "net", "172.18.0.2", MAC)
    client.close()
    assert options.get("mac_address") == in_container
    endpoint = options["networking_config"]["EndpointsConfig"]["net"]
    assert endpoint["IPAMConfig"] == {"IPv4Address": "172.18.0.2"}
    assert endpoint.get("MacAddress") == in_endpoint


def test_container_without_network_has_no_addresses() -> None:
    client = docker.APIClient(version="1.41")
    assert containers.endpoint_options(client, "none", None, MAC) == {}
    client.close()


@pytest.mark.parametrize("version", ["1.41", "1.44"])
def test_docker_chooses_mac_address_that_is_not_given(version: str) -> None:
    client = docker.APIClient(version=version)
    options = containers.endpoint_options(client, "bridge", None, None)
    client.close()
    assert "mac_address" not in options
    assert "MacAddress" not in options.get("networking_config", {}).get("EndpointsConfig", {}).get("bridge", {})
