"""Rules of this machine's firewall that keep containers from its services and from metadata servers.

Docker lets a container connect to every address of the machine, its bridge's among them, to all containers on the
default bridge, and to the addresses where clouds give a machine its credentials, link-local ones and others. The rules
know an emulator's containers by the first half of their MAC addresses, which a container without NET_ADMIN and NET_RAW
cannot change. So a job costs no time, as a network of its own would. They are a table of their own, which nothing else
changes.
"""

import contextlib
import fcntl
import hashlib
import ipaddress
import logging
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vertex_emulator.replicas.daemon import Call

_INTERFACES = Path("/sys/class/net")
_SYSTEM_FOLDERS = "/usr/sbin:/sbin"  # not on every PATH
_CHECK_SECONDS = 30.0  # somebody may have flushed all rules of the machine
_LIMIT_SECONDS = 20.0
_ARP_TABLE = Path("/proc/net/arp")
_ARP_DELETE = 0x8953  # SIOCDARP of arp(7)
_ARP_REQUEST = struct.Struct("H2x4s8x16xi16x16s")  # arpreq: protocol address, hardware address, flags, mask, device
METADATA_SERVERS = (
    "169.254.0.0/16",  # link-local (RFC 3927): AWS, Azure, Google Cloud, Oracle, DigitalOcean, Hetzner, OpenStack
    "168.63.129.16",  # Azure, "What is IP address 168.63.129.16?": the goal state with certificates and extensions
    "100.100.100.200",  # Alibaba Cloud, "Instance metadata"
    "192.0.0.192",  # Oracle Cloud Infrastructure Classic, "Retrieving Instance Metadata"
    "fe80::/10",  # link-local (RFC 4291)
    "fd00:ec2::254",  # AWS, "Use the Instance Metadata Service to access instance metadata"
    "fd20:ce::254",  # Google Cloud, "About VM metadata", of machines with IPv6 alone
    "fd00:c1::a9fe:a9fe",  # Oracle Cloud Infrastructure, "Getting Instance Metadata"
    "fd00:42::42",  # Scaleway, "How to use the Instance metadata service"
)
"""Where clouds serve machines their metadata. All but the name servers at these addresses is refused."""
# `reject` and not `drop`: Google's libraries look for a metadata server, and would wait for an answer. Answers to
# connections from the machine pass, and so does DNS: the name server of a machine may be itself or link-local.
# A connection whose destination was changed (dnat) is to a port that some container publishes on the machine.
_RULES = """\
table inet {table} {{}}
delete table inet {table}
table inet {table} {{
  chain refuse {{
    ct state established,related return
    meta l4proto {{ tcp, udp }} th dport 53 return
    reject
  }}
  chain input {{
    type filter hook input priority -10;
    {admitted}
    ether saddr & ff:ff:ff:00:00:00 == {prefix}:00:00:00 jump refuse
  }}
  chain forward {{
    type filter hook forward priority -10;
    ether saddr & ff:ff:ff:00:00:00 != {prefix}:00:00:00 return
    ip daddr {{ {ipv4} }} jump refuse
    ip6 daddr {{ {ipv6} }} jump refuse
    ct status dnat jump refuse
    iifname "{bridge}" oifname "{bridge}" jump refuse
  }}
{led}}}
"""
_LEAD = """\
  chain lead {{
    type nat hook prerouting priority -100;
    {led}
  }}
"""
HOME = "169.254.169.254"
"""Where Compute Engine serves a machine its metadata ("View and query VM metadata"), and an emulator its containers."""
_log = logging.getLogger("vertex_emulator.docker")


