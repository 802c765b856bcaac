"""Requests and containers that ask for much work: answered with one clear error, in bounded time and memory."""

import contextlib
import io
import signal
import tarfile
from typing import Any

import pytest
import requests

from tests.vertex_emulator.running import (
    IMAGE,
    PARENT,
    RunningEmulator,
    absent,
    custom_job,
    line_of,
    pool,
    processor_seconds,
    resident_bytes,
    until,
)
from vertex_api.errors import MAX_PROBLEMS, MORE_PROBLEMS
from vertex_emulator.replicas.environment import MAX_TEXT_BYTES

COUNT = 20_000
MEMORY_BYTES = 300 << 20


def tenfold_variables() -> list[dict[str, str]]:
    """Nine variables, each ten times the last one."""
    nested = [{"name": f"V{i}", "value": f"$(V{i - 1})" * 10} for i in range(1, 9)]
    return [{"name": "V0", "value": "x" * 10}, *nested]


def parameter(index: int) -> dict[str, Any]:
    return {"parameterId": f"p{index}", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}


def tuning_job(parameters: list[dict[str, Any]]) -> dict[str, Any]:
    study = {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}], "parameters": parameters}
    job_spec = custom_job(pool("pass"))["jobSpec"]
    return {
        "displayName": "t",
        "studySpec": study,
        "maxTrialCount": 1,
        "parallelTrialCount": 1,
        "trialJobSpec": job_spec,
    }


def children(ids: int) -> list[dict[str, Any]]:
    """A parameter with as many values as children, whose ids are of so many different ones."""
    conditional = [
        {"parentCategoricalValues": {"values": [f"v{i}"]}, "parameterSpec": parameter(i % ids)} for i in range(5000)
    ]
    values = {"values": [f"v{i}" for i in range(5000)]}
    return [{"parameterId": "a", "categoricalValueSpec": values, "conditionalParameterSpecs": conditional}]


def test_variables_that_multiply_fail_the_job(shared: RunningEmulator) -> None:
    name = shared.create(custom_job(pool("pass", env=tenfold_variables())))
    error = shared.ended(name)["error"]
    assert error["message"] == (
        "The replica workerpool0-0 failed to start: the variable V5 is longer than 128 KiB, the most that Linux takes "
        "for one, with $(NAME) references expanded; write the text to a file in a bucket and read that from /gcs"
    )
    assert resident_bytes(shared.process.pid) < MEMORY_BYTES


def test_the_longest_variable_of_linux_is_started(shared: RunningEmulator) -> None:
    env = [{"name": "A", "value": "x" * (MAX_TEXT_BYTES - len("A=") - 1)}]
    name = shared.create(custom_job(pool("import os; print(len(os.environ['A']))", env=env)))
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert shared.lines(name) == [str(MAX_TEXT_BYTES - 3)]


