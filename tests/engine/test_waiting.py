"""What `pulumi up` does while jobs are under way, and how often it calls the API, through the real engine."""

import json
import signal
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.engine.cloud import CloudProject, create_cloud_project
from tests.engine.project import SEARCH, SLEEP
from tests.engine.stalling_proxy import StallingProxy
from tests.vertex_emulator.running import IMAGE, PATIENCE_SECONDS, RunningEmulator, until

PARENT = "/v1/projects/acme-dev/locations/europe-west4"
COLLECTIONS = [f"{PARENT}/customJobs", f"{PARENT}/hyperparameterTuningJobs"]
GO = "/gcs/tests/go"
"""A file that a job waits for."""
REPORT = "import json, os; open(os.environ['CLOUD_ML_HP_METRIC_FILE'], 'w').write(json.dumps({'%s': '0.5'}))"


def search(metric: str, trials: int) -> dict[str, Any]:
    """Return a tuning job of so many trials that report a metric; the study's is `score`."""
    counts = {"maxTrialCount": trials, "parallelTrialCount": trials}
    job: dict[str, Any] = json.loads(json.dumps(SEARCH)) | counts | {"lifecycle": {}}
    container = {"imageUri": IMAGE, "command": ["python3", "-c", REPORT % metric]}
    job["trialJobSpec"]["workerPoolSpecs"][0]["containerSpec"] = container
    return job


class Running(NamedTuple):
    """A stack with a job that runs, what its calls of the API go through, and those of the first `up`."""

    cloud: CloudProject
    proxy: StallingProxy
    first_calls: list[str]

    def up(self, *options: str) -> list[str]:
        """Bring the stack up, and return the calls that change anything."""
        self.proxy.seen.clear()
        self.cloud.up(*options)
        return [call for call in self.proxy.seen if not call.startswith("GET")]


@pytest.fixture(scope="class")
def running(tmp_path_factory: pytest.TempPathFactory, vertex: RunningEmulator) -> Iterator[Running]:
    """Three jobs, of which two sleep, and two searches."""
    cloud = create_cloud_project(tmp_path_factory.mktemp("running"), vertex)
    cloud.declarations["customJobs"] = {f"job{number}": deepcopy(cloud.job) | {"lifecycle": {}} for number in range(3)}
    for name in ("job0", "job1"):
        (pool,) = cloud.declarations["customJobs"][name]["jobSpec"]["workerPoolSpecs"]
        pool["containerSpec"] |= {"command": SLEEP, "args": ["600"]}
    cloud.declarations["hyperparameterTuningJobs"] = {f"search{number}": search("score", 1) for number in range(2)}
    cloud.declare()
    proxy = StallingProxy(vertex.url, "", "never")
    with proxy.serving() as url:
        cloud.environment["CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM"] = url
        cloud.up()
        yield Running(cloud, proxy, [*proxy.seen])


class TestRunningJobs:
    """Tests of one stack, in order: the last one removes the jobs that run."""

    def test_jobs_are_listed_once(self, running: Running) -> None:
        assert sorted(running.first_calls) == sorted(
            [f"GET {path}" for path in COLLECTIONS] + [f"POST {COLLECTIONS[0]}"] * 3 + [f"POST {COLLECTIONS[1]}"] * 2
        )

    def test_jobs_are_replaced_once_stopped(self, running: Running) -> None:
        before = running.cloud.resources()
        running.cloud.declarations["customJobs"]["job0"].setdefault("lifecycle", {})["rerun"] = 1
        running.cloud.declare()
        # Nor is an equal job taken for its own replacement.
        changes = running.up("--replace", before["job1"]["urn"])
        for name in ("job0", "job1"):
            path = f"/v1/{before[name]['id']}"
            posted = changes.index(f"POST {COLLECTIONS[0]}", changes.index(f"DELETE {path}"))
            assert changes.index(f"POST {path}:cancel") < changes.index(f"DELETE {path}") < posted
        assert len(changes) == 6
        after = running.cloud.resources()
        replaced = [name for name in ("job0", "job1", "job2") if after[name]["id"] != before[name]["id"]]
        assert replaced == ["job0", "job1"]

    def test_a_failing_wait_names_the_removed_job(self, running: Running) -> None:
        cloud = running.cloud
        container = {"imageUri": IMAGE, "command": ["false"]}
        pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
        bad = {"jobSpec": {"workerPoolSpecs": [pool]}, "lifecycle": {"wait": True}}
        removed = cloud.declarations["customJobs"].keys()
        cloud.declarations = {"customJobs": {"bad": bad}}
        cloud.declare()
        for _ in range(2):  # whether its name is gone just now, or was so before
            output = cloud.up(fails=True)
            assert "bad failed: " in output
            assert "still running, though no longer declared: job0, job1. Pulumi deletes such resources last" in output
            assert removed <= cloud.resources().keys()

        output = cloud.up("--continue-on-error", fails=True)
        assert "bad failed: " in output
        assert not removed & cloud.resources().keys()


