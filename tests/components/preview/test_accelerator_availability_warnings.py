"""The warning of a preview about regions."""

from pathlib import Path

from vertex_training.preview.accelerator_availability_warnings import render_availability_warning_lines
from vertex_training.settings.settings import Settings

from tests.components.projects import CLOUD_INCLUDING, load
from vertex_api.estimates.availability import AS_OF

STACK = CLOUD_INCLUDING.replace("us-central1", "europe-west9")
JOB = """
  {name}:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {{machineType: a3-highgpu-8g, acceleratorType: NVIDIA_H100_80GB, acceleratorCount: 8}}
          containerSpec: {{imageUri: trainer}}
"""


def settings(root: Path, *names: str) -> Settings:
    return load(root, STACK, jobs="customJobs:" + "".join(JOB.format(name=name) for name in names))


def test_one_warning_names_accelerator_jobs_and_regions(tmp_path: Path) -> None:
    first, last = render_availability_warning_lines(
        "europe-west9", settings(tmp_path, "a", "b", "c", "d", "e").jobs, []
    )
    assert first.startswith(
        f"NVIDIA_H100_80GB is not offered for training in europe-west9 as of {AS_OF} (a, b, c and 2 more); offered in "
    )
    assert "us-central1" in first and "europe-west4" in first and "me-west1" not in first
    assert last.startswith("Tables change: see ")


def test_machines_that_stay_are_named_as_jobs_are(tmp_path: Path) -> None:
    pool = {"machineSpec": {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}}
    assert render_availability_warning_lines("europe-west2", (), [pool]) == []
    said, _ = render_availability_warning_lines("europe-west9", settings(tmp_path).jobs, [pool])
    assert said.startswith(
        f"NVIDIA_L4 is not offered for training in europe-west9 as of {AS_OF} (persistentResource); "
    )


def test_available_accelerators_cause_no_warning(tmp_path: Path) -> None:
    assert render_availability_warning_lines("us-central1", settings(tmp_path, "a").jobs, []) == []


def test_an_unknown_region_suggests_the_nearest(tmp_path: Path) -> None:
    (line,) = render_availability_warning_lines("us-central2", settings(tmp_path, "a").jobs, [])
    assert line.startswith(
        f"us-central2 is not known as a region with training as of {AS_OF}; did you mean us-central1?"
    )
