"""The cost of jobs and of persistent resources."""

from math import inf
from typing import Any

import pytest

from tests.vertex_api.jobs import custom_job, edited, pipeline, tuning_job, tuning_pipeline
from vertex_api.estimates.cost import Cost, estimate_cost, persistent_cost, show_nearest
from vertex_api.estimates.prices import Source, bundled_prices, price_names
from vertex_api.estimates.quota import needed_quota as needs_of_a_job
from vertex_api.estimates.quota import persistent_quota
from vertex_api.job import Job
from vertex_api.machines import MACHINES
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE

REGION = "us-central1"
SSD_100 = 0.0267808219  # 100 x 0.1955 / 730
N1_STANDARD_4 = 0.21849885  # 4 x 0.03635265 + 15 x 0.00487255
RESERVED = {"reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"}}
POOLS = ("jobSpec", "workerPoolSpecs")
OURS = Source("2026-11-01", "our contract")


def pool(machine_type: str, replicas: int = 1, **machine: Any) -> dict[str, Any]:
    container = {"imageUri": "trainer:1"}
    return {
        "machineSpec": {"machineType": machine_type, **machine},
        "replicaCount": replicas,
        "containerSpec": container,
    }


def of(*pools: dict[str, Any], region: str = REGION, **job_spec: Any) -> Cost:
    job = edited(custom_job(), *POOLS, to=[*pools])
    job["jobSpec"].update(job_spec)
    return estimate_cost(Job(CUSTOM_JOB, job), region, bundled_prices())


def test_a_machine_costs_vcpus_memory_and_boot_disk() -> None:
    assert of(pool("n1-standard-4")).hourly == pytest.approx(N1_STANDARD_4 + SSD_100)


def test_a_pipeline_costs_the_same_as_its_job() -> None:
    assert estimate_cost(Job(TRAINING_PIPELINE, pipeline()), REGION, bundled_prices()) == estimate_cost(
        Job(CUSTOM_JOB, custom_job()), REGION, bundled_prices()
    )
    tuned = estimate_cost(Job(HYPERPARAMETER_TUNING_JOB, tuning_job()), REGION, bundled_prices())
    assert estimate_cost(Job(TRAINING_PIPELINE, tuning_pipeline()), REGION, bundled_prices()) == tuned


def test_total_cost_assumes_the_timeout_or_seven_days() -> None:
    hourly = N1_STANDARD_4 + SSD_100  # 0.2452796719
    with_timeout = of(pool("n1-standard-4"), scheduling={"timeout": "5400s"})
    assert (with_timeout.total, with_timeout.has_timeout) == (pytest.approx(hourly * 1.5), True)
    without = of(pool("n1-standard-4"))
    assert (without.total, without.max_seconds, without.has_timeout) == (pytest.approx(hourly * 168), 604800, False)


def test_replicas_count_and_empty_pools_do_not() -> None:
    # 1 x n1-standard-4 + 3 x (n1-standard-8 + 2 T4) + 4 disks:
    # n1-standard-8 = 8 x 0.03635265 + 30 x 0.00487255 = 0.4369977; with 2 x 0.4025 = 1.2419977
    gpus = pool("n1-standard-8", 3, acceleratorType="NVIDIA_TESLA_T4", acceleratorCount=2)
    assert of(pool("n1-standard-4"), {}, gpus).hourly == pytest.approx(N1_STANDARD_4 + 3 * 1.2419977 + 4 * SSD_100)


def test_a_disk_costs_by_its_type_and_size() -> None:
    # 500 x 0.046 / 730 = 0.0315068493
    disk = {"bootDiskType": "pd-standard", "bootDiskSizeGb": 500}
    assert of(pool("n1-standard-4") | {"diskSpec": disk}).hourly == pytest.approx(N1_STANDARD_4 + 0.0315068493)


def test_a_gpu_partition_costs_the_whole_machine() -> None:
    # a3-highgpu-8g: 208 x 0.0293227 + 1872 x 0.0025534 + 8 x 11.2660332 = 101.0073520
    whole = of(pool("a3-highgpu-8g", acceleratorType="NVIDIA_H100_80GB", acceleratorCount=8))
    assert whole.hourly == pytest.approx(6.0991216 + 4.7799648 + 90.1282656 + SSD_100)
    part = of(pool("a3-highgpu-8g", acceleratorType="NVIDIA_H100_80GB", acceleratorCount=1, gpuPartitionSize="1g.10gb"))
    assert part.hourly == pytest.approx(whole.hourly)


