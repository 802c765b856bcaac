"""The lines of a preview on quotas, and the example of docs/cost.md."""

import re
from pathlib import Path

from vertex_training.preview.cost_and_needed_quota_table import estimate_quotas_by_job_and_metric
from vertex_training.preview.quota_check import render_shortage_line

from tests.components.preview.test_cost_and_needed_quota_table import PAGE, page_settings
from tests.vertex_api.estimates.test_quota import GRANTED, IN_TABLE
from vertex_api.estimates.quota import UNLIMITED, find_shortages, quota_table


def test_the_page_shows_the_printed_lines(tmp_path: Path) -> None:
    settings = page_settings(tmp_path)
    needed = estimate_quotas_by_job_and_metric(settings)
    granted = {"cpus": 2200, "nvidia_t4_gpus": 12, "pd_ssd": UNLIMITED, "preemptible_cpus": 300}
    granted["preemptible_nvidia_h100_gpus"] = 0
    table = "\n".join(quota_table(settings.project, settings.region, needed, granted))
    (shortage,) = find_shortages(needed, granted)
    line = render_shortage_line(settings.project, settings.region, shortage)
    shown = re.findall(r"^```\n(.*?)\n```", PAGE, re.MULTILINE | re.DOTALL)
    assert [block for block in shown if "granted to" in block] == [table, line]


def test_a_shortage_names_jobs_and_where_to_ask() -> None:
    lines = [render_shortage_line("acme-dev", "us-central1", each) for each in find_shortages(IN_TABLE, GRANTED)]
    ask = "at https://console.cloud.google.com/iam-admin/quotas?project=acme-dev"
    assert lines == [
        "cpus: all jobs at once need 2,600, more than the 2,200 granted to acme-dev in us-central1, so some wait in "
        "JOB_STATE_QUEUED for others to end: small (needs 1,500), other (needs 1,000), least (needs 96) and 1 more; "
        f"ask for more aiplatform.googleapis.com/custom_model_training_cpus {ask}",
        "nvidia_h100_gpus: large (needs 8) cannot run with the 0 granted to acme-dev in us-central1; "
        f"ask for more aiplatform.googleapis.com/custom_model_training_nvidia_h100_gpus {ask}",
    ]
