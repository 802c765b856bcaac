"""Schedules of real emulator processes: a month that is killed twenty times, and one run with a real container."""

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.blocks import taken
from tests.vertex_emulator.instant_containers import use_instant_containers
from tests.vertex_emulator.running import PARENT, RunningEmulator, custom_job, pool, until

SCHEDULES = f"vertex_emulator/{PARENT}/schedules"
KILLS = 20


def scheduled(name: str, script: str = "pass") -> dict[str, Any]:
    outputs = {"outputUriPrefix": f"gs://bucket/{name}/${{run.id}}"}
    body = custom_job(pool(script), name=f"{name}-${{run.id}}", baseOutputDirectory=outputs)
    return {"name": name, "collection": "customJobs", "body": body}


def move_clock(emulator: RunningEmulator, moment: str) -> None:
    emulator.call("PUT", "vertex_emulator/clock", {"time": moment})


def ended_runs(emulator: RunningEmulator, schedule: str) -> Any:
    """The runs of a schedule once all of them have ended, the newest first."""

    def find() -> Any:
        runs = emulator.call("GET", f"{SCHEDULES}/{schedule}")["runs"]
        return runs and all(run["state"] != "RUNNING" for run in runs) and runs

    return until(find, f"the end of the runs of {schedule}")


def nights(year_and_month: str, first: int, last: int, hour_and_minute: str) -> list[str]:
    return [f"{year_and_month}-{day:02}T{hour_and_minute}-00" for day in range(first, last + 1)]


# Berlin has no 02:30 on 29 March, and Sydney has it twice on 5 April.
EXPECTED = {
    "berlin": [
        *nights("2026-03", 21, 28, "01-30"),
        "2026-03-29T01-00-00",
        *nights("2026-03", 30, 31, "00-30"),
        *nights("2026-04", 1, 20, "00-30"),
    ],
    "sydney": [
        *nights("2026-03", 20, 31, "15-30"),
        *nights("2026-04", 1, 4, "15-30"),
        *nights("2026-04", 5, 19, "16-30"),
    ],
}


@pytest.fixture
def killable(tmp_path: Path) -> Iterator[RunningEmulator]:
    """A real process whose containers are files."""
    containers = tmp_path / "containers"
    emulator = RunningEmulator(tmp_path / "data", prepare=partial(use_instant_containers, containers))
    yield emulator
    emulator.close()


def test_a_month_of_runs_survives_twenty_kills(killable: RunningEmulator) -> None:
    move_clock(killable, "2026-03-20T12:00:00Z")
    for name, zone in (("berlin", "Europe/Berlin"), ("sydney", "Australia/Sydney")):
        body = {"cron": "30 2 * * *", "timeZone": zone, "overlap": "allow", "jobs": [scheduled(name)]}
        killable.call("PUT", f"{SCHEDULES}/{name}", body)
    days = [*nights("2026-03", 21, 31, "12-00"), *nights("2026-04", 1, 20, "12-00")]
    moments = [f"{day[:10]}T12:00:00Z" for day in days]
    seed = 16
    chance = random.Random(seed)
    killed = set(chance.sample(moments, KILLS))
    for moment in moments:
        if moment in killed:
            sending = threading.Thread(target=partial(try_to_move_clock, killable.url, moment))
            sending.start()
            time.sleep(chance.uniform(0, 0.1))  # the kill is anywhere: in the request, the submissions, the jobs' steps
            killable.end(signal.SIGKILL)
            sending.join()
            killable.start()
        move_clock(killable, moment)
    for name, expected in EXPECTED.items():
        assert all(run["state"] == "SUCCEEDED" for run in ended_runs(killable, name))
        jobs = [job for job in list_jobs(killable) if job["displayName"].startswith(name)]
        run_ids = sorted(job["displayName"].removeprefix(f"{name}-") for job in jobs)
        assert [re.sub(r"-[0-9a-f]{8}$", "", run_id) for run_id in run_ids] == expected
        folders = sorted(job["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"] for job in jobs)
        assert folders == [f"gs://bucket/{name}/{run_id}" for run_id in run_ids]
        assert {job["state"] for job in jobs} == {"JOB_STATE_SUCCEEDED"}
    started = [*(killable.data.parent / "containers").iterdir()]
    assert len(started) == sum(map(len, EXPECTED.values()))


