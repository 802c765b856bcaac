"""Answers that were recorded of the service (docs/fidelity.md, "Recordings of the service"), and those of the emulator.

`...` stands for what a recording masks or the machine decides.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.vertex_emulator.running import PARENT, RunningEmulator
from vertex_emulator.names import project_number

V1BETA1 = f"v1beta1/{PARENT}/customJobs"
AS_NUMBERS = "$alt=json;enum-encoding=int"
POOL: dict[str, Any] = {
    "containerSpec": {"command": ["sh", "-c", "echo hello world"], "imageUri": "localhost/absent:1"},
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": "1",
}
ANSWERED_POOL = {**POOL, "diskSpec": {"bootDiskSizeGb": 100, "bootDiskType": "pd-ssd"}}
SERVICE_FIELDS = {"createTime": ..., "name": ..., "state": 2, "updateTime": ...}


def assert_as_recorded(answer: Any, recorded: Any) -> None:
    """Assert that an answer has the fields and values of a recorded one, and no other field."""
    if recorded is ...:
        return
    if isinstance(recorded, Mapping):
        assert answer.keys() == recorded.keys()
        for key, value in recorded.items():
            assert_as_recorded(answer[key], value)
    elif isinstance(recorded, list):
        assert len(answer) == len(recorded)
        for each, value in zip(answer, recorded, strict=True):
            assert_as_recorded(each, value)
    else:
        assert (answer, type(answer)) == (recorded, type(recorded))


def test_a_minimal_job_is_answered_as_recorded(shared: RunningEmulator) -> None:
    request = {"displayName": "minimal-job", "jobSpec": {"workerPoolSpecs": [POOL]}}
    job = shared.call("POST", f"{V1BETA1}?{AS_NUMBERS}", request)
    assert_as_recorded(job, {**request, "jobSpec": {"workerPoolSpecs": [ANSWERED_POOL]}, **SERVICE_FIELDS})
    *parts, number = job["name"].split("/")
    assert parts == ["projects", str(project_number("my-project")), "locations", "us-central1", "customJobs"]
    assert number.isdigit()


def test_a_maximal_job_is_answered_as_recorded(shared: RunningEmulator) -> None:
    spec = {"enableWebAccess": True, "scheduling": {"timeout": "1800s"}}
    request = {"displayName": "maximal-job", "jobSpec": {**spec, "workerPoolSpecs": [POOL]}, "labels": {"foo": "bar"}}
    job = shared.call("POST", f"{V1BETA1}?{AS_NUMBERS}", request)
    assert_as_recorded(job, {**request, "jobSpec": {**spec, "workerPoolSpecs": [ANSWERED_POOL]}, **SERVICE_FIELDS})


@pytest.mark.parametrize("query", [AS_NUMBERS, "alt=json;enum-encoding=int", "%24alt=json%3Benum-encoding%3Dint"])
def test_enums_are_numbers_if_asked_for(shared: RunningEmulator, query: str) -> None:
    machine = {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
    labels = {"state": "job_state_pending"}
    request = {
        "displayName": "JOB_STATE_PENDING",
        "jobSpec": {"workerPoolSpecs": [{**POOL, "machineSpec": machine}], "scheduling": {"strategy": "SPOT"}},
        "labels": labels,
    }
    job = shared.call("POST", f"{V1BETA1}?{query}", request)
    listed = shared.call("GET", f"{V1BETA1}?{query}&pageSize=1")["customJobs"][0]
    for answer in (job, listed):
        assert isinstance(answer["state"], int)
        assert answer["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] == 5
        assert answer["jobSpec"]["scheduling"]["strategy"] == 4
        assert (answer["displayName"], answer["labels"]) == ("JOB_STATE_PENDING", labels)
    assert shared.call("GET", f"v1/{job['name']}?alt=json")["state"].startswith("JOB_STATE_")


def test_a_malformed_name_is_refused_as_recorded(shared: RunningEmulator) -> None:
    message = "List of found errors:\t1.Field: name; Message: Invalid CustomJob resource name.\t"
    answer = shared.call("GET", f"{V1BETA1}/customjob-x?{AS_NUMBERS}", expect=400)
    assert answer == {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def test_headers_are_as_recorded(shared: RunningEmulator) -> None:
    for path in (V1BETA1, f"{V1BETA1}/customjob-x"):
        headers = shared.http.get(f"{shared.url}/{path}").headers
        assert headers["content-type"] == "application/json; charset=UTF-8"
        assert headers["x-content-type-options"] == "nosniff"


def test_operations_have_the_recorded_form(shared: RunningEmulator) -> None:
    times = {"genericMetadata": {"createTime": ..., "updateTime": ...}}
    package = "type.googleapis.com/google.cloud.aiplatform.v1beta1"
    upload = {"model": {"displayName": "recorded", "containerSpec": {"imageUri": "localhost/absent:1"}}}
    created = shared.call("POST", f"v1beta1/{PARENT}/models:upload", upload)
    model = created["response"]["model"]
    metadata = {"@type": f"{package}.UploadModelOperationMetadata", **times}
    response = {"@type": f"{package}.UploadModelResponse", "model": ..., "modelVersionId": "1"}
    assert_as_recorded(created, {"name": ..., "metadata": metadata, "done": True, "response": response})
    assert created["name"].startswith(f"{model}/operations/")
    deleted = shared.call("DELETE", f"v1beta1/{model}")
    metadata = {"@type": f"{package}.DeleteOperationMetadata", **times}
    response = {"@type": "type.googleapis.com/google.protobuf.Empty"}
    assert_as_recorded(deleted, {"name": ..., "metadata": metadata, "done": True, "response": response})
    assert deleted["name"].rpartition("/operations/")[0] == model.rpartition("/models/")[0]


def test_models_have_an_etag_and_jobs_none(shared: RunningEmulator) -> None:
    upload = {"model": {"displayName": "recorded", "containerSpec": {"imageUri": "localhost/absent:1"}}}
    model = shared.call("POST", f"v1/{PARENT}/models:upload", upload)["response"]["model"]
    assert shared.call("GET", f"v1/{model}")["etag"]
    job = shared.call("POST", V1BETA1, {"displayName": "recorded", "jobSpec": {"workerPoolSpecs": [POOL]}})
    assert "etag" not in shared.call("GET", f"v1/{job['name']}")


BOARDS = "projects/recorded-boards/locations/us-central1"
BOARD_PATH = f"v1beta1/{BOARDS}/tensorboards"
LABELS = {"cnrm-test": "true", "managed-by-cnrm": "true"}
V1BETA1_TYPES = "type.googleapis.com/google.cloud.aiplatform.v1beta1"
READ = {"blobStoragePathPrefix": ..., "createTime": ..., "etag": ..., "name": ..., "updateTime": ...}


def done(metadata: str, response: Any) -> dict[str, Any]:
    """An operation as recorded once it was done."""
    times = {"createTime": ..., "updateTime": ...}
    type_url = f"{V1BETA1_TYPES}.{metadata}OperationMetadata"
    return {"done": True, "metadata": {"@type": type_url, "genericMetadata": times}, "name": ..., "response": response}


def test_a_tensorboard_is_answered_as_recorded(shared: RunningEmulator) -> None:
    fields = {"description": "Dashboard version 1", "displayName": "config-connector v1", "labels": LABELS}
    created = shared.call("POST", f"{BOARD_PATH}?{AS_NUMBERS}", fields)
    response = {"@type": f"{V1BETA1_TYPES}.Tensorboard", "name": ..., **fields}
    assert_as_recorded(created, done("CreateTensorboard", response))
    board = created["response"]["name"]
    assert created["name"].startswith(f"{board}/operations/")
    assert shared.call("GET", f"ui/{created['name']}")["name"] == created["name"]
    read = shared.call("GET", f"v1beta1/{board}?{AS_NUMBERS}")
    assert_as_recorded(read, {**READ, **fields})
    assert read["blobStoragePathPrefix"].startswith("cloud-ai-platform-")

    changes = {"description": "Dashboard version 2", "displayName": "config-connector v2", "isDefault": True}
    mask = "updateMask=description%2CdisplayName%2CisDefault"
    body = {**changes, "labels": LABELS, "name": board}
    patched = shared.call("PATCH", f"v1beta1/{board}?{AS_NUMBERS}&{mask}", body)
    now = {**READ, **fields, **changes}
    assert_as_recorded(patched, done("UpdateTensorboard", {"@type": f"{V1BETA1_TYPES}.Tensorboard", **now}))
    assert_as_recorded(shared.call("GET", f"v1beta1/{board}?{AS_NUMBERS}"), now)
    assert patched["response"]["etag"] != read["etag"]

    deleted = shared.call("DELETE", f"v1beta1/{board}?{AS_NUMBERS}")
    assert_as_recorded(deleted, done("Delete", {"@type": "type.googleapis.com/google.protobuf.Empty"}))
    location = board.rpartition("/tensorboards/")[0]
    assert {each["name"].rpartition("/operations/")[0] for each in (patched, deleted)} == {location}


def test_names_of_missing_boards_are_answered_as_recorded(shared: RunningEmulator) -> None:
    message = "List of found errors:\t1.Field: name; Message: Invalid Tensorboard resource name.\t"
    answer = shared.call("GET", f"{BOARD_PATH}/vertexaitensorboard?{AS_NUMBERS}", expect=400)
    assert answer == {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    # The form of "The Featurestore does not exist."; for what is in a tensorboard, a report of 2023.
    for path in ("1", "1/experiments", "1/experiments/e/runs/r"):
        answer = shared.call("GET", f"{BOARD_PATH}/{path}", expect=404)
        assert answer == {"error": {"code": 404, "message": "The Tensorboard does not exist.", "status": "NOT_FOUND"}}


def test_an_experiment_is_answered_as_recorded(shared: RunningEmulator) -> None:
    board = shared.call("POST", BOARD_PATH, {"displayName": "parent"})["response"]["name"]
    path = f"v1beta1/{board}/experiments"
    message = f"TensorboardExperiment {board}/experiments/tenexp is not found."
    answer = shared.call("GET", f"{path}/tenexp?{AS_NUMBERS}", expect=404)
    assert answer == {"error": {"code": 404, "message": message, "status": "NOT_FOUND"}}

    fields = {"description": "maximal", "displayName": "max", "labels": {"key": "value"}, "source": "custom-job-1"}
    recorded = {"createTime": ..., "etag": ..., "updateTime": ..., "name": f"{board}/experiments/tenexp"}
    created = shared.call("POST", f"{path}?{AS_NUMBERS}&tensorboardExperimentId=tenexp", fields)
    assert_as_recorded(created, {**fields, **recorded})
    assert shared.call("GET", f"{path}/tenexp") == created
    changes = {"description": "updated", "displayName": "updated", "labels": {"key": "updated"}}
    mask = "updateMask=description%2CdisplayName%2Clabels%2Csource"  # source cannot change, and has not
    body = {**changes, "name": created["name"], "source": "custom-job-1"}
    patched = shared.call("PATCH", f"{path}/tenexp?{AS_NUMBERS}&{mask}", body)
    assert_as_recorded(patched, {**fields, **changes, **recorded})

    deleted = shared.call("DELETE", f"{path}/tenexp?{AS_NUMBERS}")
    assert_as_recorded(deleted, done("Delete", {"@type": "type.googleapis.com/google.protobuf.Empty"}))
    assert deleted["name"].rpartition("/operations/")[0] == board
    shared.call("DELETE", f"v1beta1/{board}")


def test_a_minimal_experiment_is_answered_as_recorded(shared: RunningEmulator) -> None:
    board = shared.call("POST", BOARD_PATH, {"displayName": "parent"})["response"]["name"]
    created = shared.call("POST", f"v1beta1/{board}/experiments?tensorboardExperimentId=least", {})
    assert_as_recorded(
        created,
        {"createTime": ..., "etag": ..., "name": f"{board}/experiments/least", "updateTime": ...},
    )
    shared.call("DELETE", f"v1beta1/{board}")
