"""Fields of a job that this machine cannot honour: refused by name, or accepted with a line in the job's log.

docs/fidelity.md lists every field with its status; this is the part of it that a job's owner is told.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.catalog.reduction_server import is_reduction_server
from vertex_api.kinds import Kind
from vertex_api.validation.shape import FieldProblem

MOST_REPLICAS = 100

Found = tuple[tuple[str | int, ...], Any]

REFUSED = {
    "workerPoolSpecs.nfsMounts": "the emulator mounts no NFS shares: read from /gcs instead",
    "workerPoolSpecs.lustreMounts": "the emulator mounts no Lustre file systems: read from /gcs instead",
    "models": "the emulator runs no Google-provided jobs that take models",
}
_NO_REDUCTION = "on this machine Reduction Server is not started, and the workers reduce among themselves"
NOTED = {
    "network": "containers use a network of this machine",
    "pscInterfaceConfig": "containers use a network of this machine",
    "reservedIpRanges": "containers use a network of this machine",
    "serviceAccount": "containers have no Google identity; only CLOUD_ML_JOB_SA is set",
    "tensorboard": "nothing is uploaded; only AIP_TENSORBOARD_RESOURCE_NAME is set",
    "enableWebAccess": "there is no web shell; use `docker exec`",
    "enableDashboardAccess": "there is no dashboard",
    "persistentResourceId": "the job runs on this machine, not on the persistent resource",
    "protectedArtifactLocationId": "artifacts stay on this machine",
    "encryptionSpec": "nothing is encrypted",
}


def refusals(kind: Kind, job: Mapping[str, Any]) -> list[FieldProblem]:
    """A problem for each field of a canonical job that is refused."""
    return [FieldProblem(path, REFUSED[name]) for name, (path, _) in _present(kind, job) if name in REFUSED]


def oversized(kind: Kind, job: Mapping[str, Any]) -> list[FieldProblem]:
    """A problem for each pool whose number of replicas no machine like this can run."""
    field = kind.spec_field
    return [
        FieldProblem(
            (field, "workerPoolSpecs", index, "replicaCount"),
            f"{pool['replicaCount']} replicas: the emulator runs 1 to {MOST_REPLICAS} in a pool",
        )
        for index, pool in enumerate(job[field]["workerPoolSpecs"])
        if not 1 <= pool.get("replicaCount", 1) <= MOST_REPLICAS
    ]


def notes(kind: Kind, job: Mapping[str, Any]) -> list[str]:
    """A line for each field that is accepted and not honoured in full, in the order of the table."""
    present = {name: value for name, (_, value) in _present(kind, job)}
    found = [f"{name}: on this machine {note}." for name, note in NOTED.items() if present.get(name)]
    pools = enumerate(job[kind.spec_field]["workerPoolSpecs"])
    return found + [f"workerPoolSpecs[{index}]: {_NO_REDUCTION}." for index, pool in pools if is_reduction_server(pool)]


def _present(kind: Kind, job: Mapping[str, Any]) -> Iterator[tuple[str, Found]]:
    """Each field that is set, under its name as the tables write it: without indices, relative to the job's spec."""
    for path, value in _walk(job, ()):
        name = ".".join(str(part) for part in path if not isinstance(part, int))
        yield name.removeprefix(f"{kind.spec_field}."), (path, value)


def _walk(value: Any, path: tuple[str | int, ...]) -> Iterator[Found]:
    children: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(value, Mapping):
        children = iter(value.items())
    elif isinstance(value, list):
        children = iter(enumerate(value))
    for key, child in children:
        if not isinstance(key, int):
            yield (*path, key), child
        yield from _walk(child, (*path, key))
