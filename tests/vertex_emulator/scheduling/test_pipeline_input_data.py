from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.jobs import pool
from vertex_api.names import TRAINING_PIPELINE
from vertex_api.pipelines import CUSTOM_TASK
from vertex_emulator.api.validation import canonicalize
from vertex_emulator.errors import ApiError
from vertex_emulator.scheduling.pipeline_input_data import (
    InputData,
    build_input_variables_and_warnings,
    copy_with_input_variables,
)

URI = "gs://my-bucket/data"


def config(**fields: Any) -> dict[str, Any]:
    return {"datasetId": "7", "gcsDestination": {"outputUriPrefix": f"{URI}/"}, **fields}


def files(root: Path, *names: str) -> None:
    for name in names:
        path = root / "my-bucket" / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def variables(folder: str, form: str) -> dict[str, str]:
    return {
        "AIP_DATA_FORMAT": form,
        "AIP_TRAINING_DATA_URI": f"{URI}{folder}/training-*.{form}",
        "AIP_VALIDATION_DATA_URI": f"{URI}{folder}/validation-*.{form}",
        "AIP_TEST_DATA_URI": f"{URI}{folder}/test-*.{form}",
    }


@pytest.mark.parametrize(
    ("names", "folder", "form"),
    [
        (["training-1.csv", "validation-1.csv", "test-1.csv"], "", "csv"),
        (["training-00000-of-00001.jsonl"], "", "jsonl"),
        (["training-1.csv", "training-1.jsonl"], "", "jsonl"),
        (["dataset-7-2024/training-1.csv", "dataset-7-2025/training-1.csv"], "/dataset-7-2025", "csv"),
        (["dataset-7-2024/training-1.csv", "training-1.jsonl"], "", "jsonl"),
        (["other/training-1.csv"], "", "csv"),
        (["training.csv"], "", "csv"),
    ],
)
def test_the_variables_name_the_files_of_the_folder(tmp_path: Path, names: list[str], folder: str, form: str) -> None:
    files(tmp_path, *names)
    assert build_input_variables_and_warnings(config(), tmp_path).variables == variables(folder, form)


def test_without_files_the_schema_decides_the_format(tmp_path: Path) -> None:
    assert build_input_variables_and_warnings(config(), tmp_path).variables == variables("", "csv")
    schema = "gs://google-cloud-aiplatform/schema/dataset/annotation/text_classification_1.0.0.yaml"
    assert build_input_variables_and_warnings(config(annotationSchemaUri=schema), tmp_path).variables == variables(
        "", "jsonl"
    )


def test_differences_from_the_service_are_warned_about(tmp_path: Path) -> None:
    nothing = "\n".join(
        build_input_variables_and_warnings(config(fractionSplit={}, savedQueryId="1"), tmp_path).warnings
    )
    assert "dataset 7" in nothing
    assert f"{URI} has no files training-*" in nothing
    assert "fractionSplit, savedQueryId have no effect" in nothing
    files(tmp_path, "training-1.csv", "test-1.csv")
    some = "\n".join(build_input_variables_and_warnings(config(), tmp_path).warnings)
    assert "has no files" not in some
    assert "there are no validation files" in some
    files(tmp_path, "validation-1.csv")
    assert len(build_input_variables_and_warnings(config(), tmp_path).warnings) == 1


def test_data_variables_come_before_a_pool_s_own(tmp_path: Path) -> None:
    own = {"name": "A", "value": "$(AIP_DATA_FORMAT)"}
    package = {"pythonPackageSpec": {"pythonModule": "m"}}
    spec = {"workerPoolSpecs": [pool(env=[own]), {}, package], "network": "n"}
    given = copy_with_input_variables(spec, InputData({"AIP_DATA_FORMAT": "csv"}, []))
    added = {"name": "AIP_DATA_FORMAT", "value": "csv"}
    assert given["workerPoolSpecs"][0]["containerSpec"]["env"] == [added, own]
    assert given["workerPoolSpecs"][1:] == [{}, {"pythonPackageSpec": {"pythonModule": "m", "env": [added]}}]
    assert given["network"] == "n"
    assert spec["workerPoolSpecs"][0]["containerSpec"]["env"] == [own]  # type: ignore[index]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"datasetId": "7", "bigqueryDestination": {"outputUri": "bq://p"}}, "input_data_config.bigquery_destination"),
        ({"datasetId": "7"}, "input_data_config.gcs_destination"),
        (
            {"datasetId": "7", "gcsDestination": {"outputUriPrefix": "gs://b/../x"}},
            "input_data_config.gcs_destination.output_uri_prefix",
        ),
    ],
)
def test_an_unavailable_destination_is_rejected(tmp_path: Path, data: dict[str, Any], field: str) -> None:
    body = {
        "displayName": "p",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": {"workerPoolSpecs": [pool()]},
        "inputDataConfig": data,
    }
    with pytest.raises(ApiError) as refusal:
        canonicalize(TRAINING_PIPELINE, "us-central1", body, tmp_path)
    assert [found for found, _ in refusal.value.violations] == [field]


def test_a_rejection_names_the_pipeline_s_own_field(tmp_path: Path) -> None:
    mounts = [{"server": "10.0.0.1", "path": "/x/../y", "mountPoint": "x"}]
    body = {
        "displayName": "p",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": {
            "workerPoolSpecs": [{**pool(), "nfsMounts": mounts}],
            "baseOutputDirectory": {"outputUriPrefix": "gs://b/../x"},
        },
    }
    with pytest.raises(ApiError) as refusal:
        canonicalize(TRAINING_PIPELINE, "us-central1", body, tmp_path)
    assert [found for found, _ in refusal.value.violations] == [
        "training_task_inputs.worker_pool_specs[0].nfs_mounts[0]",
        "training_task_inputs.base_output_directory.output_uri_prefix",
    ]
