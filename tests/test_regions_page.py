"""docs/regions.md: its stacks are valid, differ where they must, and its messages are those that are printed."""

import json
import re
from pathlib import Path

import pytest
import yaml
from vertex_training.errors import DeclarationErrors
from vertex_training.jobs.causes import likely_causes
from vertex_training.jobs.failures import capacity_advice
from vertex_training.settings.settings import Settings

from tests.blocks import taken
from tests.components.projects import write
from tests.test_docs import DOCS

PAGE = (DOCS / "regions.md").read_text()
FILES = dict(re.findall(r"^```yaml\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def load(root: Path, stack: str, **keys: str) -> Settings:
    write(root, {**FILES, "large/Dockerfile": "FROM python:3.11\n"})
    given = yaml.safe_load(FILES[f"stacks/Pulumi.{stack}.yaml"])["config"]
    given |= {f"vertex-training:{key}": value for key, value in keys.items()}
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    return Settings.load_from_config("vertex-training", stack, root, config)


def test_the_stacks_share_jobs_and_nothing_regional(tmp_path: Path) -> None:
    eu, us = (load(tmp_path, stack) for stack in ("eu", "us"))
    assert (eu.region, us.region) == ("europe-west4", "us-central1")
    assert eu.cloud is not None and us.cloud is not None
    for settings in (eu, us):
        assert settings.cloud is not None
        assert f"/locations/{settings.region}/" in settings.cloud["kmsKey"]
        (job,) = settings.jobs
        (pool,) = job.job.job_spec["workerPoolSpecs"]
        assert pool["containerSpec"]["args"] == [f"--data=/gcs/acme-data-{settings.stack}/large"]
    assert [settings.cloud["bucket"]["name"] for settings in (eu, us) if settings.cloud] == [
        "acme-dev-vertex-training-eu",
        "acme-dev-vertex-training-us",
    ]
    assert us.images == {"large": {"stack": "eu"}}
    assert us.cloud["registry"]["existing"].rpartition("/")[2] == eu.cloud["registry"]["repository"]


def test_a_key_of_the_other_region_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DeclarationErrors, match="vertex-training:kmsKey"):
        load(tmp_path, "us", kmsKey=yaml.safe_load(FILES["stacks/Pulumi.eu.yaml"])["config"]["vertex-training:kmsKey"])


def test_the_page_shows_the_printed_failure(tmp_path: Path) -> None:
    (job,) = load(tmp_path, "eu").jobs
    name = "projects/123456789012/locations/europe-west4/customJobs/1"
    error = "Resources are insufficient in region: europe-west4. Try a different region or use a different accelerator."
    lines = [
        f"large failed: {error}",
        *(f"  likely cause: {cause}" for cause in likely_causes([error])),
        *capacity_advice({"name": name, **job.job.fields}),
    ]
    (shown,) = taken("docs/regions.md", "output", "large failed")
    assert shown.splitlines() == lines
