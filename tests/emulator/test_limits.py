"""A replica has the size of its machine type, as far as this machine has it."""

from tests.emulator.running import RunningEmulator, custom_job, pool

GREEDY = "x = bytearray(b'x') * (5 << 30)"  # 5 GB; the smallest machine type has 4


def on(machine_type: str, script: str, **accelerator: object) -> dict[str, object]:
    """A worker pool on a machine type."""
    return {**pool(script), "machineSpec": {"machineType": machine_type, **accelerator}}


def service_warnings(emulator: RunningEmulator, name: str) -> list[str]:
    condition = "severity=WARNING AND resource.labels.task_name=service"
    return [entry["textPayload"] for entry in emulator.entries(name, condition)]


def test_a_replica_that_takes_more_memory_than_its_machine_has_fails_the_job_as_out_of_memory(
    shared: RunningEmulator,
) -> None:
    job = shared.ended(shared.create(custom_job(on("n4-highcpu-2", GREEDY))))
    assert job["state"] == "JOB_STATE_FAILED"
    expected = "The replica workerpool0-0 ran out of memory and exited with a non-zero status of 137."
    assert job["error"]["message"].startswith(expected)


def test_what_the_machine_type_has_and_this_machine_has_not_is_said_in_the_job_s_log(shared: RunningEmulator) -> None:
    accelerator = {"acceleratorType": "NVIDIA_B200", "acceleratorCount": 8}
    name = shared.create(custom_job(on("a4-highgpu-8g", "pass", **accelerator)))
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    size, gpus = service_warnings(shared, name)
    assert size.startswith("a4-highgpu-8g has 224 vCPUs and 3968 GB of memory; this machine gives a replica ")
    assert gpus.startswith("NVIDIA_B200: 8 asked for; Docker on this machine gives a replica ")
