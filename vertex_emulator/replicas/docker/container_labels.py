"""The labels that tell whose a container or network is."""

from collections.abc import Mapping

from vertex_emulator.database.records import Replica

LABEL = "vertex-training.emulator"
"""The label with the emulator's id; others begin with it."""


def build_replica_labels(replica: Replica) -> dict[str, str]:
    """Build the labels that tell a replica from others of its job."""
    return {
        f"{LABEL}.pool": str(replica.pool),
        f"{LABEL}.replica": str(replica.index),
        f"{LABEL}.attempt": str(replica.attempt),
    }


def build_replica_from_labels(labels: Mapping[str, str]) -> Replica:
    """Build the replica that a container's labels name."""
    return Replica(*(int(labels[f"{LABEL}.{part}"]) for part in ("pool", "replica", "attempt")))
