"""Quota: needed, granted, short, and the table of it."""

from typing import Any

import pytest

from tests.vertex_api.estimates.test_cost import pool
from tests.vertex_api.jobs import custom_job, edited, tuning_job, tuning_pipeline
from vertex_api.estimates.quota import (
    METRIC_PREFIX,
    UNKNOWN_METRIC,
    UNLIMITED,
    Shortage,
    find_shortages,
    granted_limit,
    granted_quota,
    needed_quota,
    parse_quota_table,
    quota_id,
    quota_table,
)
from vertex_api.job import Job
from vertex_api.machines import MACHINES
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.validation.pools import DISK_TYPES


def of(*pools: dict[str, Any], **job_spec: Any) -> dict[str, int]:
    job = edited(custom_job(), "jobSpec", "workerPoolSpecs", to=[*pools])
    job["jobSpec"].update(job_spec)
    return needed_quota(Job(CUSTOM_JOB, job))


T4 = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}
L4 = {"acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}


def test_vcpus_gpus_and_disks_of_replicas_add_up() -> None:
    disk = {"diskSpec": {"bootDiskSizeGb": 200}}
    found = of(pool("n1-standard-4"), {}, pool("n1-standard-8", 3, **T4) | disk)
    assert found == {"cpus": 4 + 3 * 8, "pd_ssd": 100 + 3 * 200, "nvidia_t4_gpus": 3 * 2}


def test_tuning_needs_what_its_trials_at_once_need() -> None:
    job = edited(tuning_job(), "parallelTrialCount", to=3)
    assert needed_quota(Job(HYPERPARAMETER_TUNING_JOB, job)) == {"cpus": 12, "pd_ssd": 300}


def test_a_pipeline_needs_the_quota_of_its_job() -> None:
    assert needed_quota(Job(TRAINING_PIPELINE, tuning_pipeline())) == needed_quota(
        Job(HYPERPARAMETER_TUNING_JOB, tuning_job())
    )


@pytest.mark.parametrize("strategy", ["SPOT", "FLEX_START"])
def test_spot_and_flex_start_count_as_preemptible(strategy: str) -> None:
    found = of(pool("g2-standard-8", **L4), scheduling={"strategy": strategy})
    assert found == {"preemptible_cpus": 8, "preemptible_nvidia_l4_gpus": 1, "pd_ssd": 100}


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (pool("n2-standard-8"), {"n2_cpus": 8, "pd_ssd": 100}),
        (pool("c2-standard-4"), {"c2_cpus": 4, "pd_ssd": 100}),
        (
            pool("a3-highgpu-8g", acceleratorType="NVIDIA_H100_80GB", acceleratorCount=8),
            {"a3_cpus": 208, "nvidia_h100_gpus": 8, "pd_ssd": 100},
        ),
        (
            pool("a3-ultragpu-8g", acceleratorType="NVIDIA_H200_141GB", acceleratorCount=8),
            {"a3_cpus": 224, "nvidia_h200_gpus": 8, "hyperdisk-balanced GB*": 100},
        ),
        (
            pool("a4-highgpu-8g", acceleratorType="NVIDIA_B200", acceleratorCount=8),
            {"a4 vCPUs*": 224, "nvidia_b200_gpus": 8, "hyperdisk-balanced GB*": 100},
        ),
        (pool("ct5lp-hightpu-4t", tpuTopology="4x4"), {"tpu_v5e": 16, "pd_ssd": 100}),
        (pool("cloud-tpu", acceleratorType="TPU_V2", acceleratorCount=8), {"tpu_v2": 8, "pd_ssd": 100}),
    ],
)
def test_quotas_without_a_known_name_are_left_out(machine: dict[str, Any], expected: dict[str, int]) -> None:
    assert of(machine) == expected


def test_machines_that_are_not_on_file_are_counted() -> None:
    job = edited(custom_job(), "jobSpec", "workerPoolSpecs", 0, "machineSpec", "machineType", to="z9-giga-96")
    assert needed_quota(Job(CUSTOM_JOB, job)) == {"z9-giga-96 machines*": 1}


