"""The status of a container, from what Docker says about its state."""

from collections.abc import Mapping
from typing import Any

from vertex_emulator.replicas.executor_protocol import Phase, ReplicaStatus
from vertex_emulator.times import parse_time

_PHASES: Mapping[str, Phase] = {"created": "created", "exited": "exited", "dead": "exited", "removing": "exited"}


def build_replica_status(state: Mapping[str, Any]) -> ReplicaStatus:
    """Build a replica's status from the `State` of its inspected container."""
    phase = _PHASES.get(state["Status"], "running")
    return ReplicaStatus(
        phase=phase,
        exit_code=state["ExitCode"],
        out_of_memory=state["OOMKilled"],
        started=None if phase == "created" else parse_time(state["StartedAt"]),
        finished=parse_time(state["FinishedAt"]) if phase == "exited" else None,
    )
