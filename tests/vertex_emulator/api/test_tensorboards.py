"""Tensorboards, and the experiments, runs and time series in them; what the service was recorded to answer is in
test_recorded.py."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.vertex_emulator.running import RunningEmulator, absent

PARENT = "projects/boards/locations/us-central1"
PATH = f"v1/{PARENT}/tensorboards"
ACCOUNT = "trainer@boards.iam.gserviceaccount.com"


@pytest.fixture
def board(shared: RunningEmulator) -> Iterator[str]:
    """The name of a new tensorboard, the only one of its project and region."""
    name = shared.call("POST", PATH, {"displayName": "board"})["response"]["name"]
    yield name
    for each in shared.call("GET", PATH).get("tensorboards", ()):
        shared.call("DELETE", f"v1/{each['name']}")


@pytest.fixture
def run(shared: RunningEmulator, board: str) -> str:
    """The name of a run."""
    shared.call("POST", f"v1/{board}/experiments?tensorboardExperimentId=e", {})
    created = shared.call("POST", f"v1/{board}/experiments/e/runs?tensorboardRunId=r", {"displayName": "r"})
    return str(created["name"])


@pytest.fixture
def loss(shared: RunningEmulator, run: str) -> str:
    """The name of a time series."""
    body = {"displayName": "loss", "valueType": "SCALAR", "pluginName": "scalars"}
    return str(shared.call("POST", f"v1/{run}/timeSeries", body)["name"])


def data(series: str, *points: tuple[int, float]) -> dict[str, Any]:
    """A TimeSeriesData of pairs of step and value."""
    values = [{"step": str(step), "scalar": {"value": value}} for step, value in points]
    return {"tensorboardTimeSeriesId": series.rpartition("/")[2], "valueType": "SCALAR", "values": values}


def message(shared: RunningEmulator, method: str, path: str, body: Any = None, expect: int = 400) -> str:
    """The text with which a request is refused."""
    return str(shared.call(method, path, body, expect=expect)["error"]["message"])


def test_points_of_a_step_replace_earlier_ones(shared: RunningEmulator, run: str, loss: str) -> None:
    shared.call("POST", f"v1/{run}:write", {"timeSeriesData": [data(loss, (3, 0.5), (1, 0.75))]})
    shared.call("POST", f"v1/{run}:write", {"timeSeriesData": [data(loss, (3, 0.25))]})
    read = shared.call("GET", f"v1/{loss}:read")["timeSeriesData"]
    assert read == data(loss, (1, 0.75), (3, 0.25))
    assert shared.call("GET", f"v1/{loss}")["metadata"] == {"maxStep": "3"}
    numbers = shared.call("GET", f"v1/{loss}:read?$alt=json;enum-encoding=int")["timeSeriesData"]
    assert numbers["valueType"] == 1


def test_losses_that_diverge_are_points(shared: RunningEmulator, run: str, loss: str) -> None:
    points = [{"step": "1", "scalar": {"value": value}} for value in ("NaN", "-Infinity", "Infinity")]
    for point in points:
        shared.call("POST", f"v1/{run}:write", {"timeSeriesData": [{**data(loss), "values": [point]}]})
        assert shared.call("GET", f"v1/{loss}:read")["timeSeriesData"]["values"] == [point]
    bad = {**data(loss), "values": [{"step": "1", "scalar": {"value": "none"}}]}
    assert "is not a number" in message(shared, "POST", f"v1/{run}:write", {"timeSeriesData": [bad]})


def test_long_series_are_read_evenly(shared: RunningEmulator, board: str, run: str, loss: str) -> None:
    points = [(step, float(step)) for step in range(1500)]
    shared.call("POST", f"v1/{run}:write", {"timeSeriesData": [data(loss, *points)]})

    def steps(path: str) -> list[int]:
        found = shared.call("GET", path)["timeSeriesData"]
        (series,) = found if isinstance(found, list) else [found]
        return [int(point["step"]) for point in series["values"]]

    assert len(steps(f"v1/{board}:batchRead?timeSeries={loss}")) == 1000
    assert steps(f"v1/{loss}:read?maxDataPoints=3") == [499, 999, 1499]
    assert steps(f"v1/{loss}:read?maxDataPoints=-1") == [*range(1500)]
    assert "must be a positive number" in message(shared, "GET", f"v1/{loss}:read?maxDataPoints=x")


def test_runs_and_series_are_created_in_batches(shared: RunningEmulator, board: str) -> None:
    experiment = f"{board}/experiments/e"
    shared.call("POST", f"v1/{board}/experiments?tensorboardExperimentId=e", {})

    def a_run(name: str, parent: str = experiment) -> dict[str, Any]:
        return {"parent": parent, "tensorboardRunId": name, "tensorboardRun": {"displayName": name}}

    batch = f"v1/{experiment}/runs:batchCreate"
    assert "requests[1].parent" in message(shared, "POST", batch, {"requests": [a_run("a"), a_run("b", f"{board}/x")]})
    assert "requests[1].tensorboard_run_id" in message(shared, "POST", batch, {"requests": [a_run("a"), a_run("B")]})
    assert shared.call("GET", f"v1/{experiment}/runs") == {}  # all or none
    created = shared.call("POST", batch, {"requests": [a_run("a"), a_run("b")]})["tensorboardRuns"]
    assert [each["name"] for each in created] == [f"{experiment}/runs/a", f"{experiment}/runs/b"]
    assert shared.call("GET", f"v1/{board}")["runCount"] == 2

    series = {"displayName": "loss", "valueType": 1}
    requests = [{"parent": each["name"], "tensorboardTimeSeries": series} for each in created]
    made = shared.call("POST", f"v1/{experiment}:batchCreate", {"requests": requests})["tensorboardTimeSeries"]
    writes = [
        {"tensorboardRun": each["name"], "timeSeriesData": [data(new["name"], (0, 1.0))]}
        for each, new in zip(created, made, strict=True)
    ]
    shared.call("POST", f"v1/{experiment}:write", {"writeRunDataRequests": writes})
    query = "&".join(f"timeSeries={new['name']}" for new in made)
    read = shared.call("GET", f"v1/{board}:batchRead?{query}")["timeSeriesData"]
    assert read == [data(new["name"], (0, 1.0)) for new in made]


def test_impossible_writes_store_nothing(shared: RunningEmulator, run: str, loss: str) -> None:
    tensor = {**data(loss, (2, 1.0)), "valueType": "TENSOR"}
    write = f"v1/{run}:write"
    text = message(shared, "POST", write, {"timeSeriesData": [data(loss, (1, 1.0)), tensor]})
    assert "time_series_data[1].value_type" in text
    missing = {"timeSeriesData": [data(loss, (1, 1.0)), data("x/1", (1, 1.0))]}
    text = message(shared, "POST", write, missing, 404)
    assert text == f"TensorboardTimeSeries {run}/timeSeries/1 is not found."
    many = {"timeSeriesData": [data(loss, *((step, 0.0) for step in range(5001)))]}
    assert "at most 5000 are allowed" in message(shared, "POST", write, many)
    assert shared.call("GET", f"v1/{loss}:read")["timeSeriesData"]["values"] == []


def test_names_that_exist_are_refused(shared: RunningEmulator, board: str, run: str, loss: str) -> None:
    experiments = f"v1/{board}/experiments"
    text = message(shared, "POST", f"{experiments}?tensorboardExperimentId=e", {}, 409)
    assert text == f"The TensorboardExperiment {board}/experiments/e already exists."
    # Google's uploader knows by these words, and 400, that a time series is there.
    series = {"displayName": "loss", "valueType": "SCALAR"}
    assert "already exist" in message(shared, "POST", f"v1/{run}/timeSeries", series)
    body = {"displayName": "r"}
    assert "already exist" in message(shared, "POST", f"{experiments}/e/runs?tensorboardRunId=other", body)


@pytest.mark.parametrize(
    ("query", "body", "said"),
    [
        ("", {}, "tensorboard_experiment_id; Message: is required"),
        ("?tensorboardExperimentId=A", {}, "tensorboard_experiment_id; Message: Valid characters are"),
        ("?tensorboardExperimentId=a", {"displayName": "x" * 129}, "display_name"),
        ("?tensorboardExperimentId=a", {"labels": {"A": "b"}}, "labels"),
        ("?tensorboardExperimentId=a", {"colour": "red"}, "colour"),
    ],
)
def test_impossible_experiments_are_refused_by_field(
    shared: RunningEmulator, board: str, query: str, body: Any, said: str
) -> None:
    assert said in message(shared, "POST", f"v1/{board}/experiments{query}", body)


def test_impossible_series_are_refused_by_field(shared: RunningEmulator, run: str) -> None:
    for kind, said in (({}, "is required"), ({"valueType": "BLOB_SEQUENCE"}, "stores no blobs")):
        text = message(shared, "POST", f"v1/{run}/timeSeries", {"displayName": "x", **kind})
        assert f"value_type; Message: {said}" in text.replace("BLOB_SEQUENCE is not supported: the emulator ", "")


def test_patches_check_etag_and_fields(shared: RunningEmulator, board: str) -> None:
    etag = shared.call("GET", f"v1/{board}")["etag"]
    changed = shared.call("PATCH", f"v1/{board}?updateMask=description", {"description": "new", "etag": etag})
    assert changed["response"]["description"] == "new"
    outdated = {"description": "newer", "etag": etag}
    assert "changed since it was read" in message(shared, "PATCH", f"v1/{board}?updateMask=description", outdated)
    shared.call("POST", f"v1/{board}/experiments?tensorboardExperimentId=e", {"source": "a"})
    patch = f"v1/{board}/experiments/e?updateMask=source"
    assert "source cannot be changed" in message(shared, "PATCH", patch, {"source": "b"})
    assert "display_name" in message(shared, "PATCH", f"v1/{board}?updateMask=displayName", {})


def test_one_tensorboard_of_a_region_is_the_default(shared: RunningEmulator, board: str) -> None:
    shared.call("PATCH", f"v1/{board}?updateMask=isDefault", {"isDefault": True})
    newer = shared.call("POST", PATH, {"displayName": "newer", "isDefault": True})["response"]["name"]
    assert "isDefault" not in shared.call("GET", f"v1/{board}")
    found = shared.call("GET", f"{PATH}?filter=is_default%3Dtrue")["tensorboards"]
    assert [each["name"] for each in found] == [newer]
    shared.call("PATCH", f"v1/{board}?updateMask=isDefault", {"isDefault": True})
    assert "isDefault" not in shared.call("GET", f"v1/{newer}")


def test_tensorboards_are_listed_filtered_and_paged(shared: RunningEmulator, board: str) -> None:
    for name in ("a", "b"):
        shared.call("POST", PATH, {"displayName": name, "labels": {"team": name}})
    first = shared.call("GET", f"{PATH}?pageSize=2&orderBy=display_name%20desc&readMask=displayName")
    assert first["tensorboards"] == [{"displayName": "board"}, {"displayName": "b"}]
    rest = f"{PATH}?pageSize=2&orderBy=display_name%20desc&pageToken={first['nextPageToken']}"
    assert [each["displayName"] for each in shared.call("GET", rest)["tensorboards"]] == ["a"]
    (found,) = shared.call("GET", f"{PATH}?filter=labels.team%3Da")["tensorboards"]
    assert found["displayName"] == "a"
    assert shared.call("GET", "v1/projects/boards/locations/europe-west4/tensorboards") == {}


def test_deletion_takes_all_that_is_inside(shared: RunningEmulator, board: str, run: str, loss: str) -> None:
    shared.call("POST", f"v1/{run}:write", {"timeSeriesData": [data(loss, (0, 1.0))]})
    operation = shared.call("DELETE", f"v1/{run}")["name"]
    assert operation.startswith(f"{board}/experiments/e/operations/")
    assert shared.call("GET", f"v1/{operation}")["done"]
    assert message(shared, "GET", f"v1/{loss}", expect=404) == f"TensorboardRun {run} is not found."
    assert "runCount" not in shared.call("GET", f"v1/{board}")
    shared.call("POST", f"v1/{board}/experiments/e/runs?tensorboardRunId=r", {"displayName": "r"})
    assert shared.call("GET", f"v1/{run}/timeSeries") == {}


def test_jobs_name_tensorboards_that_exist_here(shared: RunningEmulator, board: str) -> None:
    jobs = f"v1/{PARENT}/customJobs"

    def job(name: str) -> Any:
        body = absent("with a board")
        body["jobSpec"] |= {"tensorboard": name, "serviceAccount": ACCOUNT}
        return body

    by_id = board.replace(board.split("/")[1], "boards")
    assert shared.call("POST", jobs, job(by_id))["jobSpec"]["tensorboard"] == by_id
    text = message(shared, "POST", jobs, job(f"{board}0"), 404)
    assert text == f'The Tensorboard "{board}0" does not exist.'
    study = {
        "displayName": "study",
        "studySpec": {
            "metrics": [{"metricId": "loss", "goal": "MINIMIZE"}],
            "parameters": [{"parameterId": "x", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}],
        },
        "maxTrialCount": 1,
        "parallelTrialCount": 1,
        "trialJobSpec": job(f"{board}0")["jobSpec"],
    }
    assert message(shared, "POST", f"v1/{PARENT}/hyperparameterTuningJobs", study, 404) == text
    # Those of a project without tensorboards here are Google's.
    elsewhere = "projects/acme-prod/locations/us-central1/tensorboards/1"
    assert shared.call("POST", jobs, job(elsewhere))["jobSpec"]["tensorboard"] == elsewhere
