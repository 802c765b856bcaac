"""Where the rules of the firewall cannot be set, the reason is known; container attacks show that they hold."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vertex_emulator.replicas.docker import container_isolation_firewall
from vertex_emulator.replicas.docker.container_isolation_firewall import ContainerIsolationFirewall

EMULATOR = "0123456789ab"


class Daemon:
    """What the firewall asks a daemon."""

    def __init__(
        self, name: str = os.uname().nodename, security: list[str] | None = None, ipam: dict[str, str] | None = None
    ) -> None:
        self._info = {"Name": name, "SecurityOptions": security}
        self._ipam = ipam

    def info(self) -> Any:
        return self._info

    def inspect_network(self, _name: str) -> Any:
        return {"Options": {"com.docker.network.bridge.name": "bridge9"}, "IPAM": {"Config": [self._ipam]}}


def firewall(daemon: Daemon) -> ContainerIsolationFirewall:
    def call(function: Callable[[Any], Any]) -> Any:
        return function(daemon)

    return ContainerIsolationFirewall(call, EMULATOR)


@pytest.fixture
def nft(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in for `nft` that writes its arguments and input to a file; this user is root with a `bridge9`."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "bridge9").mkdir()
    monkeypatch.setattr(container_isolation_firewall, "_INTERFACES", tmp_path)
    program = tmp_path / "nft"
    written = tmp_path / "written"
    program.write_text(f'#!/bin/sh\necho "$@" >> {written}\n[ "$1" = list ] && exit 1\ncat >> {written}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return program


def test_an_ordinary_user_cannot_set_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = firewall(Daemon())
    found.add_rules_if_possible()
    assert found.describe_obstacle_or_none() == "the emulator does not run as root"
    assert found.build_mac_address_or_none("a") is None


def test_a_machine_without_nft_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(container_isolation_firewall, "_SYSTEM_FOLDERS", "/nowhere")
    assert firewall(Daemon()).describe_obstacle_or_none() == "this machine has no `nft`"


@pytest.mark.usefixtures("nft")
@pytest.mark.parametrize("daemon", [Daemon(name="docker-desktop"), Daemon(security=["name=seccomp", "name=rootless"])])
def test_networks_of_another_machine_are_recognized(daemon: Daemon) -> None:
    found = firewall(daemon)
    assert found.describe_obstacle_or_none() is None
    found.add_rules_if_possible()
    assert str(found.describe_obstacle_or_none()).startswith("Docker's networks are not on this machine")


@pytest.mark.usefixtures("nft")
@pytest.mark.parametrize(
    ("ipam", "gateway"),
    [
        ({"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.9"}, "172.17.0.9"),
        ({"Subnet": "172.17.0.0/16"}, "172.17.0.1"),  # before the daemon's first restart
    ],
)
def test_gateway_is_known_before_docker_tells_it(ipam: dict[str, str], gateway: str) -> None:
    assert firewall(Daemon(ipam=ipam)).find_gateway_address_or_none() == gateway


def test_error_of_nft_is_the_obstacle(nft: Path) -> None:
    nft.write_text("#!/bin/sh\necho 'Operation not permitted' >&2\nexit 1\n")
    found = firewall(Daemon())
    found.add_rules_if_possible()
    assert found.describe_obstacle_or_none() == "nft: Operation not permitted"


def test_rules_name_emulator_and_default_bridge(nft: Path) -> None:
    found = firewall(Daemon())
    found.add_rules_if_possible()
    found.add_rules_if_possible()
    written = (nft.parent / "written").read_text()
    assert written.startswith(f"list table inet vertex_{EMULATOR}\n-f -\ntable inet vertex_{EMULATOR}")
    assert written.count("-f -") == 1
    assert 'iifname "bridge9"' in written
    assert str(found.build_mac_address_or_none("a")).startswith("06:01:23:")
    assert "== 06:01:23:00:00:00" in written
