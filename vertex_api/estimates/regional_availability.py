"""The regions that have training, and their accelerators: dated tables, for warnings but never for errors.

Regions: gcloud's list for training (528.0.0), with those that Google's SDK (google-cloud-aiplatform 2.7.0) knows
beyond it. Accelerators: Google's page "Vertex AI locations", without those that it marks as not for training. Both
change from month to month, so what is missing here may be available by now.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from vertex_api.catalog.machines import find_machine_or_none, get_accelerator_and_count_per_machine
from vertex_api.estimates.price_table import TPU_PRICE_NAMES
from vertex_api.validation.canonical_spec import CanonicalSpec

AS_OF = "2026-11-21"
"""The date of both tables."""
PAGE = "https://cloud.google.com/vertex-ai/docs/general/locations"

_LISTED = """
africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2 asia-northeast3 asia-south1 asia-south2
asia-southeast1 asia-southeast2 australia-southeast1 australia-southeast2 europe-central2 europe-north1 europe-north2
europe-southwest1 europe-west1 europe-west2 europe-west3 europe-west4 europe-west6 europe-west8 europe-west9
europe-west12 me-central1 me-central2 me-west1 northamerica-northeast1 northamerica-northeast2 southamerica-east1
southamerica-west1 us-central1 us-east1 us-east4 us-east5 us-east7 us-south1 us-west1 us-west2 us-west3 us-west4
us-west8
"""
REGIONS = frozenset(_LISTED.split())
"""Regions that have training."""
_SHORT_NAMES = {
    "A100": "NVIDIA_TESLA_A100",
    "A100-80": "NVIDIA_A100_80GB",
    "B200": "NVIDIA_B200",
    "GB200": "NVIDIA_GB200",
    "H100": "NVIDIA_H100_80GB",
    "H100M": "NVIDIA_H100_MEGA_80GB",
    "H200": "NVIDIA_H200_141GB",
    "L4": "NVIDIA_L4",
    "P4": "NVIDIA_TESLA_P4",
    "P100": "NVIDIA_TESLA_P100",
    "RTX6000": "NVIDIA_RTX_PRO_6000",
    "T4": "NVIDIA_TESLA_T4",
    "V100": "NVIDIA_TESLA_V100",
    "v2": "TPU_V2",
    "v3": "TPU_V3",
    "v5e": "TPU_V5_LITEPOD",
    "v6e": "TPU_V6E",
    "7x": "TPU7X",
}
_OFFERED = {
    "asia-east1": "P100 T4 V100 H100M v2",
    "asia-east2": "T4",
    "asia-northeast1": "H100 H100M B200 T4 v6e",
    "asia-northeast3": "A100 H100 L4 T4",
    "asia-south1": "H100 H200 L4 T4",
    "asia-south2": "H200 RTX6000",
    "asia-southeast1": "A100 A100-80 B200 H100 H100M L4 P4 T4 RTX6000",
    "asia-southeast2": "T4",
    "australia-southeast1": "H100M P4 T4",
    "europe-central2": "T4",
    "europe-north1": "H100M",
    "europe-west1": "H100 H100M H200 P100 T4",
    "europe-west2": "H100 L4 T4",
    "europe-west3": "H100 H100M T4",
    "europe-west4": "A100 A100-80 H100 H100M H200 B200 L4 P4 P100 T4 V100 RTX6000 v2 v3 v6e",
    "me-central2": "L4",
    "me-west1": "A100",
    "northamerica-northeast1": "P4 T4",
    "northamerica-northeast2": "H100 L4",
    "southamerica-east1": "T4",
    "southamerica-west1": "v6e",
    "us-central1": "A100 A100-80 B200 GB200 H100 H100M H200 L4 P4 P100 T4 V100 RTX6000 v2 v3 v5e v6e 7x",
    "us-east1": "A100 B200 L4 P100 T4 V100 RTX6000 v5e v6e",
    "us-east4": "A100-80 H100 H100M H200 B200 GB200 L4 P4 T4 RTX6000",
    "us-east5": "A100-80 H100 H100M H200 v6e",
    "us-south1": "v6e B200 H200",
    "us-west1": "H100 H100M H200 L4 P100 T4 V100 v5e",
    "us-west2": "P4 T4 B200",
    "us-west3": "A100 B200",
    "us-west4": "A100 H100 H100M T4 v5e",
}


@cache
def get_regions_by_accelerator() -> Mapping[str, tuple[str, ...]]:
    """Return the regions that offer each accelerator; TPUs without an acceleratorType go by the name of their price."""
    pairs = [(region, short) for region, shorts in _OFFERED.items() for short in shorts.split()]
    return {name: tuple(region for region, short in pairs if short == key) for key, name in _SHORT_NAMES.items()}


def find_unavailable_accelerators(spec: CanonicalSpec, region: str) -> set[str]:
    """Return the accelerators of a canonical job that are not known to be available in a region.

    A job on a persistent resource has none of its own.
    """
    job = spec.job_spec
    pools = () if job.get("persistentResourceId") else job["workerPoolSpecs"]
    return find_unavailable_pool_accelerators(pools, region)


def find_unavailable_pool_accelerators(pools: Iterable[Mapping[str, Any]], region: str) -> set[str]:
    """Return the accelerators of pools (each with a `machineSpec`) that are not known to be available in a region."""
    required = find_required_accelerators(pools)
    return {name for name in required if region not in get_regions_by_accelerator().get(name, ())}


def find_required_accelerators(pools: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the accelerators of pools, by the names of `get_regions_by_accelerator`."""
    return {name for pool in pools for name in _iterate_required_accelerators(pool)}


def _iterate_required_accelerators(pool: Mapping[str, Any]) -> Iterator[str]:
    machine = find_machine_or_none(pool.get("machineSpec", {}).get("machineType", ""))
    if machine and machine.topologies:
        yield TPU_PRICE_NAMES[machine.name.partition("-")[0]]
    elif machine and (kind := get_accelerator_and_count_per_machine(pool, machine)[0]):
        yield kind
