"""What `create_foundation` adds to a target: jobs of a program are reviewed as declared ones are."""

from pathlib import Path
from unittest import mock

import pytest
from vertex_training import CustomJob
from vertex_training.errors import QuotaInsufficient
from vertex_training.program import create_foundation

from tests.components.projects import CLOUD, load
from tests.components.targets.gcp.graph import forget_loops, graph
from tests.vertex_api.jobs import custom_job, edited

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
STACK = CLOUD.replace("us-central1", "europe-west9") + '  vertex-training:guardrails: {{quotaCheck: "{mode}"}}\n'
MACHINE = {"machineType": "a3-highgpu-8g", "acceleratorType": "NVIDIA_H100_80GB", "acceleratorCount": 8}


def run(root: Path, mode: str, *, preview: bool) -> None:
    settings = load(root, STACK.format(mode=mode))

    def program() -> None:
        spec = edited(custom_job(), "jobSpec", "workerPoolSpecs", 0, "machineSpec", to=MACHINE)
        CustomJob("large", spec, foundation=create_foundation(settings))

    try:
        graph(program, preview=preview)
    finally:
        forget_loops()


def test_a_preview_reports_program_jobs(tmp_path: Path) -> None:
    with mock.patch("pulumi.warn") as warned, mock.patch("pulumi.log.info") as logged:
        run(tmp_path, "off", preview=True)
    assert warned.call_args.args[0].startswith("NVIDIA_H100_80GB is not offered for training in europe-west9 ")
    assert "(large)" in warned.call_args.args[0]
    assert "Cost in europe-west9: ~101.03 USD an hour" in logged.call_args.args[0]


@pytest.mark.parametrize("preview", [True, False])
def test_too_small_quotas_block_jobs_of_a_program(tmp_path: Path, preview: bool) -> None:
    granted = mock.patch(
        "vertex_training.review.diagnostics.fetch",
        lambda _project, _region, names: dict.fromkeys(names, 0),
    )
    with granted, mock.patch("pulumi.warn"), mock.patch("pulumi.log.info"), pytest.raises(QuotaInsufficient) as refused:
        run(tmp_path, "block", preview=preview)
    assert "large (needs " in str(refused.value)
