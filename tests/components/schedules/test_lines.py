"""What a preview says of schedules: their next times and what they cost; and that guardrails hold for their jobs."""

from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pulumi
import pytest
from vertex_training.plan.training import Timetable
from vertex_training.review.diagnostics import show_cost, warn_of_accelerators

from tests.blocks import taken
from tests.components.projects import CLOUD_INCLUDING, load, problems

NOW = datetime(2026, 10, 23, 12, tzinfo=UTC)
JOBS = """
customJobs:
  once: JOB}
  a: JOB, lifecycle: {run: scheduled}}
  b: JOB, lifecycle: {run: scheduled}}
schedules:
  hourly: {cron: "0 * * * *", job: a, paused: true}
  weekly: {cron: "0 2 * * SUN", jobs: [a, b]}
""".replace(
    "JOB",
    "{jobSpec: {scheduling: {timeout: 7200s}, workerPoolSpecs: "
    "[{machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: us-docker.pkg.dev/p/r/a}}]}",
)


def shown(root: Path, jobs: str, region: str = "us-central1") -> list[str]:
    """The lines that a preview shows."""
    settings = load(root, CLOUD_INCLUDING.replace("us-central1", region), jobs=jobs)
    with mock.patch.object(pulumi.runtime, "is_dry_run", lambda: True), mock.patch.object(pulumi.log, "info") as info:
        show_cost(settings.plan)
    (call,) = info.call_args_list
    return str(call.args[0]).splitlines()


def test_next_times_follow_the_zone_s_clocks() -> None:
    assert Timetable("nightly", "0 2 * * *", (), "Europe/Berlin").upcoming(NOW) == (
        "next runs: Sat 2026-10-24 02:00 CEST, Sun 2026-10-25 02:00 CEST, Mon 2026-10-26 02:00 CET"
    )


def test_a_paused_schedule_says_that_it_does_not_run() -> None:
    line = Timetable("nightly", "0 2 * * *", (), paused=True).upcoming(NOW)
    assert line.startswith("paused; without that, the next runs were: Sat 2026-10-24 02:00 UTC, ")


def test_schedules_cost_a_run_and_a_month(tmp_path: Path) -> None:
    lines = shown(tmp_path, JOBS)
    assert lines[0].startswith("Cost in us-central1: 0.25 USD an hour, 0.49 USD at most")
    assert [line.split()[0] for line in lines[2:3]] == ["once"]
    assert lines[-4:] == [
        "Schedules in us-central1, at most by list price:",
        "  hourly: 0.49 USD a run, 358.35 USD a month (730.5 runs a month), paused",
        "  weekly: 0.98 USD a run, 4.25 USD a month (4.3 runs a month)",
        "  all that are not paused: 4.25 USD a month",
    ]


def test_the_page_shows_the_printed_cost(tmp_path: Path) -> None:
    jobs = "".join(line for line in JOBS.partition("schedules:")[0].splitlines(keepends=True) if "  b: " not in line)
    (page,) = taken("docs/cost.md", "output", "Schedules in us-central1")
    lines = shown(tmp_path, jobs + 'schedules: {nightly: {cron: "0 2 * * *", job: a}}')
    assert lines[-3:] == page.splitlines()


def test_a_stack_may_have_scheduled_jobs_only(tmp_path: Path) -> None:
    once = next(line for line in JOBS.splitlines() if line.startswith("  once:"))
    assert shown(tmp_path, JOBS.replace(once, ""))[0] == "Schedules in us-central1, at most by list price:"


def test_a_run_without_a_price_is_said(tmp_path: Path) -> None:
    unknown = "n1-standard-4, acceleratorType: NVIDIA_B200, acceleratorCount: 8"
    text = JOBS.replace("n1-standard-4", unknown.replace("n1-standard-4", "a4-highgpu-8g"))
    assert any("no price on file for" in line and "weekly" in line for line in shown(tmp_path, text))


