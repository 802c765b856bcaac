"""What a preview ends with: cost, quotas and accelerators, and the examples of docs/cost.md with their figures."""

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from unittest import mock

import pytest
import yaml
from vertex_training.errors import DeclarationErrors
from vertex_training.plan.plan import Plan
from vertex_training.plan.training import Training
from vertex_training.review.diagnostics import MAX_LINES, accelerator_lines, cost_lines, shortage_line
from vertex_training.settings.settings import Settings

from tests.blocks import taken
from tests.components.projects import CLOUD_INCLUDING, load, write
from tests.vertex_api.estimates.test_quota import GRANTED, IN_TABLE
from vertex_api.estimates.availability import AS_OF
from vertex_api.estimates.cost import Cost
from vertex_api.estimates.prices import Money
from vertex_api.estimates.quota import UNLIMITED, find_shortages, quota_table
from vertex_api.names import CUSTOM_JOB

PAGE = (Path(__file__).parents[3] / "docs" / "cost.md").read_text()
TODAY = date(2026, 11, 21)


def page_settings(root: Path, **more: object) -> Settings:
    """The settings that the page's files make, with more keys in the stack file."""
    files = dict(re.findall(r"^```yaml\n# ([^/\s]\S*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    assert list(files) == ["training/vision.yaml", "stacks/Pulumi.dev.yaml"]
    write(root, files)
    given = yaml.safe_load(files["stacks/Pulumi.dev.yaml"])["config"]
    given |= {f"vertex-training:{key}": value for key, value in more.items()}
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    return Settings.load_from_config("team", "dev", root, config)


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_the_page_shows_the_printed_report(tmp_path: Path) -> None:
    (kept,) = re.findall(r"^  vertex-training:persistentResource:\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    stacks = page_settings(tmp_path), page_settings(tmp_path, persistentResource=yaml.safe_load(kept))
    shown = taken("docs/cost.md", "output", "Cost in ")
    assert shown == [text(cost_lines(settings.plan, TODAY)) for settings in stacks]


def test_the_page_shows_the_last_runs(tmp_path: Path) -> None:
    (record,) = taken("docs/cost.md", "output", "2026-")
    plan = replace(page_settings(tmp_path).plan, records=lambda: {"search": record.strip(), "gone": record.strip()})
    lines = cost_lines(plan, TODAY)
    assert taken("docs/cost.md", "output", "  search: ") == [f"{line}\n" for line in lines if "the last" in line]
    heading = "Cost in us-central1: 104.74 USD an hour, 5,336.01 USD at most, "
    assert lines[0].startswith(heading) and f"`{lines[0].removeprefix(heading)}`" in PAGE


def test_the_page_shows_the_guardrail_violations(tmp_path: Path) -> None:
    (rules,) = re.findall(r"^  vertex-training:guardrails:\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    with pytest.raises(DeclarationErrors) as refused:
        page_settings(tmp_path, guardrails=yaml.safe_load(rules))
    assert taken("docs/cost.md", "output", "2 problems") == [f"{refused.value}\n"]


def test_the_page_shows_the_printed_quotas(tmp_path: Path) -> None:
    plan = page_settings(tmp_path).plan
    granted = {"cpus": 2200, "nvidia_t4_gpus": 12, "pd_ssd": UNLIMITED, "preemptible_cpus": 300}
    granted["preemptible_nvidia_h100_gpus"] = 0
    table = text(quota_table(plan.project, str(plan.region), plan.quotas, granted))
    assert taken("docs/cost.md", "output", "Quota in us-central1: needed") == [table]
    (shortage,) = find_shortages(plan.quotas, granted)
    line = shortage_line(plan.project, str(plan.region), shortage)
    assert taken("docs/cost.md", "output", "preemptible_nvidia_h100_gpus: ") == [f"{line}\n"]


def job(total: float, missing: tuple[str, ...] = ()) -> Cost:
    days = frozenset({"2026-11-01"})
    return Cost(Money(total / 10), Money(total), max_seconds=36000, has_timeout=True, unpriced=missing, as_of=days)


def shown(costs: dict[str, Cost], today: date = TODAY) -> list[str]:
    plan = Plan({"target": "gcp"}, tuple(Training(CUSTOM_JOB, name, None) for name in costs), region="us-central1")
    quotas = {name: {"cpus": 4} for name in costs}
    with mock.patch.object(Plan, "costs", costs), mock.patch.object(Plan, "quotas", quotas):
        return cost_lines(plan, today)


def row(found: list[str], name: str) -> list[str]:
    """The cells of a line after its name."""
    return next(line.removeprefix(f"  {name}").split() for line in found if line.startswith(f"  {name} "))


def test_only_the_most_expensive_jobs_are_shown() -> None:
    found = shown({f"job-{index}": job(index) for index in range(1000)})
    named = [line.split()[0] for line in found if line.startswith("  job-")]
    assert named == [f"job-{index}" for index in range(999, 999 - MAX_LINES, -1)]
    # 0 + 1 + … + 999 = 499,500; the ten dearest are 999 + … + 990 = 9,945
    assert row(found, "990 more") == ["48,955.50", "489,555.00"]
    assert row(found, "stack")[:2] == ["49,950.00", "499,500.00"]
    assert len(found) < MAX_LINES + 8


def test_one_job_needs_no_sum() -> None:
    assert [line for line in shown({"only": job(1)}) if line.startswith("  stack")] == []


def test_unpriced_jobs_come_first_outside_the_sum() -> None:
    found = shown({"dear": job(50), "unknown": job(3, missing=("NVIDIA_B200",))})
    assert found[2].split()[:3] == ["unknown", "?", "?"]
    assert row(found, "stack")[:2] == ["5.00", "50.00"]
    assert "  unknown: no price on file for NVIDIA_B200" in found
    assert "  The sum is without 1 job with no price on file" in found


def test_prices_of_another_region_are_marked_and_named() -> None:
    far = replace(job(30), nearest=(("pd-ssd", "europe-west1"), ("NVIDIA_L4", "europe-west1")))
    found = shown({"far": far, "plain": job(50)})
    assert found[0] == "Cost in us-central1: ~8.00 USD an hour, ~80.00 USD at most"
    assert [row(found, name)[:2] for name in ("far", "plain", "stack")] == [
        ["~3.00", "~30.00"],
        ["5.00", "50.00"],
        ["~8.00", "~80.00"],
    ]
    assert "  ~ pd-ssd, NVIDIA_L4 at the price of europe-west1, the nearest region with one on file: far" in found
    without = shown({"far": replace(far, unpriced=("NVIDIA_B200",)), "plain": job(50)})
    assert without[0] == "Cost in us-central1: 5.00 USD an hour, 50.00 USD at most"


def test_old_prices_are_said_to_be_old() -> None:
    old = "  The prices as of 2026-11-01 are more than 90 days old: `vertex-training prices --update FILE` gets today's"
    newest, oldest = (shown({"a": job(1)}, date(2027, 1, day))[-1] for day in (30, 31))
    assert oldest.startswith(old) and "days old" not in newest


def test_a_shortage_names_jobs_and_where_to_ask() -> None:
    lines = [shortage_line("acme-dev", "us-central1", each) for each in find_shortages(IN_TABLE, GRANTED)]
    ask = "at https://console.cloud.google.com/iam-admin/quotas?project=acme-dev"
    assert lines == [
        "cpus: all jobs at once need 2,600, more than the 2,200 granted to acme-dev in us-central1, so some wait in "
        "JOB_STATE_QUEUED for others to end: small (needs 1,500), other (needs 1,000), least (needs 96) and 1 more; "
        f"ask for more aiplatform.googleapis.com/custom_model_training_cpus {ask}",
        "nvidia_h100_gpus: large (needs 8) cannot run with the 0 granted to acme-dev in us-central1; "
        f"ask for more aiplatform.googleapis.com/custom_model_training_nvidia_h100_gpus {ask}",
    ]


H100 = """
  {name}:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {{machineType: a3-highgpu-8g, acceleratorType: NVIDIA_H100_80GB, acceleratorCount: 8}}
          containerSpec: {{imageUri: us-docker.pkg.dev/p/r/trainer}}
"""


def accelerators(root: Path, region: str, *names: str, more: str = "") -> list[str]:
    stack = CLOUD_INCLUDING.replace("us-central1", region) + more
    return accelerator_lines(
        load(root, stack, jobs="customJobs:" + "".join(H100.format(name=name) for name in names)).plan
    )


def test_one_warning_names_accelerator_jobs_and_regions(tmp_path: Path) -> None:
    first, last = accelerators(tmp_path, "europe-west9", "a", "b", "c", "d", "e")
    assert first.startswith(
        f"NVIDIA_H100_80GB is not offered for training in europe-west9 as of {AS_OF} (a, b, c and 2 more); offered in "
    )
    assert "us-central1" in first and "europe-west4" in first and "me-west1" not in first
    assert last.startswith("Tables change: see ")
    (shown,) = taken("docs/cost.md", "output", "NVIDIA_H100_80GB is not offered")
    assert accelerators(tmp_path, "europe-west9", "large")[0].startswith(shown.removesuffix("…\n"))


def test_machines_that_stay_are_named_as_jobs_are(tmp_path: Path) -> None:
    machine = "{machineType: g2-standard-4, acceleratorType: NVIDIA_L4, acceleratorCount: 1}"
    pools = f"  vertex-training:persistentResource: {{name: training, resourcePools: [{{machineSpec: {machine}}}]}}\n"
    assert accelerators(tmp_path, "europe-west2", more=pools) == []
    said, _ = accelerators(tmp_path, "europe-west9", more=pools)
    assert said.startswith(
        f"NVIDIA_L4 is not offered for training in europe-west9 as of {AS_OF} (persistentResource); "
    )


def test_available_accelerators_cause_no_warning(tmp_path: Path) -> None:
    assert accelerators(tmp_path, "us-central1", "a") == []


def test_an_unknown_region_suggests_the_nearest(tmp_path: Path) -> None:
    (line,) = accelerators(tmp_path, "us-central2", "a")
    assert line.startswith(
        f"us-central2 is not known as a region with training as of {AS_OF}; did you mean us-central1?"
    )
