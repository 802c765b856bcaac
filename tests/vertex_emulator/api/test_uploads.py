"""The scalars that jobs write, in tensorboards of the emulator."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.vertex_emulator.events import add_to_file, plain, records
from tests.vertex_emulator.running import RunningEmulator, absent

PARENT = "projects/uploads/locations/us-central1"
FILE = "events.out.tfevents.1.host"


@pytest.fixture
def board(shared: RunningEmulator) -> Iterator[str]:
    """The name of a new tensorboard."""
    name = shared.call("POST", f"v1/{PARENT}/tensorboards", {"displayName": "board"})["response"]["name"]
    yield name
    shared.call("DELETE", f"v1/{name}")


@pytest.fixture
def job(shared: RunningEmulator, board: str) -> Any:
    """A job that uploads to the tensorboard from gs://logs/run."""
    body = absent("uploads")
    account = "trainer@uploads.iam.gserviceaccount.com"
    output = {"outputUriPrefix": "gs://logs/run"}
    body["jobSpec"] |= {"tensorboard": board, "serviceAccount": account, "baseOutputDirectory": output}
    yield shared.call("POST", f"v1/{PARENT}/customJobs", body)
    for each in (shared.data / "gcs/logs/run").rglob("events.*"):
        each.unlink()


def write(shared: RunningEmulator, run: str, *events: Any) -> None:
    add_to_file(shared.data / "gcs", FILE, records(events), f"logs/{run}")


def curves(shared: RunningEmulator, run: str) -> dict[str, list[tuple[int, Any]]]:
    """The points of all time series of a run, by tag."""
    found = {}
    for series in shared.call("GET", f"v1/{run}/timeSeries").get("tensorboardTimeSeries", ()):
        points = shared.call("GET", f"v1/{series['name']}:read")["timeSeriesData"]["values"]
        found[series["displayName"]] = [(int(point["step"]), point["scalar"]["value"]) for point in points]
    return found


def test_a_job_has_an_experiment_of_its_number(shared: RunningEmulator, board: str, job: Any) -> None:
    experiment = shared.call("GET", f"v1/{board}/experiments/{job['name'].rpartition('/')[2]}")
    assert (experiment["displayName"], experiment["source"]) == (job["displayName"], job["name"])
    assert shared.call("GET", f"v1/{experiment['name']}/runs") == {}


def test_what_a_job_writes_is_read_as_it_comes(shared: RunningEmulator, board: str, job: Any) -> None:
    runs = f"{board}/experiments/{job['name'].rpartition('/')[2]}/runs"
    write(shared, "", plain("loss", 1, 0.5), plain("rate", 1, 2.0))
    write(shared, "My_Validation", plain("loss", 1, 0.75))
    listed = shared.call("GET", f"v1/{runs}?orderBy=display_name")["tensorboardRuns"]
    assert {each["name"]: each["displayName"] for each in listed} == {
        f"{runs}/default": "default",
        f"{runs}/my-validation": "My_Validation",
    }
    assert curves(shared, f"{runs}/default") == {"loss": [(1, 0.5)], "rate": [(1, 2.0)]}
    write(shared, "", plain("loss", 2, 0.25), plain("loss", 3, math.nan), plain("loss", 4, math.inf))
    assert curves(shared, f"{runs}/default")["loss"] == [(1, 0.5), (2, 0.25), (3, "NaN"), (4, "Infinity")]
    assert curves(shared, f"{runs}/my-validation") == {"loss": [(1, 0.75)]}


def test_batches_read_what_is_new_too(shared: RunningEmulator, board: str, job: Any) -> None:
    runs = f"{board}/experiments/{job['name'].rpartition('/')[2]}/runs"
    write(shared, "", plain("loss", 1, 0.5))
    (series,) = shared.call("GET", f"v1/{runs}/default/timeSeries")["tensorboardTimeSeries"]
    assert series["metadata"]["maxWallTime"] == "1970-01-01T00:16:40.000000Z"
    write(shared, "", plain("loss", 2, 0.25))
    (data,) = shared.call("GET", f"v1/{board}:batchRead?timeSeries={series['name']}")["timeSeriesData"]
    assert [point["step"] for point in data["values"]] == ["1", "2"]


def test_a_deleted_experiment_stays_deleted(shared: RunningEmulator, board: str, job: Any) -> None:
    experiment = f"{board}/experiments/{job['name'].rpartition('/')[2]}"
    write(shared, "", plain("loss", 1, 0.5))
    shared.call("DELETE", f"v1/{experiment}")
    shared.call("GET", f"v1/{experiment}/runs", expect=404)
    # Nor does another experiment of that number, which is not the job's, get its scalars.
    shared.call("POST", f"v1/{board}/experiments?tensorboardExperimentId={experiment.rpartition('/')[2]}", {})
    assert shared.call("GET", f"v1/{experiment}/runs") == {}


def test_damaged_files_and_links_are_left_out(shared: RunningEmulator, board: str, job: Any) -> None:
    runs = f"{board}/experiments/{job['name'].rpartition('/')[2]}/runs"
    write(shared, "good", plain("loss", 1, 0.5))
    folder = add_to_file(shared.data / "gcs", FILE, b"\xff" * 100, "logs/bad").parent
    (folder / "events.out.tfevents.2.link").symlink_to("/etc/hostname")
    assert [each["displayName"] for each in shared.call("GET", f"v1/{runs}")["tensorboardRuns"]] == ["good"]


def test_a_job_that_lies_fills_no_board(shared: RunningEmulator, board: str, job: Any) -> None:
    """Tags without end, in one file after another, and numbers that no training has."""
    runs = f"{board}/experiments/{job['name'].rpartition('/')[2]}/runs"
    for number in range(3):
        lies = [plain(f"tag-{number}-{i}", 2**63 - 1 - i % 2, math.nan, 1e300) for i in range(300)]
        add_to_file(shared.data / "gcs", f"{FILE}.lies-{number}", records(lies), "logs")
        assert [each["displayName"] for each in shared.call("GET", f"v1/{runs}")["tensorboardRuns"]] == ["default"]
    found, token = 0, ""
    while token is not None:
        page = shared.call("GET", f"v1/{runs}/default/timeSeries?pageSize=1000&pageToken={token}")
        found, token = found + len(page["tensorboardTimeSeries"]), page.get("nextPageToken")
    assert found == 500
