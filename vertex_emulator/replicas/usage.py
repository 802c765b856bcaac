"""Readings of what a container uses: those that Docker publishes once a second while it runs."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_emulator.database.usage import Usage
from vertex_emulator.replicas import daemon

# Version 1 of control groups counts the container's own group, and with those below it.
_FILE_CACHE = ("total_inactive_file", "inactive_file")


def parse(stats: Mapping[str, Any]) -> Usage | None:
    """Read a frame of Docker's stats; None once the container does not run.

    Memory is without the cache of files that the kernel drops when somebody needs the room, as `docker stats` counts.
    """
    memory = stats.get("memory_stats") or {}
    if "usage" not in memory:
        return None
    counters = memory.get("stats") or {}
    cache = next((counters[key] for key in _FILE_CACHE if key in counters), 0)
    networks = (stats.get("networks") or {}).values()
    return Usage(
        peak_memory=max(memory["usage"] - cache, 0),
        memory_limit=memory["limit"],
        cpu=stats["cpu_stats"]["cpu_usage"]["total_usage"],
        received=sum(each["rx_bytes"] for each in networks),
        sent=sum(each["tx_bytes"] for each in networks),
    )


def watch(client: Any, container: str) -> Iterator[Usage]:
    """Yield readings of a container, about one a second, until it ends. Raises ExecutorUnavailable.

    The client's reads may not time out: a machine under load publishes late.
    """
    with daemon.ignore(404, 409), daemon.translate_errors():
        frames = client.stats(container, stream=True, decode=True)
        for frame in frames:
            reading = parse(frame)
            if reading is None:
                frames.close()
                return
            yield reading
