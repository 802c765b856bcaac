"""Rules of machines and what is attached to them, in the service's own words where they are known."""

from typing import Any

import pytest

from tests.vertex_api.validation.rules.breaking import said_of_machine

BOTH = "Both `accelerator_type` and `accelerator_count` should be specified or none."
T4 = {"acceleratorType": "NVIDIA_TESLA_T4"}
SPECIFIC = {
    "reservationAffinityType": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["projects/p/zones/z/reservations/r"],
}


@pytest.mark.parametrize(
    ("machine_type", "fields"),
    [
        ("n1-standard-4", {}),
        ("n1-standard-4", {"acceleratorType": "ACCELERATOR_TYPE_UNSPECIFIED", "acceleratorCount": 0}),
        ("n1-standard-4", {**T4, "acceleratorCount": 4}),
        ("a2-highgpu-1g", {"acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1}),
        (
            "a2-highgpu-8g",
            {"acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1, "gpuPartitionSize": "1g.10gb"},
        ),
        ("cloud-tpu", {"acceleratorType": "TPU_V3", "acceleratorCount": 64}),
        ("ct5lp-hightpu-4t", {"tpuTopology": "4x4"}),
        ("ct5lp-hightpu-4t", {"tpuTopology": "4x4", "acceleratorType": "TPU_V5_LITEPOD", "acceleratorCount": 4}),
        ("tpu7x-standard-4t", {"tpuTopology": "2x2x1"}),
        ("n1-standard-4", {"reservationAffinity": SPECIFIC}),
        ("n1-standard-4", {"reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"}}),
    ],
)
def test_what_googles_tables_allow_is_taken(machine_type: str, fields: dict[str, Any]) -> None:
    assert said_of_machine(machine_type, **fields) == []


def test_unknown_machine_types_suggest_the_nearest() -> None:
    assert said_of_machine("n1-standrd-4") == [
        "machineType: Machine type n1-standrd-4 is not supported. Did you mean n1-standard-4?"
    ]
    (said,) = said_of_machine("xyz")
    assert said.startswith("machineType: Machine type xyz is not supported. Use one of n1-standard, n1-highmem, ")


@pytest.mark.parametrize("machine_type", [None, ""])
def test_a_machine_type_is_required(machine_type: str | None) -> None:
    assert said_of_machine(machine_type) == ["machineType: is required"]


@pytest.mark.parametrize("fields", [T4, {"acceleratorCount": 1}, {**T4, "acceleratorCount": 0}])
def test_accelerator_type_and_count_go_together(fields: dict[str, Any]) -> None:
    assert said_of_machine("n1-standard-4", **fields) == [f"acceleratorType: {BOTH}"]


@pytest.mark.parametrize(
    ("machine_type", "kind", "takes"),
    [
        ("e2-standard-4", "NVIDIA_TESLA_T4", "no accelerator"),
        (
            "n1-standard-4",
            "NVIDIA_TESLA_K80",
            "NVIDIA_TESLA_T4, NVIDIA_TESLA_P4, NVIDIA_TESLA_P100 or NVIDIA_TESLA_V100",
        ),
        ("g2-standard-4", "NVIDIA_TESLA_A100", "NVIDIA_L4"),
        ("cloud-tpu", "NVIDIA_L4", "TPU_V2 or TPU_V3"),
    ],
)
def test_accelerators_the_machine_does_not_take_are_rejected(machine_type: str, kind: str, takes: str) -> None:
    assert said_of_machine(machine_type, acceleratorType=kind, acceleratorCount=1) == [
        f'acceleratorType: Accelerator "{kind}" is not supported for machine type "{machine_type}"; it takes {takes}'
    ]


@pytest.mark.parametrize(
    ("machine_type", "kind", "count", "possible"),
    [
        ("n1-standard-4", "NVIDIA_TESLA_T4", 3, "1, 2 or 4"),
        ("n1-standard-32", "NVIDIA_TESLA_T4", 1, "2 or 4"),
        ("a2-highgpu-2g", "NVIDIA_TESLA_A100", 1, "2"),
        ("cloud-tpu", "TPU_V2", 16, "8, 32, 64, 96 … 512"),
    ],
)
def test_impossible_accelerator_counts_show_the_possible_ones(
    machine_type: str, kind: str, count: int, possible: str
) -> None:
    assert said_of_machine(machine_type, acceleratorType=kind, acceleratorCount=count) == [
        f"acceleratorCount: {count} {kind} cannot be attached to {machine_type}; possible: {possible}"
    ]


def test_a_negative_number_of_accelerators_is_refused() -> None:
    assert said_of_machine("n1-standard-4", **T4, acceleratorCount=-1) == ["acceleratorCount: -1 must not be negative"]


def test_accelerator_machines_need_their_accelerator() -> None:
    assert said_of_machine("g2-standard-4") == ["acceleratorType: g2-standard-4 needs an accelerator: NVIDIA_L4"]


def test_topologies_are_those_of_the_machine() -> None:
    assert said_of_machine("ct5lp-hightpu-1t") == ["tpuTopology: is required for ct5lp-hightpu-1t: 1x1"]
    assert said_of_machine("ct6e-standard-8t", tpuTopology="2x2") == [
        'tpuTopology: "2x2" is not one that ct6e-standard-8t has: 2x4'
    ]
    assert said_of_machine("n1-standard-4", tpuTopology="2x2") == [
        'tpuTopology: "2x2": n1-standard-4 takes no topology'
    ]


def test_a_gpu_partition_is_one_of_one_gpu() -> None:
    gpus = {"acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 2}
    assert said_of_machine("a2-highgpu-2g", **gpus, gpuPartitionSize="small") == [
        'gpuPartitionSize: "small" must be the size of a GPU partition, such as 1g.10gb',
        "acceleratorCount: must be 1 with gpuPartitionSize small",
    ]


def test_only_specific_reservations_have_key_and_values() -> None:
    kind = {"reservationAffinityType": "SPECIFIC_RESERVATION"}
    assert said_of_machine("n1-standard-4", reservationAffinity=kind) == [
        "reservationAffinity.key: is required with SPECIFIC_RESERVATION",
        "reservationAffinity.values: is required with SPECIFIC_RESERVATION",
    ]
    said = said_of_machine("n1-standard-4", reservationAffinity=SPECIFIC | {"reservationAffinityType": 2})
    assert said == [
        f"reservationAffinity.{field}: is for SPECIFIC_RESERVATION only, not for ANY_RESERVATION"
        for field in ("key", "values")
    ]
    said = said_of_machine("n1-standard-4", reservationAffinity={"key": "k"})
    assert said == [
        "reservationAffinity.reservationAffinityType: is required: "
        "NO_RESERVATION, ANY_RESERVATION or SPECIFIC_RESERVATION"
    ]
