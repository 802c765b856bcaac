"""Where the rules of the firewall cannot be set, the reason is known; container attacks show that they hold."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.running import RunningEmulator, custom_job, labelled, pool, until
from vertex_emulator.replicas import firewall
from vertex_emulator.replicas.firewall import Firewall

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


def of(daemon: Daemon) -> Firewall:
    def call(function: Callable[[Any], Any]) -> Any:
        return function(daemon)

    return Firewall(call, EMULATOR)


@pytest.fixture
def nft(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in for `nft` that writes its arguments and input to a file; this user is root with a `bridge9`."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "bridge9").mkdir()
    monkeypatch.setattr(firewall, "_INTERFACES", tmp_path)
    program = tmp_path / "nft"
    written = tmp_path / "written"
    program.write_text(f'#!/bin/sh\nexec >> "{written}"\necho "$@"\n[ "$1" = list ] && exit 1\ncat\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return program


def test_ordinary_user_cannot_set_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = of(Daemon())
    assert found.ensure() == found.obstacle == "the emulator does not run as root"
    assert found.mac_address("a") is None


def test_machine_without_nft_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(firewall, "_SYSTEM_FOLDERS", "/nowhere")
    assert of(Daemon()).obstacle == "this machine has no `nft`"


@pytest.mark.usefixtures("nft")
@pytest.mark.parametrize("daemon", [Daemon(name="docker-desktop"), Daemon(security=["name=seccomp", "name=rootless"])])
def test_networks_of_another_machine_are_recognized(daemon: Daemon) -> None:
    found = of(daemon)
    assert found.obstacle is None
    found.ensure()
    assert str(found.obstacle).startswith("Docker's networks are not on this machine")


@pytest.mark.usefixtures("nft")
@pytest.mark.parametrize(
    ("ipam", "gateway"),
    [
        ({"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.9"}, "172.17.0.9"),
        ({"Subnet": "172.17.0.0/16"}, "172.17.0.1"),  # before the daemon's first restart
    ],
)
def test_gateway_is_known_before_docker_tells_it(ipam: dict[str, str], gateway: str) -> None:
    assert of(Daemon(ipam=ipam)).gateway() == gateway


def test_error_of_nft_is_obstacle(nft: Path) -> None:
    nft.write_text("#!/bin/sh\necho 'Operation not permitted' >&2\nexit 1\n")
    found = of(Daemon())
    found.ensure()
    assert found.obstacle == "nft: Operation not permitted"


def test_rules_name_emulator_and_default_bridge(nft: Path) -> None:
    found = of(Daemon())
    found.ensure()
    found.ensure()
    written = (nft.parent / "written").read_text()
    assert written.startswith(f"list table inet vertex_{EMULATOR}\n-f -\ntable inet vertex_{EMULATOR}")
    assert written.count("-f -") == 1
    assert 'iifname "bridge9"' in written
    assert str(found.mac_address("a")).startswith("06:01:23:")
    assert "== 06:01:23:00:00:00" in written


def test_the_metadata_server_s_address_leads_to_the_door(nft: Path) -> None:
    found = of(Daemon())
    found.lead_home("172.17.0.1", {80: 20_001, 443: 20_002})
    assert not (nft.parent / "written").exists()
    assert found.ensure() is None
    written = (nft.parent / "written").read_text()
    assert "ip daddr 172.17.0.1 tcp dport { 20001, 20002 } accept" in written
    for line in ("tcp dport 80 dnat ip to 172.17.0.1:20001", "tcp dport 443 dnat ip to 172.17.0.1:20002"):
        assert f"== 06:01:23:00:00:00 ip daddr 169.254.169.254 {line}\n" in written


def test_a_kernel_that_leads_nobody_refuses_all_the_same(nft: Path) -> None:
    written = nft.parent / "written"
    lines = (
        '[ "$1" = list ] && exit 0',
        "rules=$(cat)",
        'case "$rules" in *"type nat"*) echo "no nat" >&2; exit 1;; esac',
        f'echo "$rules" > "{written}"',
    )
    nft.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    found = of(Daemon())
    found.lead_home("172.17.0.1", {80: 20_001})
    assert (found.ensure(), found.obstacle, found.ensure()) == ("nft: no nat", None, "nft: no nat")
    assert "jump refuse" in written.read_text() and "chain lead" not in written.read_text()


def test_other_ports_replace_those_before(nft: Path) -> None:
    found = of(Daemon())
    for port in (20_001, 20_001, 20_003):
        found.lead_home("172.17.0.1", {80: port})
        found.ensure()
    assert (nft.parent / "written").read_text().count("-f -") == 2


# Its packets to the machine put its addresses into the machine's ARP cache.
SCRIPT = """
import os, socket, struct, time
gateway = [line.split()[2] for line in open("/proc/net/route") if line.split()[1] == "00000000"][0]
while not os.path.exists("/gcs/arp/" + os.environ["END"]):
    with socket.socket() as connection:
        connection.settimeout(1)
        connection.connect_ex((socket.inet_ntoa(struct.pack("<L", int(gateway, 16))), 9))
    time.sleep(0.1)
"""


def create_job(emulator: RunningEmulator, file_that_ends_it: str) -> str:
    return emulator.create(custom_job(pool(SCRIPT, env=[{"name": "END", "value": file_that_ends_it}])))


def has_arp_entry(mac_address: str) -> bool:
    return mac_address in Path("/proc/net/arp").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="the firewall's rules, which need the MAC addresses, need root")
def test_machine_forgets_mac_address_of_container(shared: RunningEmulator) -> None:
    folder = shared.data / "gcs" / "arp"
    folder.mkdir()
    other = create_job(shared, "end")  # without any container, Docker's bridge is down and has no entries
    name = create_job(shared, "go")
    for job in (other, name):
        shared.in_state(job, "JOB_STATE_RUNNING")
    (container,) = labelled(name)
    inspect = ["docker", "inspect", "--format", "{{.NetworkSettings.MacAddress}}", container]
    mac_address = subprocess.run(inspect, capture_output=True, text=True, check=True).stdout.strip()
    assert mac_address.startswith("06:")
    until(lambda: has_arp_entry(mac_address), "the container's entry")
    (folder / "go").touch()
    shared.ended(name)
    until(lambda: not labelled(name), "removal of the container")
    until(lambda: not has_arp_entry(mac_address), "removal of its entry")
    (folder / "end").touch()
    assert shared.ended(other)["state"] == "JOB_STATE_SUCCEEDED"
