"""The daemon's events of containers that end."""

import time
from collections.abc import Callable, Iterator

from vertex_emulator.replicas.docker.container_labels import LABEL
from vertex_emulator.replicas.docker.docker_client_creation import create_docker_client
from vertex_emulator.replicas.docker.docker_error_handling import translate_connection_errors

_OVERLAP_SECONDS = 10


def iterate_job_ids_of_container_exits(emulator_id: str, on_begin: Callable[[], None]) -> Iterator[str]:
    """Yield the job of each container of an emulator that ends; `on_begin` is called once none is missed.

    Jobs of containers that ended shortly before come too: the daemon replies to the request before it collects events,
    and keeps some of those that it has sent to nobody. Raises ExecutorUnavailable.
    """
    watched = {"label": [f"{LABEL}={emulator_id}"], "type": ["container"], "event": ["die", "oom"]}
    # A client of its own: the stream occupies it, and no read on it may time out.
    client = create_docker_client(timeout_seconds=None)
    try:
        with translate_connection_errors():
            events = client.events(since=int(time.time()) - _OVERLAP_SECONDS, filters=watched, decode=True)
        on_begin()
        with translate_connection_errors():
            for event in events:
                yield event["Actor"]["Attributes"][f"{LABEL}.job"]
    finally:
        client.close()