class Firewall:
    """The rules for the containers of one emulator."""

    def __init__(self, call: Call, emulator_id: str) -> None:
        self._call = call
        self._table = f"vertex_{emulator_id}"
        # Docker's own addresses begin with 02; 06 is for local use too.
        self._mac_prefix = f"06:{emulator_id[0:2]}:{emulator_id[2:4]}"
        self._lock = threading.Lock()
        self._next_check = 0.0
        self._admitted, self._led, self._is_outdated = "", "", False
        self._not_led: str | None = None
        self.obstacle = _missing_means()
        """Why the rules cannot be set, None if they can; before the first job, as far as that is known."""

    def mac_address(self, container_name: str) -> str | None:
        """Return the MAC address by which the rules know a container; None if this process can set no rules."""
        if _missing_means() is not None:
            return None
        digest = hashlib.sha256(container_name.encode()).hexdigest()
        return ":".join([self._mac_prefix, digest[0:2], digest[2:4], digest[4:6]])

    def gateway(self) -> str | None:
        """Find the address of this machine on Docker's default bridge; None if that is not on this machine."""
        if not self._is_bridge_here():
            return None
        config = self._call(lambda client: client.inspect_network("bridge"))["IPAM"]["Config"][0]
        # Docker 20.10 does not tell it until its first restart; it has made the bridge itself then, with this address.
        return str(config.get("Gateway") or ipaddress.IPv4Network(config["Subnet"])[1])

    def lead_home(self, address: str, ports: Mapping[int, int]) -> None:
        """Set the ports of this machine, and no others, that `ensure` opens to containers when it next runs.

        `ports` has, by port, the one at which containers that connect to HOME are answered.
        """
        container = f"ether saddr & ff:ff:ff:00:00:00 == {self._mac_prefix}:00:00:00"
        admitted = f"ip daddr {address} tcp dport {{ {', '.join(map(str, ports.values()))} }} accept"
        led = [f"{container} ip daddr {HOME} tcp dport {at} dnat ip to {address}:{port}" for at, port in ports.items()]
        with self._lock:
            if admitted != self._admitted:
                self._admitted, self._led, self._is_outdated, self._next_check = admitted, "\n    ".join(led), True, 0.0

    def ensure(self) -> str | None:
        """Add the rules unless they are there; return why they cannot be set, or lead nobody to HOME."""
        with self._lock:
            if missing := _missing_means():
                return missing
            if time.monotonic() < self._next_check:
                return self.obstacle or self._not_led
            before, self.obstacle = self.obstacle, self._add()
            self._next_check = time.monotonic() + _CHECK_SECONDS
            if self.obstacle not in (None, before):
                _log.warning("containers can reach services of this machine: %s", self.obstacle)
            return self.obstacle or self._not_led

    def remove(self) -> None:
        """Remove the rules if they are there."""
        if _missing_means() is None:
            with self._lock:
                _nft("delete", "table", "inet", self._table)
                self._next_check = 0.0

    def _add(self) -> str | None:
        if not self._is_bridge_here():
            return "Docker's networks are not on this machine but in Docker's own (rootless, Docker Desktop or remote)"
        if not self._is_outdated and _nft("list", "table", "inet", self._table) is None:
            return None
        bridge = self._call(_bridge)
        obstacle = _nft("-f", "-", input_text=self._rules(bridge, self._led))
        self._not_led = obstacle
        if obstacle is not None and self._led:
            # A kernel may lack what changes destinations. What refuses is set all the same.
            obstacle = _nft("-f", "-", input_text=self._rules(bridge, ""))
        self._is_outdated = obstacle is not None
        return obstacle

    def _rules(self, bridge: str, led: str) -> str:
        ipv4, ipv6 = (
            ", ".join(each for each in METADATA_SERVERS if (":" in each) == is_ipv6) for is_ipv6 in (False, True)
        )
        known = {"table": self._table, "prefix": self._mac_prefix, "bridge": bridge}
        lead = _LEAD.format(led=led) if led else ""
        return _RULES.format(**known, admitted=self._admitted, led=lead, ipv4=ipv4, ipv6=ipv6)

    def _is_bridge_here(self) -> bool:
        bridge = self._call(_bridge)
        return bool(self._call(_is_local) and (_INTERFACES / bridge).exists())


def _bridge(client: Any) -> str:
    return str(client.inspect_network("bridge")["Options"].get("com.docker.network.bridge.name", "docker0"))


def _is_local(client: Any) -> bool:
    info = client.info()
    return info["Name"] == os.uname().nodename and "name=rootless" not in (info.get("SecurityOptions") or [])


def _missing_means() -> str | None:
    if os.geteuid() != 0:
        return "the emulator does not run as root"
    return None if _nft_path() else "this machine has no `nft`"


def _nft_path() -> str | None:
    return shutil.which("nft") or shutil.which("nft", path=_SYSTEM_FOLDERS)


def _nft(*arguments: str, input_text: str = "") -> str | None:
    """Run `nft`; return the first line of its error, None if it succeeds."""
    command = [_nft_path() or "nft", *arguments]
    try:
        done = subprocess.run(
            command, input=input_text, capture_output=True, text=True, timeout=_LIMIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"nft: {error}"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return f"nft: {lines[0] if lines else f'exit code {done.returncode}'}"


def forget_mac_address(mac_address: str) -> None:
    """Remove the entries of a container's MAC address from this machine's ARP cache; needs root and Linux.

    Docker 20.10 does not announce the addresses of a new container. It derives MAC addresses from IP addresses instead:
    a container with the IP address of an earlier one has its MAC address, too. The emulator's containers have MAC
    addresses of their own, and whatever container got the IP address of one next could not be reached from this machine
    for 7 to more than 60 seconds (measured).
    """
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for line in _ARP_TABLE.read_text().splitlines()[1:]:
            ip_address, _, _, found, _, device = line.split()
            if found == mac_address:
                request = _ARP_REQUEST.pack(socket.AF_INET, socket.inet_aton(ip_address), 0, device.encode())
                fcntl.ioctl(control, _ARP_DELETE, request)
