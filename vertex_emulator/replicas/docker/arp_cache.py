"""This machine's ARP cache, in which containers that are gone keep their MAC addresses.

Docker 20.10 does not announce the addresses of a new container. It derives MAC addresses from IP addresses instead: a
container with the IP address of an earlier one has its MAC address, too. The emulator's containers have MAC addresses
of their own, and whatever container got the IP address of one next could not be reached from this machine for 7 to more
than 60 seconds (measured).
"""

import contextlib
import fcntl
import socket
import struct
from pathlib import Path

_TABLE = Path("/proc/net/arp")
_DELETE_REQUEST = 0x8953  # SIOCDARP of arp(7)
_REQUEST = struct.Struct("H2x4s8x16xi16x16s")  # struct arpreq: protocol address, hardware address, flags, mask, device


def remove_arp_entries_if_possible(mac_address: str) -> None:
    """Remove the entries of a MAC address; needs root and Linux."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for line in _TABLE.read_text().splitlines()[1:]:
            ip_address, _, _, found, _, device = line.split()
            if found == mac_address:
                request = _REQUEST.pack(socket.AF_INET, socket.inet_aton(ip_address), 0, device.encode())
                fcntl.ioctl(control, _DELETE_REQUEST, request)
