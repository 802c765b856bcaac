"""The lines of cost and quota in a preview, and the example of docs/cost.md, whose figures these are."""

import json
import re
from datetime import date
from pathlib import Path

import pytest
import yaml
from vertex_training.errors import DeclarationErrors
from vertex_training.preview.cost_and_needed_quota_table import (
    MAX_LINES,
    estimate_quotas_by_job_and_metric,
    render_cost_lines,
)
from vertex_training.settings.settings import Settings

from tests.components.projects import write
from vertex_api.estimates.cost import Cost

PAGE = (Path(__file__).parents[3] / "docs" / "cost.md").read_text()
TODAY = date(2026, 11, 21)


def job(total: float, missing: tuple[str, ...] = ()) -> Cost:
    days = frozenset({"2026-11-01"})
    return Cost(total / 10, total, max_seconds=36000, has_timeout=True, unpriced=missing, as_of=days)


def shown(costs: dict[str, Cost], today: date = TODAY) -> list[str]:
    return render_cost_lines("us-central1", costs, {name: {"cpus": 4} for name in costs}, today)


def row(found: list[str], name: str) -> list[str]:
    """The cells of a line after its name."""
    return next(line.removeprefix(f"  {name}").split() for line in found if line.startswith(f"  {name} "))


def page_settings(root: Path, **more: object) -> Settings:
    """The settings that the page's files make, with more keys in the stack file."""
    files = dict(re.findall(r"^```yaml\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    assert list(files) == ["training/vision.yaml", "stacks/Pulumi.dev.yaml"]
    write(root, files)
    given = yaml.safe_load(files["stacks/Pulumi.dev.yaml"])["config"]
    given |= {f"vertex-training:{key}": value for key, value in more.items()}
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    return Settings.load_from_config("team", "dev", root, config)


def test_the_page_shows_the_printed_report(tmp_path: Path) -> None:
    (kept,) = re.findall(r"^```yaml\nvertex-training:persistentResource:\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    printed = [
        "\n".join(
            render_cost_lines(settings.region, settings.costs, estimate_quotas_by_job_and_metric(settings), TODAY)
        )
        for settings in (page_settings(tmp_path), page_settings(tmp_path, persistentResource=yaml.safe_load(kept)))
    ]
    assert re.findall(r"^```\n(Cost in .*?)\n```", PAGE, re.MULTILINE | re.DOTALL) == printed


def test_the_page_shows_the_guardrail_violations(tmp_path: Path) -> None:
    rules = {"machineTypes": ["n1-*", "g2-*"], "requireTimeout": True, "maxTimeout": "86400s"}
    with pytest.raises(DeclarationErrors) as refused:
        page_settings(tmp_path, guardrails=rules)
    assert re.findall(r"^```\n(2 problems.*?)\n```", PAGE, re.MULTILINE | re.DOTALL) == [str(refused.value)]


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


def test_old_prices_are_said_to_be_old() -> None:
    old = "  The prices as of 2026-11-01 are more than 90 days old: python -m tools.refresh_prices"
    assert old not in shown({"a": job(1)}, date(2027, 1, 30))
    assert old in shown({"a": job(1)}, date(2027, 1, 31))
