from typing import Any

import pytest

from vertex_api.jobspec import model_folder, output_folders


def job_spec(**fields: Any) -> dict[str, Any]:
    return {"workerPoolSpecs": [], **fields}


@pytest.mark.parametrize("prefix", ["gs://b/run", "gs://b/run/"])
def test_output_goes_into_folders_below_the_output_directory(prefix: str) -> None:
    spec = job_spec(baseOutputDirectory={"outputUriPrefix": prefix})
    assert output_folders(spec) == {
        "AIP_MODEL_DIR": "gs://b/run/model/",
        "AIP_CHECKPOINT_DIR": "gs://b/run/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": "gs://b/run/logs/",
    }


def test_each_trial_has_a_folder_of_its_own() -> None:
    spec = job_spec(baseOutputDirectory={"outputUriPrefix": "gs://b/run/"})
    assert model_folder(spec, "3") == "gs://b/run/3/model/"


def test_without_an_output_directory_there_are_no_folders() -> None:
    assert output_folders(job_spec()) == {}
    assert model_folder(job_spec()) is None
