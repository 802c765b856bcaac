"""Google's SDK (`google.cloud.aiplatform`), unmodified, set up by the lines that `env` prints."""

from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions

from tests.clients.conftest import IDLE
from tests.vertex_emulator.running import IMAGE, RunningEmulator, pool

METRIC = (
    "import json, os, sys; x = sys.argv[-1].removeprefix('--x=');"
    "entry = {'timestamp': 1.0, 'trial': '1', 'loss': x, 'global_step': '1', 'checkpoint_path': ''};"
    "open(os.environ['CLOUD_ML_HP_METRIC_FILE'], 'w').write(json.dumps(entry) + '\\n')"
)


def snake(script: str, **container: Any) -> dict[str, Any]:
    """A worker pool as the SDK's documentation writes it."""
    spec = {"image_uri": IMAGE, "command": ["python3", "-c", script], **container}
    return {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": spec}


def test_a_custom_job_runs_is_listed_and_deleted(aiplatform: Any, emulator: RunningEmulator) -> None:
    script = (
        "import os; folder = os.environ['AIP_MODEL_DIR'].replace('gs://', '/gcs/'); os.makedirs(folder);"
        "open(folder + 'm', 'w').write('model')"
    )
    job = aiplatform.CustomJob(
        display_name="sdk-run", worker_pool_specs=[snake(script)], base_output_dir="gs://sdk/run", labels={"a": "b"}
    )
    job.run()
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    assert (emulator.data / "gcs/sdk/run/model/m").read_text() == "model"
    (listed,) = aiplatform.CustomJob.list(filter='display_name="sdk-run" AND state="JOB_STATE_SUCCEEDED"')
    assert listed.resource_name == job.resource_name
    assert aiplatform.CustomJob.get(job.resource_name).labels == {"a": "b"}
    job.delete()
    with pytest.raises(exceptions.NotFound):
        aiplatform.CustomJob.get(job.resource_name)


def test_a_submitted_job_is_cancelled(aiplatform: Any, emulator: RunningEmulator) -> None:
    job = aiplatform.CustomJob(display_name="sdk-cancel", worker_pool_specs=[snake(IDLE)])
    job.submit()
    emulator.in_state(job.resource_name, "JOB_STATE_RUNNING")
    job.cancel()
    emulator.ended(job.resource_name)
    assert job.state.name == "JOB_STATE_CANCELLED"
    assert job.error.code == 1


def test_a_failed_job_raises_its_cause(aiplatform: Any) -> None:
    job = aiplatform.CustomJob(display_name="sdk-failure", worker_pool_specs=[snake("raise SystemExit(3)")])
    with pytest.raises(RuntimeError, match=r"workerpool0-0 exited with a non-zero status of 3"):
        job.run()


def test_a_local_script_is_packed_uploaded_and_run(aiplatform: Any, emulator: RunningEmulator, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import os, sys\nprint('trained with', sys.argv[1:], 'by', os.environ['WHO'])\n")
    job = aiplatform.CustomJob.from_local_script(
        display_name="sdk-script",
        script_path=str(script),
        container_uri=IMAGE,
        args=["--epochs=3"],
        environment_variables={"WHO": "the SDK"},
        staging_bucket="gs://sdk-staging/scripts",
    )
    assert [path.suffix for path in (emulator.data / "gcs/sdk-staging/scripts").iterdir()] == [".gz"]
    job.run()
    assert "trained with ['--epochs=3'] by the SDK" in emulator.lines(job.resource_name)


def test_a_tuning_job_runs_and_has_its_trials(aiplatform: Any) -> None:
    from google.cloud.aiplatform import hyperparameter_tuning as tuning

    trial = aiplatform.CustomJob(display_name="sdk-trial", worker_pool_specs=[snake(METRIC)])
    job = aiplatform.HyperparameterTuningJob(
        display_name="sdk-study",
        custom_job=trial,
        metric_spec={"loss": "minimize"},
        parameter_spec={"x": tuning.DoubleParameterSpec(min=0.0, max=1.0, scale="linear")},
        max_trial_count=3,
        parallel_trial_count=2,
        search_algorithm="random",
    )
    job.run()
    assert [trial.state.name for trial in job.trials] == ["SUCCEEDED"] * 3
    for trial in job.trials:
        assert trial.final_measurement.metrics[0].value == trial.parameters[0].value
        assert (trial.name, trial.custom_job, len(trial.measurements)) == ("", "", 0)
        assert "elapsed_duration" not in trial.final_measurement
    assert aiplatform.HyperparameterTuningJob.get(job.resource_name).display_name == "sdk-study"
    job.delete()
    assert aiplatform.HyperparameterTuningJob.list(filter='display_name="sdk-study"') == []


def test_pools_with_a_gap_reach_the_emulator(aiplatform: Any, emulator: RunningEmulator) -> None:
    pools = [snake("import time; time.sleep(1)"), {}, snake("pass")]
    job = aiplatform.CustomJob(display_name="sdk-pools", worker_pool_specs=pools)
    job.run()
    stored = emulator.get(job.resource_name)["jobSpec"]["workerPoolSpecs"]
    filled_in = {"replicaCount": "1", "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}}
    assert stored == [pool("import time; time.sleep(1)") | filled_in, {}, pool("pass") | filled_in]
