"""Rules of worker pools, by themselves and together."""

from typing import Any

import pytest

from tests.vertex_api.jobs import ABSENT
from tests.vertex_api.validation.rules.breaking import POOLS, pool, said_of_custom_job, said_of_pool, said_of_spec
from vertex_api import jobspec

REDUCTION = jobspec.reduction_server_image("us-central1")
NFS = {"server": "10.0.0.2", "path": "/share", "mountPoint": "data"}
LUSTRE = {"instanceIp": "10.0.0.3", "filesystem": "fs", "volumeHandle": "v", "mountPoint": "data"}
PACKAGE = {"executorImageUri": "e", "packageUris": ["gs://b/p.tar.gz"], "pythonModule": "m"}
V5E = {"machineType": "ct5lp-hightpu-4t", "tpuTopology": "2x2"}


def test_at_most_four_pools_some_empty_are_accepted() -> None:
    assert said_of_spec(workerPoolSpecs=[pool(), pool(replicaCount=3), {}, pool()]) == []
    assert said_of_spec(workerPoolSpecs=[pool()] * 5) == [f"{POOLS}: has 5 pools; at most 4 are allowed"]


def test_the_first_pool_is_one_primary_replica() -> None:
    primary = "must be 1: the first pool is the primary replica"
    assert said_of_spec(workerPoolSpecs=[{}, pool()]) == [
        f"{POOLS}[0]: is empty; the first pool runs the primary replica"
    ]
    assert said_of_pool(replicaCount=0) == [f"{POOLS}[0].replicaCount: 0 {primary}"]
    assert said_of_pool(replicaCount="2") == [f"{POOLS}[0].replicaCount: 2 {primary}"]
    assert said_of_custom_job("jobSpec", "workerPoolSpecs", 0, "replicaCount", to=ABSENT) == []


@pytest.mark.parametrize("replicas", [0, -1])
def test_later_pools_have_replicas_or_are_empty(replicas: int) -> None:
    said = said_of_spec(workerPoolSpecs=[pool(), pool(replicaCount=replicas)])
    assert said == [f"{POOLS}[1].replicaCount: {replicas} is less than 1; an empty pool is written {{}}"]


def test_a_pool_runs_a_container_or_a_package() -> None:
    expected = [f"{POOLS}[0]: needs exactly one of containerSpec and pythonPackageSpec"]
    assert said_of_pool(pythonPackageSpec=PACKAGE) == expected
    assert said_of_custom_job("jobSpec", "workerPoolSpecs", 0, "containerSpec", to=ABSENT) == expected


def test_machines_are_required_without_a_persistent_resource() -> None:
    without = pool()
    del without["machineSpec"]
    assert said_of_spec(workerPoolSpecs=[without]) == [f"{POOLS}[0].machineSpec.machineType: is required"]
    assert said_of_spec(workerPoolSpecs=[without], persistentResourceId="mine") == []


@pytest.mark.parametrize("kind", ["pd-ssd", "pd-standard", "hyperdisk-balanced", ""])
@pytest.mark.parametrize("size", [100, 64000, 0])
def test_disks_of_100_to_64000_gb_are_taken(kind: str, size: int) -> None:
    assert said_of_pool(diskSpec={"bootDiskType": kind, "bootDiskSizeGb": size}) == []


def test_other_disks_are_refused() -> None:
    assert said_of_pool(diskSpec={"bootDiskType": "ssd", "bootDiskSizeGb": 99}) == [
        f'{POOLS}[0].diskSpec.bootDiskType: "ssd" is not one of pd-ssd, pd-standard or hyperdisk-balanced',
        f"{POOLS}[0].diskSpec.bootDiskSizeGb: 99 is not within 100 to 64000",
    ]
    for size in (64001, -5):
        (said,) = said_of_pool(diskSpec={"bootDiskSizeGb": size})
        assert said == f"{POOLS}[0].diskSpec.bootDiskSizeGb: {size} is not within 100 to 64000"


def test_mounts_are_complete() -> None:
    assert said_of_pool(nfsMounts=[NFS], lustreMounts=[LUSTRE]) == []
    assert said_of_pool(nfsMounts=[NFS, NFS | {"path": "share", "server": ""}]) == [
        f"{POOLS}[0].nfsMounts[1].server: is required",
        f'{POOLS}[0].nfsMounts[1].path: "share" must start with /',
    ]
    said = said_of_pool(lustreMounts=[dict.fromkeys(LUSTRE, "")])
    assert said == [f"{POOLS}[0].lustreMounts[0].{field}: is required" for field in LUSTRE]


def test_reduction_server_is_the_third_pool_without_accelerators() -> None:
    def reducers(**fields: Any) -> dict[str, Any]:
        return pool(containerSpec={"imageUri": REDUCTION}, **fields)

    assert said_of_spec(workerPoolSpecs=[pool(), pool(), reducers()]) == []
    assert said_of_spec(workerPoolSpecs=[pool(), reducers()]) == [
        f"{POOLS}[1].containerSpec.imageUri: Reduction Server runs in workerPoolSpecs[2], with {{}} for a pool left out"
    ]
    gpu = {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
    assert said_of_spec(workerPoolSpecs=[pool(), {}, reducers(machineSpec=gpu)]) == [
        f"{POOLS}[2].machineSpec.acceleratorType: Reduction Server runs on machines without accelerators"
    ]


def test_tpus_are_one_pool_of_one_replica() -> None:
    alone = f"{POOLS}[{{}}].machineSpec.machineType: ct5lp-hightpu-4t has TPUs: it must be the job's only pool"
    assert said_of_spec(workerPoolSpecs=[pool(machineSpec=V5E), {}]) == []
    assert said_of_spec(workerPoolSpecs=[pool(machineSpec=V5E), pool()]) == [alone.format(0)]
    assert said_of_spec(workerPoolSpecs=[pool(), pool(machineSpec=V5E, replicaCount=2)]) == [alone.format(1)]
    assert said_of_spec(workerPoolSpecs=[pool(machineSpec=V5E), pool(machineSpec=V5E)]) == [alone.format(0)]


def test_reservation_only_machines_need_a_reservation() -> None:
    gb200 = {"machineType": "a4x-highgpu-4g", "acceleratorType": "NVIDIA_GB200", "acceleratorCount": 4}
    needed = f"{POOLS}[0].machineSpec.reservationAffinity: is required: a4x-highgpu-4g is had with a reservation only"
    none, some = ({"reservationAffinity": {"reservationAffinityType": f"{each}_RESERVATION"}} for each in ("NO", "ANY"))
    assert said_of_pool(machineSpec=gb200) == [needed]
    assert said_of_pool(machineSpec=gb200 | none) == [needed]
    assert said_of_pool(machineSpec=gb200 | some) == []
    assert said_of_spec(workerPoolSpecs=[pool(machineSpec=gb200)], persistentResourceId="r") == []
    assert said_of_spec(workerPoolSpecs=[pool(machineSpec=gb200 | some)], scheduling={"strategy": "SPOT"}) == [
        "jobSpec.scheduling.strategy: SPOT is not for a4x-highgpu-4g, which is had with a reservation only"
    ]
