"""Rules of this machine's firewall that keep containers from its services and from link-local addresses.

Docker lets a container connect to every address of the machine, its bridge's among them, to all containers on the
default bridge, and to 169.254.0.0/16, where clouds give a machine its credentials. The rules know an emulator's
containers by the first half of their MAC addresses, which a container without NET_ADMIN and NET_RAW cannot change. So a
job costs no time, as a network of its own would. They are a table of their own, which nothing else changes.
"""

import hashlib
import ipaddress
import logging
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_INTERFACES = Path("/sys/class/net")
_SYSTEM_FOLDERS = "/usr/sbin:/sbin"  # not on every PATH
_CHECK_SECONDS = 30.0  # somebody may have flushed all rules of the machine
_LIMIT_SECONDS = 20.0
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
    ip daddr 169.254.0.0/16 jump refuse
    ct status dnat jump refuse
    iifname "{bridge}" oifname "{bridge}" jump refuse
  }}
}}
"""
_log = logging.getLogger("vertex_emulator.docker")

Call = Callable[[Callable[[Any], Any]], Any]


class ContainerIsolationFirewall:
    """The rules for the containers of one emulator; `call_docker` runs a function on a Docker client."""

    def __init__(self, call_docker: Call, emulator_id: str) -> None:
        self._call_docker = call_docker
        self._table = f"vertex_{emulator_id}"
        # Docker's own addresses begin with 02; 06 is for local use too.
        self._mac_prefix = f"06:{emulator_id[0:2]}:{emulator_id[2:4]}"
        self._lock = threading.Lock()
        self._next_check = 0.0
        self._admitted, self._is_outdated = "", False
        self._obstacle = _describe_missing_root_or_nft_or_none()

    def build_mac_address_or_none(self, container_name: str) -> str | None:
        """Return the MAC address by which the rules know a container; None if this process can set no rules."""
        if _describe_missing_root_or_nft_or_none() is not None:
            return None
        digest = hashlib.sha256(container_name.encode()).hexdigest()
        return ":".join([self._mac_prefix, digest[0:2], digest[2:4], digest[4:6]])

    def describe_obstacle_or_none(self) -> str | None:
        """Return why the rules cannot be set, None if they can; before the first job, as far as that is known."""
        return self._obstacle

    def find_gateway_address_or_none(self) -> str | None:
        """Find the address of this machine on Docker's default bridge; None if that is not on this machine."""
        if not self._is_default_bridge_on_this_machine():
            return None
        config = self._call_docker(lambda client: client.inspect_network("bridge"))["IPAM"]["Config"][0]
        # Docker 20.10 does not tell it until its first restart; it has made the bridge itself then, with this address.
        return str(config.get("Gateway") or ipaddress.IPv4Network(config["Subnet"])[1])

    def set_port_to_open_to_containers(self, address: str, port: int) -> None:
        """Set the one port of this machine that `add_rules_if_possible` opens to containers when it next runs."""
        rule = f"ip daddr {address} tcp dport {port} accept"
        with self._lock:
            if rule != self._admitted:
                self._admitted, self._is_outdated, self._next_check = rule, True, 0.0

    def add_rules_if_possible(self) -> None:
        """Add the rules unless they are there or cannot be set."""
        with self._lock:
            if _describe_missing_root_or_nft_or_none() is not None or time.monotonic() < self._next_check:
                return
            before, self._obstacle = self._obstacle, self._add_missing_rules_or_describe_obstacle()
            self._next_check = time.monotonic() + _CHECK_SECONDS
            if self._obstacle not in (None, before):
                _log.warning("containers can reach services of this machine: %s", self._obstacle)

    def remove_rules(self) -> None:
        """Remove the rules if they are there."""
        if _describe_missing_root_or_nft_or_none() is None:
            with self._lock:
                _run_nft_and_get_error_or_none("delete", "table", "inet", self._table)
                self._next_check = 0.0

    def _add_missing_rules_or_describe_obstacle(self) -> str | None:
        if not self._is_default_bridge_on_this_machine():
            return "Docker's networks are not on this machine but in Docker's own (rootless, Docker Desktop or remote)"
        if not self._is_outdated and _run_nft_and_get_error_or_none("list", "table", "inet", self._table) is None:
            return None
        bridge = self._call_docker(_get_default_bridge_name)
        rules = _RULES.format(table=self._table, prefix=self._mac_prefix, bridge=bridge, admitted=self._admitted)
        obstacle = _run_nft_and_get_error_or_none("-f", "-", input_text=rules)
        self._is_outdated = obstacle is not None
        return obstacle

    def _is_default_bridge_on_this_machine(self) -> bool:
        bridge = self._call_docker(_get_default_bridge_name)
        return bool(self._call_docker(_is_daemon_of_this_machine) and (_INTERFACES / bridge).exists())


def _get_default_bridge_name(client: Any) -> str:
    return str(client.inspect_network("bridge")["Options"].get("com.docker.network.bridge.name", "docker0"))


def _is_daemon_of_this_machine(client: Any) -> bool:
    info = client.info()
    return info["Name"] == os.uname().nodename and "name=rootless" not in (info.get("SecurityOptions") or [])


def _describe_missing_root_or_nft_or_none() -> str | None:
    if os.geteuid() != 0:
        return "the emulator does not run as root"
    return None if _find_nft_path() else "this machine has no `nft`"


def _find_nft_path() -> str | None:
    return shutil.which("nft") or shutil.which("nft", path=_SYSTEM_FOLDERS)


def _run_nft_and_get_error_or_none(*arguments: str, input_text: str = "") -> str | None:
    """Run `nft`; return the first line of its error, None if it succeeds."""
    command = [_find_nft_path() or "nft", *arguments]
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