def test_waits_resume_and_refreshes_show_trials(cloud: CloudProject) -> None:
    cloud.declarations["hyperparameterTuningJobs"] = {"good": search("score", 2), "bad": search("accuracy", 1)}
    cloud.container.update({"command": ["sh", "-c", f"until [ -e {GO} ]; do sleep 0.1; done"], "args": []})
    cloud.job["lifecycle"] = {"wait": True, "deadline": "1s"}
    cloud.declare()
    output = cloud.up(fails=True)
    assert "train: still JOB_STATE_" in output
    assert "after 1 s, its lifecycle.deadline. The job goes on: https://" in output
    job = cloud.resources()["train"]["id"]
    assert cloud.vertex.get(job)["state"] in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING")

    # A Ctrl-C leaves the job alone as well: the engine waits for the wait, and ends it at the second one.
    cloud.job["lifecycle"] = {"wait": True}
    cloud.declare()
    up = cloud.start_pulumi("up", "--yes", "--skip-preview", "--stack", "dev")
    assert up.stdout is not None
    shown: list[str] = []
    until(lambda: shown.append(up.stdout.readline()) or "train: " in shown[-1])  # type: ignore[func-returns-value, union-attr]
    up.send_signal(signal.SIGINT)
    until(lambda: shown.append(up.stdout.readline()) or "^C" in shown[-1] or "ancel" in shown[-1])  # type: ignore[func-returns-value, union-attr]
    up.send_signal(signal.SIGINT)
    rest, _ = up.communicate(timeout=PATIENCE_SECONDS)
    assert up.returncode != 0
    assert "Traceback" not in "".join(shown) + rest

    file = cloud.vertex.data / "gcs" / Path(GO).relative_to("/gcs")
    file.parent.mkdir(parents=True)
    file.touch()
    cloud.up()
    assert cloud.resources()["train"]["id"] == job
    assert cloud.outputs()["results"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
    submitted = _runs(cloud)
    for run in submitted.values():
        assert run.keys() == {"name", "state", "page", "logs"}
        cloud.vertex.ended(run["name"])

    output = cloud.refresh()

    assert "good: PENDING → SUCCEEDED, 2 of 2 trials done" in output
    assert "bad: PENDING → FAILED" in output
    refreshed = _runs(cloud)
    assert refreshed["good"]["state"] == "JOB_STATE_SUCCEEDED"
    assert refreshed["good"]["trials"] == {"ended": 2, "of": 2}
    assert refreshed["good"]["bestTrial"]["metrics"] == {"score": 0.5}
    assert refreshed["bad"]["state"] == "JOB_STATE_FAILED"
    assert "without reporting the metric score. It reported accuracy." in refreshed["bad"]["error"]
    assert "→" not in cloud.up("--refresh", "--expect-no-changes")
    assert _runs(cloud) == refreshed

    cloud.declarations["hyperparameterTuningJobs"]["bad"]["lifecycle"] = {"wait": True}
    cloud.declare()
    output = cloud.up(fails=True)
    assert "likely cause: metric `score` was never reported by" in output
    assert "report_hyperparameter_tuning_metric(hyperparameter_metric_tag='score', metric_value=…)" in output
    assert "It reported accuracy." in output


def _runs(cloud: CloudProject) -> dict[str, Any]:
    resources = cloud.resources()
    return {name: resources[name]["outputs"]["run"] for name in ("good", "bad")}
