"""A replica has the size of its machine type, as far as this machine has it."""

from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest

from tests.vertex_emulator.running import RunningEmulator, custom_job, pool, until
from vertex_api.names import CUSTOM_JOB
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import Job
from vertex_emulator.names import Location, new_id
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.replicas.size import Host
from vertex_emulator.scheduling.scheduler import Scheduler, WorkQueue

GREEDY = "x = bytearray(b'x') * (1 << 28)"


def on(machine_type: str, script: str, **accelerator: object) -> dict[str, object]:
    """A worker pool on a machine type."""
    return {**pool(script), "machineSpec": {"machineType": machine_type, **accelerator}}


def service_warnings(emulator: RunningEmulator, name: str) -> list[str]:
    condition = "severity=WARNING AND resource.labels.task_name=service"
    return [entry["textPayload"] for entry in emulator.entries(name, condition)]


class SmallMachine(Executor):
    """The real Docker on a machine that says it has little memory: the smallest machine type has 4 GB."""

    def host(self) -> Host:
        return Host(cpus=2, memory=128 << 20)


@pytest.fixture
def docker_on_a_small_machine() -> Iterator[SmallMachine]:
    executor = SmallMachine(token_hex(6), on_pulled=lambda _: None)
    yield executor
    for job in executor.job_ids():
        executor.remove(job)
    executor.release_firewall()


def test_exceeding_memory_limit_fails_job_as_oom(docker_on_a_small_machine: SmallMachine, tmp_path: Path) -> None:
    data = DataFolder.open(tmp_path)
    database = Database(data.database)
    scheduler = Scheduler(database, docker_on_a_small_machine, data, WorkQueue(), 4)
    job_id = new_id()
    with database.write() as transaction:
        transaction.jobs.add(job_id, CUSTOM_JOB, Location("p", "us-central1"), custom_job(pool(GREEDY)))

    def ended() -> Job | None:
        scheduler.wake(job_id)
        while scheduler.step(timeout=0):
            pass
        with database.read() as transaction:
            job = transaction.jobs.get(job_id)
        assert job is not None
        return job if job.is_terminal else None

    job = until(ended, "the job's end")
    with database.read() as transaction:
        warnings = [line.text for line in transaction.jobs.messages(job_id) if line.severity == "WARNING"]
    database.close()
    assert job is not None
    assert job.ending is not None
    expected = "Replicas low on memory: workerpool0."
    assert job.ending.message.startswith(expected)
    assert warnings == ["n1-standard-4 has 4 vCPUs and 15 GB of memory; this machine gives a replica 2 and 0.109 GB."]


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