def try_to_move_clock(url: str, moment: str) -> None:
    with suppress(requests.RequestException):
        requests.put(f"{url}/vertex_emulator/clock", json={"time": moment})


def list_jobs(emulator: RunningEmulator) -> list[Any]:
    jobs = emulator.call("GET", f"v1/{PARENT}/customJobs?pageSize=1000")
    assert "nextPageToken" not in jobs
    return list(jobs["customJobs"])


def test_a_fired_schedule_runs_its_container(shared: RunningEmulator) -> None:
    script = "import os; print(os.environ['AIP_MODEL_DIR'])"
    body = {"cron": "0 2 * * *", "jobs": [scheduled("fired", script)], "paused": True}
    shared.call("PUT", f"{SCHEDULES}/fired", body)
    shared.call("POST", f"{SCHEDULES}/fired:fire")
    (run,) = ended_runs(shared, "fired")
    assert run["state"] == "SUCCEEDED"
    assert shared.lines(run["jobs"]["fired"]) == [run["modelDirs"]["fired"]]
    assert run["modelDirs"] == {"fired": f"gs://bucket/fired/{run['runId']}/model/"}
    status = shared.call("GET", "vertex_emulator/status")["schedules"]
    assert status == {"active": 0, "paused": 1, "clock": None}
    assert shared.call("DELETE", f"{SCHEDULES}/fired") == {}
    assert shared.get(run["jobs"]["fired"])["state"] == "JOB_STATE_SUCCEEDED"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("PUT", f"{SCHEDULES}/nightly", 400),
        ("PUT", f"{SCHEDULES}/a%00b", 400),
        ("PUT", f"{SCHEDULES}/a%2Fb", 404),
        ("GET", f"{SCHEDULES}/{'x' * 501}", 400),
        ("GET", "vertex_emulator/projects/p/locations/r/schedules/gone", 404),
        ("POST", f"{SCHEDULES}/gone:fire", 404),
        ("POST", f"{SCHEDULES}/gone:launch", 404),
        ("PATCH", f"{SCHEDULES}/gone", 501),
        ("PUT", "vertex_emulator/clock", 400),
    ],
)
def test_a_malformed_call_is_a_clients_error(shared: RunningEmulator, method: str, path: str, code: int) -> None:
    for body in (b"", b"{", b"[]", b"{}", b'{"cron": "\xff"}'):
        reply = shared.http.request(
            method, f"{shared.url}/{path}", data=body, headers={"Content-Type": "application/json"}
        )
        expected = {code, 400} if body.startswith((b"{", b"[")) else {code}
        assert reply.status_code in expected, (body, reply.text)
        assert set(reply.json()["error"]) >= {"code", "message", "status"}


def test_the_documented_request_creates_a_schedule(shared: RunningEmulator) -> None:
    (block,) = taken("docs/emulator.md", "sh", "URL=")
    environment = {**os.environ, "VERTEX_EMULATOR_DATA": str(shared.data), "NO_PROXY": "*"}
    done = subprocess.run(["sh", "-euc", block], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    created = json.loads(done.stdout)
    assert (created["timeZone"], len(created["nextTimes"])) == ("Europe/Berlin", 3)
    (commands,) = taken("docs/emulator.md", "sh", "vertex-emulator schedules list")
    done = subprocess.run(["sh", "-euc", commands], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert shared.call("GET", f"vertex_emulator/{created['name']}")["paused"] is True
    assert shared.call("DELETE", f"vertex_emulator/{created['name']}") == {}
