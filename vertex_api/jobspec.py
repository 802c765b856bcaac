"""What a CustomJobSpec means to Vertex AI where it is silent: timeout, disks, output folders, Reduction Server."""

import re
from collections.abc import Mapping
from typing import Any

from vertex_api.machines import machine_of

DEFAULT_TIMEOUT = "604800s"
"""Seven days: how long a run without a timeout may take (discovery document, Scheduling)."""
DEFAULT_MAX_WAIT = "86400s"
"""A day: for how long a FLEX_START job waits for machines if it does not say (discovery document, Scheduling)."""
_BOOT_DISK_GB = 100


def explicit_timeout(job_spec: Mapping[str, Any]) -> str | None:
    """Return the Duration that a run with a canonical CustomJobSpec may take, None if the default applies.

    Zero means "unset" in proto JSON.
    """
    from vertex_api.scalars import to_seconds  # loads pydantic, a tenth of a second of each `vertex-emulator status`

    timeout: str | None = job_spec.get("scheduling", {}).get("timeout")
    return timeout if timeout and to_seconds(timeout) > 0 else None


def replica_count(pool: Mapping[str, Any]) -> int:
    """Return how many replicas a pool has (discovery document, WorkerPoolSpec: 1 if it does not say)."""
    count: int = pool.get("replicaCount", 1)
    return count


def image_name(pool: Mapping[str, Any]) -> str | None:
    """Return the name of the image that a pool's replicas run, None if it names none."""
    task = {**pool.get("containerSpec", {}), **pool.get("pythonPackageSpec", {})}
    return task.get("imageUri") or task.get("executorImageUri")


def boot_disk(pool: Mapping[str, Any]) -> tuple[str, int]:
    """Return the type and the GiB of the boot disk of each machine of a pool.

    Size: Google's page on configuring compute resources.
    """
    disk, machine = pool.get("diskSpec", {}), machine_of(pool)
    disk_type = disk.get("bootDiskType") or (machine.disk_type if machine else "pd-ssd")
    return disk_type, disk.get("bootDiskSizeGb") or _BOOT_DISK_GB


def with_boot_disks(job_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical CustomJobSpec with the boot disks that Vertex AI fills in when it creates a job.

    Pools without machines of their own, and empty ones, get none.
    """

    def complete(pool: Mapping[str, Any]) -> Mapping[str, Any]:
        if "machineSpec" not in pool:
            return pool
        disk_type, size = boot_disk(pool)
        return {**pool, "diskSpec": {"bootDiskType": disk_type, "bootDiskSizeGb": size}}

    return {**job_spec, "workerPoolSpecs": [complete(pool) for pool in job_spec["workerPoolSpecs"]]}


OUTPUT_FOLDERS = {"AIP_MODEL_DIR": "model", "AIP_CHECKPOINT_DIR": "checkpoints", "AIP_TENSORBOARD_LOG_DIR": "logs"}
"""The folders below a run's output directory, by the variables that name them in its containers (discovery document,
CustomJobSpec.baseOutputDirectory)."""

EVENT_FILE = "tfevents"
"""What the name of an event file has, as TensorBoard finds them."""


def output_folder(job_spec: Mapping[str, Any], trial_id: str = "") -> str | None:
    """Return the `gs://` folder of a run's output, without a slash at its end, None if the spec names none.

    Each trial of a tuning job has a folder of its own below that of the job, named by its id (discovery document,
    CustomJobSpec.baseOutputDirectory).
    """
    prefix = job_spec.get("baseOutputDirectory", {}).get("outputUriPrefix")
    return "/".join([prefix.rstrip("/"), *filter(None, [trial_id])]) if prefix else None


def output_folders(job_spec: Mapping[str, Any], trial_id: str = "") -> dict[str, str]:
    """Return the `gs://` folders of a run by the variables of `OUTPUT_FOLDERS`, empty if the spec names none."""
    base = output_folder(job_spec, trial_id)
    return {variable: f"{base}/{folder}/" for variable, folder in OUTPUT_FOLDERS.items()} if base else {}


def model_folder(job_spec: Mapping[str, Any], trial_id: str = "") -> str | None:
    """Return the `gs://` folder where a run puts its model, None if the spec names no output directory."""
    return output_folders(job_spec, trial_id).get("AIP_MODEL_DIR")


REDUCTION_SERVER_POOL = 2
"""The only worker pool that can run it."""

_IMAGE = "{location}-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
_ANY_IMAGE = re.compile(r"[a-z]+-docker\.pkg\.dev/vertex-ai-restricted/training/reductionserver([:@].*)?")
_LOCATIONS = {"europe": "europe", "me": "europe", "africa": "europe", "asia": "asia", "australia": "asia"}


def reduction_server_image(region: str) -> str:
    """Return the URI of the image in the multi-region (us, europe, asia) nearest to a region such as `europe-west4`."""
    return _IMAGE.format(location=_LOCATIONS.get(region.partition("-")[0], "us"))


def is_reduction_server(pool: Mapping[str, Any]) -> bool:
    """Return whether a WorkerPoolSpec runs Reduction Server, with an image of any location and tag."""
    return _ANY_IMAGE.fullmatch(pool.get("containerSpec", {}).get("imageUri", "")) is not None


PIDS_LIMIT = 8192
"""Processes and threads of a container: enough for data loaders and Ray, a quarter of what many kernels have."""
LOG_LIMIT_MB = 100
EGRESS = True