@pytest.mark.parametrize(
    ("collection", "body"),
    [
        ("customJobs", {**absent("x"), **{f"key{i}": 1 for i in range(COUNT)}}),
        ("customJobs", {**absent("x"), "labels": {f"K{i}": "V" for i in range(COUNT)}}),
        ("customJobs", {**absent("x"), "labels": {f"k{i}": i for i in range(COUNT)}}),
        ("customJobs", {"displayName": "x", "jobSpec": {"workerPoolSpecs": [{"key": 1}] * COUNT}}),
        ("customJobs", custom_job(pool("pass", env=[{"name": f"A {i}", "value": ""} for i in range(COUNT)]))),
        ("hyperparameterTuningJobs", tuning_job([{**parameter(i), "key": 1} for i in range(COUNT // 2)])),
        ("hyperparameterTuningJobs", tuning_job([parameter(0) for _ in range(COUNT // 2)])),
        ("trainingPipelines", {"displayName": "x", **{f"key{i}": 1 for i in range(COUNT)}}),
        ("models:upload", {f"key{i}": 1 for i in range(COUNT)}),
    ],
)
def test_validation_stops_at_a_hundred_problems(shared: RunningEmulator, collection: str, body: dict[str, Any]) -> None:
    started = processor_seconds(shared.process.pid)
    reply = shared.http.post(f"{shared.url}/v1/{PARENT}/{collection}", json=body)
    assert processor_seconds(shared.process.pid) - started < 10
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["message"].endswith(f"\t{MORE_PROBLEMS}\t")
    assert len(error["details"][0]["fieldViolations"]) == MAX_PROBLEMS
    assert len(reply.content) < 100_000


@pytest.mark.parametrize("ids", [1, 5000])
def test_thousands_of_conditions_are_checked_in_time(shared: RunningEmulator, ids: int) -> None:
    body = {**tuning_job(children(ids)), "maxTrialCount": 0}
    started = processor_seconds(shared.process.pid)
    error = shared.call("POST", f"v1/{PARENT}/hyperparameterTuningJobs", body, expect=400)["error"]
    assert processor_seconds(shared.process.pid) - started < 10
    assert error["message"] == "List of found errors:\t1.Field: max_trial_count; Message: is required, and at least 1\t"


@pytest.mark.parametrize("body", [{"labels": {f"k{i}": "" for i in range(100_000)}}, {"key": [[]] * 100_000}])
def test_bodies_of_too_many_values_are_rejected(shared: RunningEmulator, body: dict[str, Any]) -> None:
    error = shared.call("POST", f"v1/{PARENT}/customJobs", body, expect=400)["error"]
    assert error["message"] == "Invalid JSON payload received. It holds more than 100000 values."


def test_huge_texts_are_quoted_in_part(shared: RunningEmulator) -> None:
    for body in ({"k" * 4_000_000: 1}, {"displayName": {"x": "v" * 4_000_000}}, {"labels": {"K" * 4_000_000: "v"}}):
        reply = shared.http.post(f"{shared.url}/v1/{PARENT}/customJobs", json={**absent("x"), **body})
        assert reply.status_code == 400
        assert len(reply.content) < 10_000


def test_a_stop_is_heeded_during_heavy_requests(own: RunningEmulator) -> None:
    body = {**tuning_job(children(1)), "maxTrialCount": 0}
    for _ in range(30):
        with contextlib.suppress(requests.RequestException):
            own.http.post(f"{own.url}/v1/{PARENT}/hyperparameterTuningJobs", json=body, timeout=(5, 0.05))
    assert own.call("GET", "healthz")["status"] == "ok"
    taken = [processor_seconds(own.process.pid)]
    own.process.send_signal(signal.SIGTERM)

    def has_ended() -> bool:
        with contextlib.suppress(OSError):
            taken.append(processor_seconds(own.process.pid))
        return own.process.poll() is not None

    until(has_ended, "the end")
    assert own.process.wait() == 0
    assert taken[-1] - taken[0] < 5


def test_an_endless_line_becomes_many_entries(shared: RunningEmulator) -> None:
    script = "import sys\nfor _ in range(128): sys.stdout.write('x' * 65536)\nprint('{\"a\":' * 400 + '1' + '}' * 400)"
    name = shared.create(custom_job(pool(script)))
    shared.ended(name)
    containers = 'resource.labels.task_name!="service"'
    text = f'resource.labels.job_id="{name.rpartition("/")[2]}" AND {containers}'
    sizes, token = [], None
    while token is not None or not sizes:
        body = {"filter": text, "pageSize": 1000, "pageToken": token}
        reply = shared.call("POST", "v2/entries:list", body)
        entries = reply.get("entries", [])
        sizes += [len(line_of(entry)) for entry in entries]
        assert len(str(entries)) < 6 << 20
        token = reply.get("nextPageToken")
    assert sum(sizes) == 128 * 65536 + 400 * 6 + 1
    assert max(sizes) <= 256 << 10
    assert resident_bytes(shared.process.pid) < MEMORY_BYTES


def test_a_hostile_package_leaves_its_container_nowhere(shared: RunningEmulator) -> None:
    folder = shared.data / "gcs" / "hostile"
    folder.mkdir(exist_ok=True)
    up = "../" * 12
    with tarfile.open(folder / "hostile-0.1.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo("hostile-0.1/link")
        link.type, link.linkname = tarfile.SYMTYPE, f"{up}{shared.data}"
        archive.addfile(link)
        for path in (f"hostile-0.1/{up}{shared.data}/escaped", "hostile-0.1/link/escaped", f"{shared.data}/escaped"):
            entry = tarfile.TarInfo(path)
            entry.size = 4
            archive.addfile(entry, io.BytesIO(b"evil"))
    package = {"executorImageUri": IMAGE, "packageUris": ["gs://hostile/hostile-0.1.tar.gz"], "pythonModule": "x"}
    machine = {"machineType": "n1-standard-4"}
    name = shared.create(custom_job({"machineSpec": machine, "replicaCount": 1, "pythonPackageSpec": package}))
    assert shared.ended(name)["state"] == "JOB_STATE_FAILED"
    assert not list(shared.data.rglob("escaped"))
