"""What Vertex AI does if a CustomJobSpec does not say: its timeout and its boot disks."""

from collections.abc import Mapping
from typing import Any

from vertex_api.scalar_types import parse_seconds

DEFAULT_TIMEOUT = "604800s"
"""Seven days: how long a run without a timeout may take (discovery document, Scheduling)."""
_BOOT_DISK_GB = 100
_HYPERDISK_MACHINES = ("a3-ultragpu", "a4-highgpu", "a4x-highgpu")


def get_explicit_timeout_duration_or_none(job_spec: Mapping[str, Any]) -> str | None:
    """Return the Duration that a run with a canonical CustomJobSpec may take, None if the default applies.

    Zero means "unset" in proto JSON.
    """
    timeout: str | None = job_spec.get("scheduling", {}).get("timeout")
    return timeout if timeout and parse_seconds(timeout) else None


def get_boot_disk_type_and_size(pool: Mapping[str, Any]) -> tuple[str, int]:
    """Return the type and the GiB of the boot disk of each machine of a pool.

    Types: discovery document, DiskSpec. Size: Google's page on configuring compute resources.
    """
    disk = pool.get("diskSpec", {})
    needs_hyperdisk = pool.get("machineSpec", {}).get("machineType", "").startswith(_HYPERDISK_MACHINES)
    disk_type = disk.get("bootDiskType") or ("hyperdisk-balanced" if needs_hyperdisk else "pd-ssd")
    return disk_type, disk.get("bootDiskSizeGb") or _BOOT_DISK_GB


def copy_with_boot_disks(job_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical CustomJobSpec with the boot disks that Vertex AI fills in when it creates a job.

    Pools without machines of their own, and empty ones, get none.
    """
    return {**job_spec, "workerPoolSpecs": [_copy_with_boot_disk(pool) for pool in job_spec["workerPoolSpecs"]]}


def _copy_with_boot_disk(pool: Mapping[str, Any]) -> Mapping[str, Any]:
    if "machineSpec" not in pool:
        return pool
    disk_type, size = get_boot_disk_type_and_size(pool)
    return {**pool, "diskSpec": {"bootDiskType": disk_type, "bootDiskSizeGb": size}}
