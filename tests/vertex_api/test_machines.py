"""Machine types: the table says what Google's page says."""

from typing import get_args

import pytest

from vertex_api.machines import ENDED, MACHINES
from vertex_api.types import AcceleratorType


@pytest.mark.parametrize(
    ("name", "vcpus", "memory_gb"),
    [
        ("n1-standard-4", 4, 15.0),
        ("n1-highmem-2", 2, 13.0),
        ("n1-highcpu-16", 16, 14.4),
        ("n1-highcpu-32", 32, 28.8),
        ("n2-highcpu-80", 80, 80.0),
        ("n4-highcpu-2", 2, 4.0),
        ("e2-standard-4", 4, 16.0),
        ("c2-standard-60", 60, 240.0),
        ("m1-megamem-96", 96, 1433.6),
        ("a2-highgpu-1g", 12, 85.0),
        ("ct6e-standard-8t", 180, 1440.0),
    ],
)
def test_machine_types_have_compute_engine_s_size(name: str, vcpus: int, memory_gb: float) -> None:
    found = MACHINES.get(name)
    assert found is not None
    assert (found.vcpus, found.memory_gb) == (vcpus, memory_gb)


@pytest.mark.parametrize(
    "name", ["n1-standard-2", "n1-highcpu-8", "c3-standard-4", "n2d-standard-4", "n1", "", "N1-STANDARD-4"]
)
def test_machine_types_training_does_not_take_are_unknown(name: str) -> None:
    assert MACHINES.get(name) is None


@pytest.mark.parametrize(
    ("name", "kind", "counts"),
    [
        ("n1-standard-16", "NVIDIA_TESLA_T4", (1, 2, 4)),
        ("n1-standard-32", "NVIDIA_TESLA_T4", (2, 4)),
        ("n1-standard-96", "NVIDIA_TESLA_P4", (4,)),
        ("n1-highmem-8", "NVIDIA_TESLA_V100", (1, 2, 4, 8)),
        ("n1-standard-16", "NVIDIA_TESLA_V100", (2, 4, 8)),
        ("n1-standard-32", "NVIDIA_TESLA_V100", (4, 8)),
        ("n1-standard-64", "NVIDIA_TESLA_V100", (8,)),
        ("n1-standard-96", "NVIDIA_TESLA_V100", (8,)),
        ("g2-standard-24", "NVIDIA_L4", (2,)),
        ("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", (8,)),
    ],
)
def test_machine_types_take_google_s_gpu_counts(name: str, kind: str, counts: tuple[int, ...]) -> None:
    assert MACHINES[name].gpus[kind] == counts


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("n1-highcpu-64", "NVIDIA_TESLA_P100"),
        ("n1-standard-4", "NVIDIA_TESLA_K80"),
        ("n1-standard-4", "NVIDIA_L4"),
        ("e2-standard-4", "NVIDIA_TESLA_T4"),
        ("a2-highgpu-1g", "NVIDIA_A100_80GB"),
    ],
)
def test_a_machine_type_takes_no_other_gpu(name: str, kind: str) -> None:
    assert kind not in MACHINES[name].gpus


def test_the_table_has_only_the_api_s_accelerators() -> None:
    known = set(get_args(get_args(AcceleratorType)[0]))
    named = {kind for each in MACHINES.values() for kind in (*each.gpus, *each.tpus)}
    assert named - known == set()
    assert known - named == {
        "ACCELERATOR_TYPE_UNSPECIFIED",
        "TPU_V4_POD",
        *ENDED,
    }


def test_a_tpu_topology_fills_whole_machines() -> None:
    for each in MACHINES.values():
        for topology in each.topologies:
            chips = 1
            for side in topology.split("x"):
                chips *= int(side)
            assert chips % each.chips == 0, (each.name, topology)


def test_accelerator_families_cannot_omit_their_accelerator() -> None:
    families = {each.name.split("-")[0] for each in MACHINES.values() if not each.can_omit_accelerator}
    assert families == {"a2", "a3", "a4", "a4x", "g2", "g4", "cloud"}


def test_tpu_hosts_are_told_apart() -> None:
    families = {each.name.split("-")[0] for each in MACHINES.values() if each.is_tpu}
    assert families == {"cloud", "ct5lp", "ct6e", "tpu7x"}
