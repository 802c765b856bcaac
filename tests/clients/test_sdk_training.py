"""Google's SDK: training pipelines, which end with a model."""

from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator import packages
from tests.vertex_emulator.running import IMAGE, RunningEmulator

SAVE = """
import os
folder = os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/")
os.makedirs(folder)
open(f"{folder}m", "w").write("model")
"""
SERVING = {"model_serving_container_image_uri": "localhost/serve:1", "model_serving_container_ports": [8080]}


def test_container_training_returns_a_model(aiplatform: Any, emulator: RunningEmulator) -> None:
    job = aiplatform.CustomContainerTrainingJob(
        display_name="sdk-container",
        container_uri=IMAGE,
        command=["python3", "-c", SAVE],
        model_description="by a test",
        **SERVING,
    )
    model = job.run(
        model_display_name="a model",
        base_output_dir="gs://sdk-models/container",
        machine_type="n1-standard-4",
        replica_count=1,
        model_labels={"team": "vision"},
    )
    assert job.state.name == "PIPELINE_STATE_SUCCEEDED"
    assert (model.display_name, model.description, model.labels) == ("a model", "by a test", {"team": "vision"})
    assert model.uri == "gs://sdk-models/container/model/"
    assert (emulator.data / "gcs/sdk-models/container/model/m").read_text() == "model"
    assert model.container_spec.image_uri == "localhost/serve:1"
    assert model.resource_name in [
        each.resource_name for each in aiplatform.Model.list(filter='display_name="a model"')
    ]
    assert aiplatform.CustomContainerTrainingJob.get(job.resource_name).display_name == "sdk-container"
    model.delete()
    job.delete()
    assert aiplatform.Model.list(filter='display_name="a model"') == []


def test_a_failed_pipeline_raises_with_its_cause(aiplatform: Any) -> None:
    job = aiplatform.CustomContainerTrainingJob(
        display_name="sdk-broken", container_uri=IMAGE, command=["python3", "-c", "raise SystemExit(3)"]
    )
    with pytest.raises(RuntimeError, match=r"workerpool0-0 exited with a non-zero status of 3"):
        job.run(base_output_dir="gs://sdk-models/broken", machine_type="n1-standard-4")


def test_a_script_runs_as_an_installed_package(aiplatform: Any, emulator: RunningEmulator, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys\nprint('trained with', sys.argv[1:])\n")
    job = aiplatform.CustomTrainingJob(display_name="sdk-custom", script_path=str(script), container_uri=IMAGE)
    job.run(base_output_dir="gs://sdk-models/script", args=["--epochs=3"], machine_type="n1-standard-4")
    (custom,) = aiplatform.CustomJob.list(filter='display_name="sdk-custom-custom-job"')
    assert "trained with ['--epochs=3']" in emulator.lines(custom.resource_name)


def test_a_package_in_a_bucket_runs(aiplatform: Any, emulator: RunningEmulator) -> None:
    script = f"import sys; print('package', sys.argv[1:]); {SAVE}"
    wheel = packages.wheel(emulator.data / "gcs" / "sdk-packages", "trainer", script)
    job = aiplatform.CustomPythonPackageTrainingJob(
        display_name="sdk-package",
        python_package_gcs_uri=f"gs://sdk-packages/{wheel}",
        python_module_name="trainer.task",
        container_uri=IMAGE,
        **SERVING,
    )
    model = job.run(base_output_dir="gs://sdk-models/package", args=["--x"], machine_type="n1-standard-4")
    assert model.uri == "gs://sdk-models/package/model/"
    (custom,) = aiplatform.CustomJob.list(filter='display_name="sdk-package-custom-job"')
    assert "package ['--x']" in emulator.lines(custom.resource_name)
