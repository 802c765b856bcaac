"""What lists of jobs and pipelines are asked for: filters, masks and pages."""

import base64
import json
from typing import Any

import pytest

from tests.vertex_emulator.running import RunningEmulator, pool
from vertex_api import types
from vertex_api.pipelines import CUSTOM_TASK, TUNING_TASK
from vertex_emulator.api.lists import ListRequest, Mask
from vertex_emulator.errors import ApiError
from vertex_emulator.filters import parse

PARENT = "projects/listing/locations/us-central1"
ABSENT = {**pool("pass"), "containerSpec": {"imageUri": "127.0.0.1:9/absent:1"}}
STUDY = {
    "metrics": [{"metricId": "acc"}],
    "parameters": [{"parameterId": "x", "doubleValueSpec": {"maxValue": 1.0}}],
}


@pytest.fixture(scope="module")
def listed(shared: RunningEmulator) -> RunningEmulator:
    """Two pipelines, of a custom and of a tuning task, that have failed."""
    tuning = {
        "studySpec": STUDY,
        "maxTrialCount": 1,
        "parallelTrialCount": 1,
        "trialJobSpec": {"workerPoolSpecs": [ABSENT]},
    }
    for name, definition, inputs in (
        ("first", CUSTOM_TASK, {"workerPoolSpecs": [ABSENT]}),
        ("second", TUNING_TASK, tuning),
    ):
        body = {
            "displayName": name,
            "labels": {"n": name},
            "trainingTaskDefinition": definition,
            "trainingTaskInputs": inputs,
        }
        created = shared.call("POST", f"v1/{PARENT}/trainingPipelines", body)["name"]
        shared.in_state(created, "PIPELINE_STATE_FAILED")
    return shared


def found(emulator: RunningEmulator, collection: str = "trainingPipelines", **query: Any) -> list[Any]:
    return list(emulator.call("GET", f"v1beta1/{PARENT}/{collection}", params=query).get(collection, []))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('training_task_definition:"*hyperparameter*"', ["second"]),
        (f'trainingTaskDefinition="{CUSTOM_TASK}"', ["first"]),
        ('state="PIPELINE_STATE_FAILED" AND display_name:"f*"', ["first"]),
        ("state!=PIPELINE_STATE_FAILED", []),
        ("state:PIPELINE_STATE_*", ["second", "first"]),
        ("labels.n=first OR labels.n=second", ["second", "first"]),
        ("(labels.n=first OR labels.n=second) AND NOT labels.n=second", ["first"]),
        ("labels.n:* AND -labels.n=first", ["second"]),
        ("labels:m", []),
        ('create_time>"2021-05-18T00:00:00Z" AND end_time>"2021-05-18T00:00:00Z"', ["second", "first"]),
        ('create_time<"2021-05-18T00:00:00Z"', []),
    ],
)
def test_pipelines_are_filtered_by_the_grammar(listed: RunningEmulator, text: str, names: list[str]) -> None:
    assert [each["displayName"] for each in found(listed, filter=text)] == names


def test_jobs_are_listed_from_a_time_on(listed: RunningEmulator) -> None:
    second, first = found(listed)
    since = f'labels.n:* AND create_time>="{first["createTime"].partition(".")[0].removesuffix("Z")}Z"'
    assert found(listed, filter=since) == [second, first]
    later = f"{int(first['createTime'][:4]) + 1}{first['createTime'][4:]}"
    assert found(listed, filter=f'labels.n:* AND create_time>="{later}"') == []


@pytest.mark.parametrize(
    "text",
    [
        "state=JOB_STATE_FAILED",
        "state=FAILED",
        "create_time>yesterday",
        "display_name",
        "(display_name=x",
        "job_spec.network=x",
        "-",
        "a=1 OR",
    ],
)
def test_impossible_or_malformed_filter_is_rejected(listed: RunningEmulator, text: str) -> None:
    error = listed.call("GET", f"v1/{PARENT}/trainingPipelines", params={"filter": text}, expect=400)["error"]
    assert [violation["field"] for violation in error["details"][0]["fieldViolations"]] == ["filter"]


def test_jobs_of_pipelines_are_listed_like_others(listed: RunningEmulator) -> None:
    metadata = [each["trainingTaskMetadata"] for each in found(listed)]
    (study,) = found(listed, "hyperparameterTuningJobs")
    (job,) = found(listed, "customJobs")
    assert metadata == [{"backingHyperparameterTuningJob": study["name"]}, {"backingCustomJob": job["name"]}]
    by_number = listed.call("GET", f"v1/{job['name'].rpartition('/')[0]}")["customJobs"]
    assert by_number == [job]


@pytest.mark.parametrize(
    ("mask", "fields"),
    [
        ("name", {"name"}),
        ("name,display_name", {"name", "displayName"}),
        ("error.message", {"error"}),
        ("labels", {"labels"}),
        ("*", None),
        ("", None),
    ],
)
def test_a_mask_shows_what_it_names(listed: RunningEmulator, mask: str, fields: set[str] | None) -> None:
    for each in found(listed, readMask=mask):
        assert set(each) == fields if fields else "trainingTaskInputs" in each
    assert set(found(listed, read_mask="error.message")[0]["error"]) == {"message"}


