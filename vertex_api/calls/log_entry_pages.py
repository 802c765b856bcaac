"""Entries of Cloud Logging, whose pages may end early."""

from collections.abc import Callable, Mapping
from typing import Any

_MAX_PAGES = 20
"""A search over more is given up, so that nobody waits for it without end."""


def collect_log_entries(
    send_query: Callable[[Mapping[str, Any]], Mapping[str, Any]], query: Mapping[str, Any], count: int
) -> list[Mapping[str, Any]]:
    """Return the first `count` entries that match a query, which `send_query` sends for one page after the other.

    A page with a `nextPageToken` may have fewer entries than asked for, even none: the search "did not have time to
    search all the possible log entries" (Google's page on entries.list of Cloud Logging).
    """
    entries: list[Mapping[str, Any]] = []
    query = {**query, "pageSize": count}
    for _ in range(_MAX_PAGES):
        page = send_query(query)
        found = page.get("entries")
        entries += [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []
        if len(entries) >= count or not page.get("nextPageToken"):
            break
        query["pageToken"] = page["nextPageToken"]
    return entries[:count]
