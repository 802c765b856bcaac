"""The machine types of training, with their sizes and the accelerators that can be attached to them.

Which types and which accelerator counts: Google's page "Configure compute resources for custom training", as of the day
`AS_OF`. Sizes: Compute Engine's pages on machine families and Cloud TPU's on TPU versions. Memory is in GB as those
pages write it (2**30 bytes). `cloud-tpu` has no published size; it has roughly that of a TPU v3 host here.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

AS_OF = "2026-11-21"


@dataclass(frozen=True)
class Machine:
    """A machine type.

    `gpus` and `tpus`: its values of `acceleratorType`, each with the allowed `acceleratorCount`s, empty if Google does
    not list them. `topologies`: its values of `tpuTopology`. `chips`: the number of its TPU chips.
    """

    name: str
    vcpus: int
    memory_gb: float
    gpus: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    tpus: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    topologies: tuple[str, ...] = ()
    chips: int = 0
    can_omit_accelerator: bool = True

    @property
    def accelerators(self) -> Mapping[str, tuple[int, ...]]:
        """The allowed counts of each accelerator: those of `gpus` and of `tpus`."""
        return {**self.gpus, **self.tpus}

    @property
    def family(self) -> str:
        """The part of its name before the first hyphen."""
        return self.name.partition("-")[0]

    @property
    def disk_type(self) -> str:
        """The type of its boot disk where none is chosen (discovery document, DiskSpec)."""
        return "hyperdisk-balanced" if self.name.startswith(_HYPERDISK_ONLY) else "pd-ssd"

    @property
    def needs_reservation(self) -> bool:
        """Whether it is had with a reservation only (Google's page on configuring compute resources)."""
        return self.name in _RESERVATION_ONLY

    @property
    def is_tpu(self) -> bool:
        """Whether it has TPU chips."""
        return self.chips > 0

    def accelerator(self, pool: Mapping[str, Any]) -> tuple[str | None, int]:
        """Return the type and the number of accelerators of each machine of a pool: its own, or those attached."""
        if not self.can_omit_accelerator and len(self.gpus) == 1:
            ((kind, counts),) = self.gpus.items()
            return kind, counts[0]
        return accelerator_of(pool.get("machineSpec", {}))

    def hosts(self, topology: str, cores: int) -> int:
        """Return how many machines a TPU slice has, by its topology, or for v2 and v3 by its cores (two a chip)."""
        if topology in self.topologies:
            return math.prod(map(int, topology.split("x"))) // self.chips
        return max(1, cores // 2 // self.chips) if self.is_tpu and not self.topologies else 1


def machine_of(pool: Mapping[str, Any]) -> Machine | None:
    """Return the machine type of a pool, None if it has none or training does not."""
    return MACHINES.get(pool.get("machineSpec", {}).get("machineType", ""))


def accelerator_of(spec: Mapping[str, Any]) -> tuple[str | None, int]:
    """Return the type and the number of the accelerators of a MachineSpec, None and 0 if it has none."""
    kind = spec.get("acceleratorType")
    return None if kind == "ACCELERATOR_TYPE_UNSPECIFIED" else kind, spec.get("acceleratorCount", 0)


ENDED = {"NVIDIA_TESLA_K80": "2024-05-01", "NVIDIA_TESLA_P100": "2026-09-15"}
"""Accelerators that the API still names, with the day since which there are none: Compute Engine's page "GPU machine
types", and for P100 the caution on Google's page "Configure compute resources for custom training"."""
_HYPERDISK_ONLY = ("a3-ultragpu", "a4-highgpu", "a4x-highgpu")
_RESERVATION_ONLY = ("a4x-highgpu-4g",)
_FAMILIES: tuple[tuple[str, float, tuple[int, ...]], ...] = (
    # name, GB of memory per vCPU, vCPUs
    ("n1-standard", 3.75, (4, 8, 16, 32, 64, 96)),
    ("n1-highmem", 6.5, (2, 4, 8, 16, 32, 64, 96)),
    ("n1-highcpu", 0.9, (16, 32, 64, 96)),
    ("n2-standard", 4, (4, 8, 16, 32, 48, 64, 80)),
    ("n2-highmem", 8, (2, 4, 8, 16, 32, 48, 64, 80)),
    ("n2-highcpu", 1, (16, 32, 48, 64, 80)),
    ("n4-standard", 4, (2, 4, 8, 16, 32, 48, 64, 80)),
    ("n4-highmem", 8, (2, 4, 8, 16, 32, 48, 64, 80)),
    ("n4-highcpu", 2, (2, 4, 8, 16, 32, 48, 64, 80)),
    ("e2-standard", 4, (4, 8, 16, 32)),
    ("e2-highmem", 8, (2, 4, 8, 16)),
    ("e2-highcpu", 1, (16, 32)),
    ("c2-standard", 4, (4, 8, 16, 30, 60)),
)
_MEMORY_OPTIMISED = (
    ("m1-ultramem-40", 40, 961.0),
    ("m1-ultramem-80", 80, 1922.0),
    ("m1-ultramem-160", 160, 3844.0),
    ("m1-megamem-96", 96, 1433.6),
)
_GPU_MACHINES: tuple[tuple[str, str, tuple[tuple[int, int, float, int], ...]], ...] = (
    # name, acceleratorType, and of each size: its number in the name, vCPUs, GB of memory, acceleratorCount
    ("a2-highgpu-{}g", "NVIDIA_TESLA_A100", ((1, 12, 85, 1), (2, 24, 170, 2), (4, 48, 340, 4), (8, 96, 680, 8))),
    ("a2-megagpu-{}g", "NVIDIA_TESLA_A100", ((16, 96, 1360, 16),)),
    ("a2-ultragpu-{}g", "NVIDIA_A100_80GB", ((1, 12, 170, 1), (2, 24, 340, 2), (4, 48, 680, 4), (8, 96, 1360, 8))),
    ("a3-highgpu-{}g", "NVIDIA_H100_80GB", ((1, 26, 234, 1), (2, 52, 468, 2), (4, 104, 936, 4), (8, 208, 1872, 8))),
    ("a3-megagpu-{}g", "NVIDIA_H100_MEGA_80GB", ((8, 208, 1872, 8),)),
    ("a3-ultragpu-{}g", "NVIDIA_H200_141GB", ((8, 224, 2952, 8),)),
    ("a4-highgpu-{}g", "NVIDIA_B200", ((8, 224, 3968, 8),)),
    ("a4x-highgpu-{}g", "NVIDIA_GB200", ((4, 140, 884, 4),)),
    ("g2-standard-{}", "NVIDIA_L4", ((4, 4, 16, 1), (8, 8, 32, 1), (12, 12, 48, 1), (16, 16, 64, 1))),
    ("g2-standard-{}", "NVIDIA_L4", ((24, 24, 96, 2), (32, 32, 128, 1), (48, 48, 192, 4), (96, 96, 384, 8))),
    ("g4-standard-{}", "NVIDIA_RTX_PRO_6000", ((48, 48, 180, 1), (96, 96, 360, 2))),
    ("g4-standard-{}", "NVIDIA_RTX_PRO_6000", ((192, 192, 720, 4), (384, 384, 1440, 8))),
)
_SLICES = ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_CUBES = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16")
_TPUS: tuple[tuple[str, int, float, int, tuple[str, ...]], ...] = (
    # name, vCPUs, GB of memory, chips, topologies
    ("ct5lp-hightpu-1t", 24, 48, 1, ("1x1",)),
    ("ct5lp-hightpu-4t", 112, 192, 4, _SLICES),
    ("ct5lp-hightpu-8t", 224, 384, 8, ("2x4",)),
    ("ct6e-standard-1t", 44, 176, 1, ("1x1",)),
    ("ct6e-standard-4t", 180, 720, 4, _SLICES),
    ("ct6e-standard-8t", 180, 1440, 8, ("2x4",)),
    ("tpu7x-standard-4t", 224, 960, 4, _CUBES),
)
# Cores: one board, or a pod slice of a multiple of 32 up to the largest pod (v2-512, v3-2048).
_BOARD_OR_POD = {"TPU_V2": (8, *range(32, 513, 32)), "TPU_V3": (8, *range(32, 2049, 32))}


def _plain_machines() -> Iterator[Machine]:
    for family, memory, sizes in _FAMILIES:
        for vcpus in sizes:
            gpus = _n1_gpus(vcpus) if family.startswith("n1-") else {}
            yield Machine(f"{family}-{vcpus}", vcpus, round(vcpus * memory, 2), gpus)
    for name, vcpus, total in _MEMORY_OPTIMISED:
        yield Machine(name, vcpus, total)


def _n1_gpus(vcpus: int) -> dict[str, tuple[int, ...]]:
    """Return the counts that fit: more vCPUs need more GPUs."""
    counts: tuple[int, ...] = (1, 2, 4) if vcpus <= 16 else (2, 4) if vcpus == 32 else (4,)
    v100 = tuple(count for count in (1, 2, 4, 8) if count >= math.ceil(vcpus / 8) or count == 8)
    return {"NVIDIA_TESLA_T4": counts, "NVIDIA_TESLA_P4": counts, "NVIDIA_TESLA_V100": v100}


def _gpu_machines() -> Iterator[Machine]:
    for name, kind, sizes in _GPU_MACHINES:
        for size, vcpus, memory, count in sizes:
            yield Machine(name.format(size), vcpus, float(memory), {kind: (count,)}, can_omit_accelerator=False)


def _tpu_machines() -> Iterator[Machine]:
    yield Machine("cloud-tpu", 96, 334.0, tpus=_BOARD_OR_POD, chips=4, can_omit_accelerator=False)
    for name, vcpus, memory, chips, topologies in _TPUS:
        kinds: dict[str, tuple[int, ...]] = {"TPU_V5_LITEPOD": ()} if name.startswith("ct5lp-") else {}
        yield Machine(name, vcpus, memory, tpus=kinds, topologies=topologies, chips=chips)


MACHINES: Mapping[str, Machine] = {
    each.name: each for machines in (_plain_machines(), _gpu_machines(), _tpu_machines()) for each in machines
}
"""All machine types by name."""