def test_trials_appear_only_if_mask_names_them(listed: RunningEmulator) -> None:
    assert [set(each) for each in found(listed, "hyperparameterTuningJobs", readMask="name,state")] == [
        {"name", "state"}
    ]
    assert [set(each) for each in found(listed, "hyperparameterTuningJobs", readMask="trials")] == [{"trials"}]


@pytest.mark.parametrize(
    ("collection", "status"), [("customJobs", 400), ("trainingPipelines", 400), ("operations", 400), ("models", 200)]
)
def test_lists_take_orderby_where_the_api_does(listed: RunningEmulator, collection: str, status: int) -> None:
    listed.call("GET", f"v1/{PARENT}/{collection}", params={"orderBy": "display_name"}, expect=status)


def test_page_tokens_belong_to_one_filter(listed: RunningEmulator) -> None:
    path = f"v1/{PARENT}/trainingPipelines"
    token = listed.call("GET", path, params={"pageSize": 1})["nextPageToken"]
    assert len(listed.call("GET", path, params={"page_size": 1, "page_token": token})["trainingPipelines"]) == 1
    listed.call("GET", path, params={"pageToken": token, "filter": "labels.n=first"}, expect=400)


POSITIONS = (10**30, -(10**30), 2**63, -1, 1.5, 1e999, True, None, "", "\ud800", "\0", [], {}, "[" * 10**4, "9" * 10**4)
RAW_TOKENS = ("x", "=", "é", "\0", "a" * 10_000, base64.b64encode(b"\xff\xfe").decode(), "W" * 9_999 + "=")


@pytest.mark.parametrize(
    "path",
    [
        *(f"v1/{PARENT}/{name}" for name in ("customJobs", "hyperparameterTuningJobs", "trainingPipelines", "models")),
        f"v1/{PARENT}/operations",
        f"v1/{PARENT}/models/1:listVersions",
        "storage/v1/b/forged/o",
    ],
)
def test_a_forged_page_token_is_refused(listed: RunningEmulator, path: str) -> None:
    for position in POSITIONS:
        forged = base64.urlsafe_b64encode(json.dumps([position, ["", ""]]).encode()).decode()
        status = listed.http.get(f"{listed.url}/{path}", params={"pageToken": forged}).status_code
        is_name = path.startswith("storage") or (isinstance(position, str) and path.endswith("operations"))
        assert status in ((200, 400, 404) if is_name else (400, 404)), (position, status)
    for token in (*RAW_TOKENS, base64.b64encode(b"[" * 7000).decode()):
        status = listed.http.get(f"{listed.url}/{path}", params={"pageToken": token}).status_code
        assert status in ((200, 400, 404) if path.startswith("storage") else (400, 404)), (token[:40], status)


def test_forged_tokens_of_logs_are_refused(listed: RunningEmulator) -> None:
    text = 'resource.labels.job_id="1"'
    tokens: list[object] = [*RAW_TOKENS[:3], 5, [], {"a": 1}, base64.b64encode(b"[" * 7000).decode()]
    for at, insert_id in [*((at, "x") for at in POSITIONS if at != "x"), (1, None), (1, 5), (1, [])]:
        key = json.dumps([at, insert_id, text, "timestamp asc"])
        tokens.append(base64.urlsafe_b64encode(key.encode()).decode())
    for token in filter(None, tokens):
        body = {"filter": text, "pageToken": token}
        assert listed.call("POST", "v2/entries:list", body, expect=400)["error"]["status"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "mask", ["bogus", "job_spec.bogus", "jobSpec.workerPoolSpecs.replicaCount", "labels.a", "a..b"]
)
def test_mask_path_to_no_field_is_rejected(mask: str) -> None:
    with pytest.raises(ApiError) as refusal:
        Mask.parse(f"name,{mask}", types.CustomJob)
    assert refusal.value.status == "INVALID_ARGUMENT"
    assert refusal.value.violations[0][0] == "read_mask"


def test_mask_accepts_nested_paths_of_either_case() -> None:
    message = {"name": "n", "jobSpec": {"scheduling": {"timeout": "1s"}, "network": "x"}, "state": "s"}
    mask = Mask.parse("name, job_spec.scheduling", types.CustomJob)
    assert mask.apply(message) == {"name": "n", "jobSpec": {"scheduling": {"timeout": "1s"}}}
    assert Mask.parse("jobSpec.network,jobSpec", types.CustomJob).apply(message) == {"jobSpec": message["jobSpec"]}
    assert Mask.parse("name,*", types.CustomJob).apply(message) == message
    assert "jobSpec" in mask
    assert "trials" not in mask


def test_page_size_has_maximum_that_is_default() -> None:
    assert [ListRequest.parse({"pageSize": text}).page_size for text in ("0", "7", "100000")] == [100, 7, 100]


def test_last_page_has_no_token() -> None:
    listing = ListRequest(page_size=2)
    assert listing.page(iter("ab"), ord) == (["a", "b"], "")
    items, token = listing.page(iter("abc"), ord)
    assert items == ["a", "b"]
    assert ListRequest(page_size=2, token=token).position(int) == ord("b")


@pytest.mark.parametrize(("text", "same"), [("-a=1", "NOT a=1"), ("-(a=1 OR b=2)", "NOT (a=1 OR b=2)")])
def test_a_minus_means_not(text: str, same: str) -> None:
    assert parse(text) == parse(same)
