"""Fields of a job that the emulator does not support: rejected, or approximated with a warning in the job's log.

docs/fidelity.md lists every field with its status.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vertex_api.jobspec import is_reduction_server
from vertex_api.names import Kind
from vertex_api.validation.shape import FieldProblem

MAX_REPLICAS = 100
REJECTED_FIELDS = {
    "models": "the emulator runs no Google-provided jobs that take models",
}
_NO_REDUCTION_SERVER = "on this machine Reduction Server is not started, and the workers reduce among themselves"
APPROXIMATED_FIELDS = {
    "network": "containers use a network of this machine",
    "pscInterfaceConfig": "containers use a network of this machine",
    "reservedIpRanges": "containers use a network of this machine",
    "serviceAccount": "containers have no Google identity; only CLOUD_ML_JOB_SA is set",
    "tensorboard": "nothing is uploaded; only AIP_TENSORBOARD_RESOURCE_NAME is set",
    "enableWebAccess": "a shell runs in a terminal: `vertex-emulator shell`, as pages at webAccessUris say",
    "enableDashboardAccess": "there is no dashboard",
    "persistentResourceId": "the job runs on this machine, not on the persistent resource",
    "protectedArtifactLocationId": "artifacts stay on this machine",
    "encryptionSpec": "nothing is encrypted",
    "workerPoolSpecs.nfsMounts": "folders of this machine are mounted: nfs/SERVER/PATH in the emulator's data folder",
    "workerPoolSpecs.lustreMounts": "folders of this machine are mounted: lustre/IP/FILESYSTEM in its data folder",
}

FieldPath = tuple[str | int, ...]


def violations(kind: Kind, job: Mapping[str, Any]) -> list[FieldProblem]:
    """The fields of a canonical job that the emulator rejects."""
    return [
        FieldProblem(path, REJECTED_FIELDS[name]) for name, path, _ in _fields(kind, job) if name in REJECTED_FIELDS
    ]


def pool_size_violations(kind: Kind, job: Mapping[str, Any]) -> list[FieldProblem]:
    """The pools with more replicas than the emulator runs."""
    field = kind.spec_field
    return [
        FieldProblem(
            (field, "workerPoolSpecs", index, "replicaCount"),
            f"{pool['replicaCount']} replicas: the emulator runs 1 to {MAX_REPLICAS} in a pool",
        )
        for index, pool in enumerate(job[field]["workerPoolSpecs"])
        if not 1 <= pool.get("replicaCount", 1) <= MAX_REPLICAS
    ]


def warnings(kind: Kind, job: Mapping[str, Any]) -> list[str]:
    """A warning for each field that is only approximated, in the order of the table."""
    present = {name: value for name, _, value in _fields(kind, job)}
    found = [f"{name}: on this machine {note}." for name, note in APPROXIMATED_FIELDS.items() if present.get(name)]
    pools = enumerate(job[kind.spec_field]["workerPoolSpecs"])
    return found + [
        f"workerPoolSpecs[{index}]: {_NO_REDUCTION_SERVER}." for index, pool in pools if is_reduction_server(pool)
    ]


def _fields(kind: Kind, job: Mapping[str, Any]) -> Iterator[tuple[str, FieldPath, Any]]:
    """Yield name, path and value of the fields that are set, named as in the tables: relative to the job's spec."""

    def walk(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
        children: Iterable[tuple[str | int, Any]]
        children = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
        for key, child in children:
            if not isinstance(key, int):
                yield (*path, key), child
            yield from walk(child, (*path, key))

    for path, value in walk(job, ()):
        name = ".".join(str(part) for part in path if not isinstance(part, int))
        yield name.removeprefix(f"{kind.spec_field}."), path, value