def test_tuning_costs_cover_parallel_trials_and_all_trials() -> None:
    # 8 trials, 2 at once, of n1-standard-4 for an hour at most
    job = edited(tuning_job(), "trialJobSpec", "scheduling", to={"timeout": "3600s"})
    found = estimate_cost(Job(HYPERPARAMETER_TUNING_JOB, job), REGION, bundled_prices())
    assert found.hourly == pytest.approx(2 * (N1_STANDARD_4 + SSD_100))
    assert found.total == pytest.approx(8 * (N1_STANDARD_4 + SSD_100))


def test_tpus_are_priced_by_chip_or_board() -> None:
    # ct5lp-hightpu-4t as 4x4: 16 chips x 1.38; TPU v3, 8 cores: one board at 9.2
    slice_ = of(pool("ct5lp-hightpu-4t", tpuTopology="4x4"))
    assert slice_.hourly == pytest.approx(16 * 1.38 + SSD_100)
    assert slice_.notes == ("the price of TPU_V5_LITEPOD is unconfirmed",)
    assert of(pool("cloud-tpu", acceleratorType="TPU_V3", acceleratorCount=8)).hourly == pytest.approx(9.2 + SSD_100)
    assert of(pool("cloud-tpu", acceleratorType="TPU_V3", acceleratorCount=32)).unpriced == (
        "a TPU_V3 pod of 32 cores",
    )


@pytest.mark.parametrize(
    ("scheduling", "machine", "note"),
    [
        ({"strategy": "SPOT"}, {}, "spot, at the price on demand"),
        ({"strategy": "FLEX_START"}, {}, "flex-start, at the price on demand"),
        (
            {},
            {"reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"}},
            "reserved, at the price on demand",
        ),
    ],
)
def test_discounts_are_noted_but_not_subtracted(scheduling: dict[str, Any], machine: dict[str, Any], note: str) -> None:
    found = of(pool("g2-standard-4", acceleratorType="NVIDIA_L4", acceleratorCount=1, **machine), scheduling=scheduling)
    plain = of(pool("g2-standard-4", acceleratorType="NVIDIA_L4", acceleratorCount=1))
    assert (found.hourly, found.notes, plain.notes) == (plain.hourly, (note,), ())


H200 = {"acceleratorType": "NVIDIA_H200_141GB", "acceleratorCount": 8}


@pytest.mark.parametrize(
    ("machine", "region", "missing"),
    [
        (pool("a3-ultragpu-8g", **H200), REGION, ("hyperdisk-balanced", "a3-ultragpu-8g", "NVIDIA_H200_141GB")),
        (pool("n1-standard-4"), "moon-north1", ("pd-ssd", "n1-standard-4")),
        (pool("tpu7x-standard-4t", tpuTopology="2x2x1"), REGION, ("TPU7X",)),
    ],
)
def test_parts_without_a_price_are_named(machine: dict[str, Any], region: str, missing: tuple[str, ...]) -> None:
    assert of(machine, region=region).unpriced == missing


def test_the_nearest_region_prices_what_has_none() -> None:
    gpus = {"acceleratorType": "NVIDIA_TESLA_P4", "acceleratorCount": 1}
    found = of(pool("n1-standard-4", **gpus), region="europe-west1")
    assert (found.unpriced, found.nearest) == ((), (("NVIDIA_TESLA_P4", "europe-west4"),))
    # in europe-west1 4 x 0.03998895 + 15 x 0.00536015, and a P4 of europe-west4
    assert found.hourly == pytest.approx(0.24035805 + 0.7245 + SSD_100)
    assert of(pool("n1-standard-4", **gpus), region="europe-west4").nearest == ()


def test_what_counts_by_another_region_is_told_by_region() -> None:
    in_belgium = of(pool("a3-highgpu-8g", **{**H200, "acceleratorType": "NVIDIA_H100_80GB"}), region="europe-west1")
    in_paris = of(pool("n1-standard-4"), region="europe-west9")
    assert show_nearest([in_belgium, in_paris, in_paris]) == (
        "a3-highgpu-8g, NVIDIA_H100_80GB at the price of us-central1; "
        "pd-ssd, n1-standard-4 at the price of europe-west1"
    )


