"""A replica has the size of its machine type, as far as this machine has it."""

from tests.vertex_emulator.running import RunningEmulator, custom_job, pool


def on(machine_type: str, script: str, **accelerator: object) -> dict[str, object]:
    """A worker pool on a machine type."""
    return {**pool(script), "machineSpec": {"machineType": machine_type, **accelerator}}


def service_warnings(emulator: RunningEmulator, name: str) -> list[str]:
    condition = "severity=WARNING AND resource.labels.task_name=service"
    return [entry["textPayload"] for entry in emulator.entries(name, condition)]


def test_log_warns_of_missing_machine_type_resources(shared: RunningEmulator) -> None:
    accelerator = {"acceleratorType": "NVIDIA_B200", "acceleratorCount": 8}
    name = shared.create(custom_job(on("a4-highgpu-8g", "pass", **accelerator)))
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    size, gpus = service_warnings(shared, name)
    assert size.startswith("a4-highgpu-8g has 224 vCPUs and 3968 GB of memory; this machine gives a replica ")
    assert gpus.startswith("NVIDIA_B200: 8 asked for; Docker on this machine gives a replica ")


def test_disk_reservation_partition_and_topology_change_nothing(shared: RunningEmulator) -> None:
    affinity = {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["projects/my-project/zones/us-central1-a/reservations/mine"],
    }
    gpu = {"acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1, "gpuPartitionSize": "1g.5gb"}
    disk = {"bootDiskType": "pd-standard", "bootDiskSizeGb": 200}
    pools = [
        on("ct5lp-hightpu-1t", "pass", tpuTopology="1x1"),
        {**on("a2-highgpu-1g", "pass", reservationAffinity=affinity, **gpu), "diskSpec": disk},
    ]
    for each in pools:
        job = shared.ended(shared.create(custom_job(each)))
        assert job["state"] == "JOB_STATE_SUCCEEDED", job
        (kept,) = job["jobSpec"]["workerPoolSpecs"]
        assert {name: kept[name] for name in ("machineSpec", "diskSpec") if name in each} == {
            name: each[name] for name in ("machineSpec", "diskSpec") if name in each
        }
