"""Rules for the worker pools of a CustomJobSpec."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.catalog import reduction_server
from vertex_api.catalog.machines import find_machine_or_none, get_accelerator_and_count
from vertex_api.name_suggestions import join_with_or
from vertex_api.validation.rules import container_and_package_specs, machine_spec
from vertex_api.validation.rules.text_formats import find_unset_field_violations
from vertex_api.validation.rules.violation_type import KeyPath, Violation

MAX_POOLS = 4
DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")
_DISK_GB = range(100, 64_001)


def find_worker_pool_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for `workerPoolSpecs` (Google's page on distributed training has four roles)."""
    pools, path = spec["workerPoolSpecs"], (*at, "workerPoolSpecs")
    if len(pools) > MAX_POOLS:
        yield path, f"has {len(pools)} pools; at most {MAX_POOLS} are allowed"
    is_on_persistent_resource = bool(spec.get("persistentResourceId"))
    for index, pool in enumerate(pools):
        yield from _find_replica_violations(pool, index, (*path, index))
        if pool:
            yield from _find_pool_violations(pool, (*path, index), is_on_persistent_resource)
            yield from _find_reduction_server_violations(pool, index, (*path, index))
    yield from _find_tpus_beside_other_pools(pools, path)


def _find_replica_violations(pool: Mapping[str, Any], index: int, at: KeyPath) -> Iterator[Violation]:
    """Discovery document, CustomJobSpec; pool 0: Google's page on distributed training."""
    replicas = pool.get("replicaCount", 1)
    if index == 0 and not pool:
        yield at, "is empty; the first pool runs the primary replica"
    elif index == 0 and replicas != 1:
        yield (*at, "replicaCount"), f"{replicas} must be 1: the first pool is the primary replica"
    elif replicas < 1:
        yield (*at, "replicaCount"), f"{replicas} is less than 1; an empty pool is written {{}}"


def _find_pool_violations(pool: Mapping[str, Any], at: KeyPath, is_on_persistent_resource: bool) -> Iterator[Violation]:
    """Discovery document, WorkerPoolSpec: one task; a machine, except where a persistent resource has them."""
    if ("containerSpec" in pool) == ("pythonPackageSpec" in pool):
        yield at, "needs exactly one of containerSpec and pythonPackageSpec"
    yield from container_and_package_specs.find_container_and_package_violations(pool, at)
    if "machineSpec" in pool or not is_on_persistent_resource:
        yield from machine_spec.find_machine_violations(pool.get("machineSpec", {}), (*at, "machineSpec"))
    if not is_on_persistent_resource:
        yield from _find_missing_reservation_violations(pool, at)
    yield from find_disk_violations(pool.get("diskSpec", {}), (*at, "diskSpec"))
    yield from _find_mount_violations(pool, at)


def _find_missing_reservation_violations(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on configuring compute resources: some machines need a shared reservation."""
    spec = pool.get("machineSpec", {})
    kind = spec.get("reservationAffinity", {}).get("reservationAffinityType", "NO_RESERVATION")
    if spec.get("machineType") in machine_spec.RESERVATION_ONLY_MACHINES and kind == "NO_RESERVATION":
        path: KeyPath = (*at, "machineSpec", "reservationAffinity")
        yield path, f"is required: {spec['machineType']} is had with a reservation only"


def find_disk_violations(disk_spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for a DiskSpec (discovery document; sizes: Google's page on configuring compute)."""
    kind, size = disk_spec.get("bootDiskType"), disk_spec.get("bootDiskSizeGb")
    if kind and kind not in DISK_TYPES:
        yield (*at, "bootDiskType"), f'"{kind}" is not one of {join_with_or(DISK_TYPES)}'
    if size and size not in _DISK_GB:
        yield (*at, "bootDiskSizeGb"), f"{size} is not within {_DISK_GB.start} to {_DISK_GB.stop - 1}"


def _find_mount_violations(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, NfsMount and LustreMount."""
    for index, mount in enumerate(pool.get("nfsMounts", ())):
        path: KeyPath = (*at, "nfsMounts", index)
        yield from find_unset_field_violations(mount, ["server", "path", "mountPoint"], path)
        if mount["path"] and not mount["path"].startswith("/"):
            yield (*path, "path"), f'"{mount["path"]}" must start with /'
    for index, mount in enumerate(pool.get("lustreMounts", ())):
        fields = ["instanceIp", "filesystem", "volumeHandle", "mountPoint"]
        yield from find_unset_field_violations(mount, fields, (*at, "lustreMounts", index))


def _find_reduction_server_violations(pool: Mapping[str, Any], index: int, at: KeyPath) -> Iterator[Violation]:
    """Google's page on distributed training: Reduction Server runs in the third pool, on machines without GPUs."""
    if not reduction_server.is_reduction_server(pool):
        return
    if index != reduction_server.POOL_INDEX:
        place = f"workerPoolSpecs[{reduction_server.POOL_INDEX}]"
        yield (*at, "containerSpec", "imageUri"), f"Reduction Server runs in {place}, with {{}} for a pool left out"
    if get_accelerator_and_count(pool.get("machineSpec", {})) != (None, 0):
        yield (*at, "machineSpec", "acceleratorType"), "Reduction Server runs on machines without accelerators"


def _find_tpus_beside_other_pools(pools: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """Google's page on configuring compute resources: a TPU job has one pool, which as the first has one replica."""
    used = [index for index, pool in enumerate(pools) if pool]
    names = {index: pools[index].get("machineSpec", {}).get("machineType", "") for index in used}
    with_tpus = [index for index, name in names.items() if (machine := find_machine_or_none(name)) and machine.is_tpu]
    if with_tpus and len(used) > 1:
        index = with_tpus[0]
        yield (*at, index, "machineSpec", "machineType"), f"{names[index]} has TPUs: it must be the job's only pool"