def test_jobs_on_a_persistent_resource_cost_nothing() -> None:
    found = of(pool("n1-standard-4"), persistentResourceId="mine")
    assert (found.hourly, found.total) == (0, 0)
    assert found.notes == ("on a persistent resource, which is billed by itself",)


def test_own_prices_override_the_table() -> None:
    mine = bundled_prices().override(OURS, {"vcpu": {"N1": {REGION: 0.01}}})
    found = estimate_cost(Job(CUSTOM_JOB, custom_job()), REGION, mine)
    assert found.hourly == pytest.approx(4 * 0.01 + 15 * 0.00487255 + SSD_100)
    assert found.as_of == {"2026-11-01", "2026-07-30"}


def test_every_machine_type_uses_priceable_names() -> None:
    own = {kind: {name: {REGION: 1.0} for name in names} for kind, names in price_names().items()}
    everything = bundled_prices().override(OURS, own)
    for found in MACHINES.values():
        counts_by_type = found.accelerators
        kinds = [(kind, counts[:1] or (1,)) for kind, counts in counts_by_type.items()] or [("", (0,))]
        for kind, (count,) in kinds:
            given = {"acceleratorType": kind, "acceleratorCount": count} if kind else {}
            topology = {"tpuTopology": found.topologies[0]} if found.topologies else {}
            job = edited(custom_job(), *POOLS, to=[pool(found.name, **given, **topology)])
            assert estimate_cost(Job(CUSTOM_JOB, job), REGION, everything).unpriced == (), (
                found.name,
                kind,
            )


ALWAYS = "billed with jobs or without; no sum of USD at most counts it"
GPUS = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}


def persistent(*pools: dict[str, Any]) -> Cost:
    return persistent_cost(pools, REGION, bundled_prices())


def scaled(least: int, most: int, **more: Any) -> dict[str, Any]:
    return {**pool("n1-standard-4"), "autoscalingSpec": {"minReplicaCount": least, "maxReplicaCount": most}, **more}


def test_it_costs_the_same_as_a_job() -> None:
    pools = [pool("n1-standard-4"), pool("n1-standard-8", 3, **GPUS) | {"diskSpec": {"bootDiskSizeGb": 500}}]
    job = edited(custom_job(), *POOLS, to=pools)
    found, as_a_job = (
        persistent(*pools),
        estimate_cost(Job(CUSTOM_JOB, job), REGION, bundled_prices()),
    )
    assert (found.hourly, found.as_of, found.unpriced) == (as_a_job.hourly, as_a_job.as_of, ())
    assert found.hourly > 3 * 0.8
    assert persistent_quota(pools) == needs_of_a_job(Job(CUSTOM_JOB, job))


def test_it_is_endless_without_a_total_cost() -> None:
    found = persistent(pool("n1-standard-4"))
    assert (found.total, found.max_seconds, found.is_endless, found.has_timeout) == (inf, inf, True, False)
    assert not estimate_cost(Job(CUSTOM_JOB, custom_job()), REGION, bundled_prices()).is_endless
    assert found.notes == (ALWAYS,)


def test_one_machine_is_meant_where_none_is_counted() -> None:
    bare = {"machineSpec": {"machineType": "n1-standard-4"}}
    assert persistent(bare).hourly == pytest.approx(N1_STANDARD_4 + SSD_100)
    assert persistent_quota([bare]) == {"cpus": 4, "pd_ssd": 100}


def test_autoscaled_pools_count_their_maximum_and_note_minimum() -> None:
    found = persistent(scaled(1, 4, replicaCount=2), pool("n1-standard-4"))
    assert found.hourly == pytest.approx(5 * (N1_STANDARD_4 + SSD_100))
    # 2 x 0.2452797
    assert found.notes == (ALWAYS, "0.49 USD an hour with its fewest machines, and shown with its most")
    assert persistent_quota([scaled(1, 4, replicaCount=2)]) == {
        "cpus": 16,
        "pd_ssd": 400,
    }


def test_unpriced_parts_are_named_without_a_minimum_cost() -> None:
    found = persistent(scaled(1, 4, machineSpec={"machineType": "a4-highgpu-8g"}))
    assert (found.unpriced, found.notes[-1]) == (("hyperdisk-balanced", "a4-highgpu-8g", "NVIDIA_B200"), ALWAYS)