def test_what_has_no_quota_on_file_is_known() -> None:
    # A machine type or disk that is added is either given the name of its quota, or named here.
    accelerators = {(each.name, kind) for each in MACHINES.values() for kind in (each.accelerators or [""])}
    of_machines = {
        name
        for machine, kind in accelerators
        for name in of(pool(machine, **({"acceleratorType": kind, "acceleratorCount": 8} if kind else {})))
    }
    assert {name for name in of_machines if name.endswith(UNKNOWN_METRIC)} == {
        *("g4 vCPUs*", "a4 vCPUs*", "a4x vCPUs*", "tpu7x*", "hyperdisk-balanced GB*"),
        *("NVIDIA_RTX_PRO_6000*", "NVIDIA_GB200*"),
    }
    of_disks = {
        name for kind in DISK_TYPES for name in of(pool("n1-standard-4") | {"diskSpec": {"bootDiskType": kind}})
    }
    assert of_disks == {"cpus", "pd_ssd", "pd-standard GB*", "hyperdisk-balanced GB*"}


def test_jobs_on_a_persistent_resource_need_no_quota() -> None:
    assert of(pool("n1-standard-4"), persistentResourceId="mine") == {}


METRIC = "aiplatform.googleapis.com/custom_model_training_nvidia_l4_gpus"


def entry(value: str | None, locations: list[str], **dimensions: str) -> dict[str, Any]:
    details = [] if value is None else [{"value": value}]
    return {"dimensions": dimensions, "applicableLocations": locations, "details": details}


def granted(*entries: dict[str, Any], region: str = "us-central1") -> dict[str, float]:
    return granted_quota([{"metric": METRIC, "dimensionsInfos": list(entries)}], region)


HERE, ELSEWHERE = entry("8", ["us-central1"], region="us-central1"), entry("0", ["us-east1", "europe-west4"])


@pytest.mark.parametrize(("region", "amount"), [("us-central1", 8), ("us-east1", 0)])
def test_the_most_specific_entry_of_a_region_counts(region: str, amount: int) -> None:
    assert granted(HERE, ELSEWHERE, region=region) == {METRIC: amount}
    everywhere = entry("3", ["us-central1", "us-east1"])
    assert granted(HERE, ELSEWHERE, everywhere, region=region) == {METRIC: amount}


def test_a_quota_without_regions_is_global() -> None:
    assert granted(entry("5", ["global"])) == granted(entry("5", [])) == {METRIC: 5}


def test_entries_of_other_dimensions_do_not_count() -> None:
    assert granted(entry("9", ["us-central1"], region="us-central1", model="large"), HERE) == {METRIC: 8}


def test_minus_one_stands_for_unlimited() -> None:
    assert granted(entry("-1", ["us-central1"])) == {METRIC: UNLIMITED}


@pytest.mark.parametrize("entries", [(), (ELSEWHERE,), (entry(None, []),), (entry("many", []),)])
def test_an_unknown_value_is_left_out(entries: tuple[dict[str, Any], ...]) -> None:
    assert granted(*entries) == {}


def test_the_lowest_of_several_quotas_counts() -> None:
    infos = [{"metric": METRIC, "dimensionsInfos": [entry(value, [])]} for value in ("-1", "4", "6")]
    assert granted_quota(infos, "us-central1") == {METRIC: 4}


NEEDED = {"large": {"cpus": 96, "l4": 8}, "small": {"cpus": 4}, "search": {"cpus": 48, "l4": 4}}


def test_a_job_above_the_grant_is_named() -> None:
    assert find_shortages(NEEDED, {"cpus": 2200, "l4": 4}) == [Shortage("l4", 4, 12, {"large": 8}, True)]


def test_jobs_that_fit_singly_are_told_apart() -> None:
    (shortage,) = find_shortages(NEEDED, {"cpus": 100, "l4": UNLIMITED})
    assert shortage == Shortage("cpus", 100, 148, {"large": 96, "search": 48, "small": 4}, False)
    assert list(shortage.needed_by_job) == ["large", "search", "small"]


def test_no_grant_is_short_for_all() -> None:
    (shortage,) = find_shortages(NEEDED, {"l4": 0})
    assert (shortage.needed_by_job, shortage.is_by_job) == ({"large": 8, "search": 4}, True)


