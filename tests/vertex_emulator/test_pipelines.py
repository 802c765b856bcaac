"""Training pipelines, with real containers."""

from typing import Any

from tests.vertex_emulator.running import IMAGE, PARENT, RunningEmulator, until
from vertex_api.pipelines import CUSTOM_TASK

ENDED = frozenset({"PIPELINE_STATE_SUCCEEDED", "PIPELINE_STATE_FAILED", "PIPELINE_STATE_CANCELLED"})
SAVES = """
import os, pathlib
folder = pathlib.Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/"))
folder.mkdir(parents=True)
(folder / "weights.txt").write_text("1")
print(open(os.environ["AIP_TRAINING_DATA_URI"].replace("gs://", "/gcs/").replace("*", "1")).read().strip())
print(os.environ["AIP_DATA_FORMAT"], os.environ["AIP_TEST_DATA_URI"])
"""


def pipeline(inputs: Any, definition: str = CUSTOM_TASK, **fields: Any) -> dict[str, Any]:
    """The body of a training pipeline."""
    return {
        "displayName": "a pipeline",
        "trainingTaskDefinition": definition,
        "trainingTaskInputs": inputs,
        **fields,
    }


def model(name: str = "a model") -> dict[str, Any]:
    """A model to upload, in the form that Google's SDK sends."""
    return {"displayName": name, "containerSpec": {"imageUri": "serve:1", "ports": [{"containerPort": 8080}]}}


def ended(emulator: RunningEmulator, name: str) -> Any:
    return until(lambda: (found := emulator.get(name))["state"] in ENDED and found, f"the end of {name}")


def test_pipeline_trains_on_data_and_uploads_model(shared: RunningEmulator) -> None:
    data = shared.data / "gcs" / "my-bucket" / "data"
    data.mkdir(parents=True)
    (data / "training-1.csv").write_text("x,y\n")
    body = pipeline(
        {
            "worker_pool_specs": [
                {
                    "machine_spec": {"machine_type": "n1-standard-4"},
                    "replica_count": 1.0,
                    "containerSpec": {"imageUri": IMAGE, "command": ["python3", "-c", SAVES]},
                }
            ],
            "baseOutputDirectory": {"output_uri_prefix": "gs://my-bucket/pipeline"},
        },
        labels={"team": "vision"},
        modelToUpload=model(),
        modelId="my-model",
        inputDataConfig={"datasetId": "7", "gcsDestination": {"outputUriPrefix": "gs://my-bucket/data"}},
    )
    name = shared.create(body, "trainingPipelines")
    done = ended(shared, name)
    assert done["state"] == "PIPELINE_STATE_SUCCEEDED", done
    assert done["createTime"] <= done["startTime"] <= done["endTime"] <= done["updateTime"]
    job = shared.get(done["trainingTaskMetadata"]["backingCustomJob"])
    assert (job["displayName"], job["labels"]) == ("a pipeline-custom-job", {"team": "vision"})
    assert job["name"] in [each["name"] for each in shared.call("GET", f"v1/{PARENT}/customJobs")["customJobs"]]
    assert shared.lines(job["name"]) == ["x,y", "csv gs://my-bucket/data/test-*.csv"]
    warnings = shared.lines(job["name"], 'severity="WARNING"')
    assert any("this machine has no dataset service" in line for line in warnings)
    assert done["modelToUpload"]["name"].endswith("/models/my-model")
    kept = shared.get(done["modelToUpload"]["name"])
    assert kept["artifactUri"] == "gs://my-bucket/pipeline/model/"
    assert kept["trainingPipeline"] == name
    assert kept["containerSpec"]["ports"] == [{"containerPort": 8080}]
    assert (kept["versionId"], kept["versionAliases"]) == ("1", ["default"])