def test_a_run_names_prices_of_another_region(tmp_path: Path) -> None:
    gpus = "n1-standard-4, acceleratorType: NVIDIA_TESLA_V100, acceleratorCount: 1"
    lines = shown(tmp_path, JOBS.replace("n1-standard-4", gpus), "europe-west1")
    nearest = ", NVIDIA_TESLA_V100 at the price of europe-west4"
    assert [line.partition(": ")[0] for line in lines if line.endswith((nearest, f"{nearest}, paused"))] == [
        *("  hourly", "  weekly")
    ]


def test_quotas_and_regions_of_scheduled_jobs_are_checked(tmp_path: Path) -> None:
    machine = "{machineType: n1-standard-4, acceleratorType: NVIDIA_TESLA_T4, acceleratorCount: 1}"
    text = JOBS.replace("{machineType: n1-standard-4}", machine)
    settings = load(tmp_path, CLOUD_INCLUDING.replace("us-central1", "europe-west6"), jobs=text)
    assert {"a", "b"} <= settings.plan.quotas.keys()
    with mock.patch.object(pulumi.runtime, "is_dry_run", lambda: True), mock.patch.object(pulumi, "warn") as warn:
        warn_of_accelerators(settings.plan)
    assert "(once, a, b)" in warn.call_args.args[0]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("{maxTotalCost: 1.2}", "1.47 USD at most by list price; allowed: 1.20 for all jobs"),
        (
            "{maxMonthlyCost: 4.2}",
            "vertex-training:guardrails.maxMonthlyCost: 4.25 USD a month at most by list price; allowed: 4.20 for all "
            "schedules and machines that stay; most expensive: weekly 4.25",
        ),
        ("{maxTimeout: 3600s}", "jobs.yaml:4: customJobs.a.jobSpec.scheduling.timeout: guardrails.maxTimeout"),
        ("{machineTypes: [e2-*]}", "jobs.yaml:4: customJobs.a.jobSpec.workerPoolSpecs[0].machineSpec.machineType"),
    ],
)
def test_guardrails_hold_for_a_run(rules: str, message: str, tmp_path: Path) -> None:
    found = problems(tmp_path, f"{CLOUD_INCLUDING}  vertex-training:guardrails: {rules}\n", jobs=JOBS)
    assert any(message in line for line in found), found


def test_the_limit_of_a_month_names_prices_of_another_region(tmp_path: Path) -> None:
    gpus = "n1-standard-4, acceleratorType: NVIDIA_TESLA_V100, acceleratorCount: 1"
    base = CLOUD_INCLUDING.replace("us-central1", "europe-west1")
    stack = f"{base}  vertex-training:guardrails: {{maxMonthlyCost: 4}}\n"
    (found,) = problems(tmp_path, stack, jobs=JOBS.replace("n1-standard-4", gpus))
    assert " a month at most by list price (NVIDIA_TESLA_V100 at the price of europe-west4); allowed: 4.00 for" in found


@pytest.mark.parametrize("limit", ["4.26", "359"])
def test_a_month_without_paused_schedules_is_allowed(limit: str, tmp_path: Path) -> None:
    guardrail = f"  vertex-training:guardrails: {{maxMonthlyCost: {limit}}}\n"
    plan = load(tmp_path, CLOUD_INCLUDING + guardrail, jobs=JOBS).plan
    assert plan.monthly == {"weekly": pytest.approx(4.25, abs=0.01)}
    assert [each.text for each in plan.near if each.rule == "maxMonthlyCost"] == (
        ["4.25 of 4.26 USD a month"] if limit == "4.26" else []
    )


def test_machines_that_stay_cost_each_month(tmp_path: Path) -> None:
    pool = "{machineSpec: {machineType: n1-standard-4}, replicaCount: 2}"
    machines = f"  vertex-training:persistentResource: {{name: pool, resourcePools: [{pool}]}}\n"
    plan = load(tmp_path, CLOUD_INCLUDING + machines, jobs=JOBS).plan
    assert plan.monthly["persistentResource"] == pytest.approx(plan.costs["persistentResource"].hourly * 730)