def test_enough_or_unknown_grants_are_no_shortage() -> None:
    assert find_shortages(NEEDED, {"cpus": 148, "tpu_v3": 0}) == []


IN_TABLE = {
    "large": {"a3_cpus": 208, "nvidia_h100_gpus": 8, "pd_ssd": 100},
    "small": {"cpus": 1500, "pd_ssd": 100},
    "other": {"cpus": 1000, "a4 vCPUs*": 224},
    "least": {"cpus": 96},
    "fourth": {"cpus": 4},
}
GRANTED = {"a3_cpus": UNLIMITED, "cpus": 2200, "nvidia_h100_gpus": 0, "pd_ssd": 40960}


def test_the_table_shows_needed_beside_granted() -> None:
    assert quota_table("acme-dev", "us-central1", IN_TABLE, GRANTED) == [
        "Quota in us-central1: needed by all jobs at once, and granted to acme-dev",
        "  quota             needed    granted",
        "  a3_cpus              208  unlimited",
        "  a4 vCPUs*            224          ?",
        "  cpus               2,600      2,200",
        "  nvidia_h100_gpus       8          0",
        "  pd_ssd               200     40,960",
        "  ? no such quota is listed for the project, or its name is not on file (*)",
    ]


def test_the_mark_is_explained_where_shown() -> None:
    assert not any("?" in line for line in quota_table("p", "r", {"a": {"cpus": 4}}, {"cpus": 4.0}))


def test_what_is_rendered_can_be_parsed() -> None:
    table = "\n".join(quota_table("acme-dev", "us-central1", IN_TABLE, GRANTED))
    assert parse_quota_table(["Cost in us-central1: …", "", f"{table}\n"]) == {
        "a3_cpus": "unlimited",
        "a4 vCPUs*": "?",
        "cpus": "2,200",
        "nvidia_h100_gpus": "0",
        "pd_ssd": "40,960",
    }
    west = "\n".join(quota_table("acme-west", "us-west1", {"a": {"cpus": 4, "tpus": 8}}, {"cpus": 8.0, "tpus": 8.0}))
    both = parse_quota_table([table, west])
    assert (both["cpus"], both["tpus"], both["pd_ssd"]) == ("2,200 or 8", "8", "40,960")
    assert parse_quota_table(["Quota in us-central1: what acme-dev is granted is unknown: no permission"]) == {}


def limit(*values: str | None, **dimensions: str) -> dict[str, Any]:
    """A limit with a default of each value, and the last for a region."""
    buckets: list[dict[str, Any]] = [{"effectiveLimit": value} if value is not None else {} for value in values]
    buckets[-1] |= {"dimensions": dimensions} if dimensions else {}
    return {"quotaBuckets": buckets}


@pytest.mark.parametrize(
    ("limits", "amount"),
    [
        ([limit("0", "8", region="us-central1")], 8),
        ([limit("3", "8", region="europe-west4")], 3),
        ([limit("5"), limit("2")], 2),
        ([limit("-1")], UNLIMITED),
        ([limit(None)], None),
        ([limit("0", "9", region="us-central1", model="large")], 0),
        ([{}], None),
        ([], None),
    ],
)
def test_the_most_specific_bucket_of_a_limit_counts(limits: list[Any], amount: float | None) -> None:
    assert granted_limit({"consumerQuotaLimits": limits}, "us-central1") == amount


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("cpus", "CPUs"),
        ("preemptible_cpus", "PreemptibleCPUs"),
        ("n2_cpus", "N2CPUs"),
        ("nvidia_t4_gpus", "T4GPUs"),
        ("nvidia_a100_80gb_gpus", "A10080GBGPUs"),
        ("preemptible_nvidia_a100_gpus", "PreemptibleA100GPUs"),
        ("nvidia_h100_mega_gpus", "H100MEGAGPUs"),
        ("nvidia_b200_gpus", "B200GPUs"),
        ("tpu_v3", "V3TPUs"),
        ("tpu_v6e", "V6ETPU"),
    ],
)
def test_ids_follow_googles_scheme(metric: str, name: str) -> None:
    assert quota_id(f"{METRIC_PREFIX}{metric}") == f"CustomModelTraining{name}PerProjectPerRegion"
