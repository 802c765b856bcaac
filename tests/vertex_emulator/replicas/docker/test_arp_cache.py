"""This machine's ARP cache while a job runs and after it."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.vertex_emulator.running import RunningEmulator, custom_job, labelled, pool, until

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
def test_the_machine_forgets_the_mac_address_of_a_container(shared: RunningEmulator) -> None:
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
