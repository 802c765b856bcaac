"""Hosts in URLs and headers, and which of them are this machine."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit


def find_host_of_bare_url(url: str) -> str | None:
    """Return the host in a URL or in `//host:port`, None if there is none."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return None if parts.username is not None or parts.path else parts.hostname


def is_loopback_host(host: str) -> bool:
    """Return whether a host name or an address always means this machine."""
    address = parse_ip_address_or_none(host)
    return host == "localhost" if address is None else address.is_loopback


def parse_ip_address_or_none(host: str) -> Any:
    """Return an IPv4 or IPv6 address; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
