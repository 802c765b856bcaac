"""What `pulumi up` does while jobs are under way, and how often it calls the API, through the real engine."""

import json
import signal
from typing import Any

from tests.engine.cloud import CloudProject
from tests.engine.project import SEARCH, SLEEP
from tests.engine.stalling_proxy import StallingProxy
from tests.vertex_emulator.running import IMAGE, until

PARENT = "/v1/projects/acme-dev/locations/europe-west4"
REPORT = "import json, os; open(os.environ['CLOUD_ML_HP_METRIC_FILE'], 'w').write(json.dumps({'%s': '0.5'}))"


def search(metric: str) -> dict[str, Any]:
    """Return a tuning job of two trials that report a metric; the study's is `score`."""
    job: dict[str, Any] = json.loads(json.dumps(SEARCH)) | {"maxTrialCount": 2, "lifecycle": {}}
    container = {"imageUri": IMAGE, "command": ["python3", "-c", REPORT % metric]}
    job["trialJobSpec"]["workerPoolSpecs"][0]["containerSpec"] = container
    return job


def test_jobs_are_listed_once_and_replaced_once_stopped(cloud: CloudProject) -> None:
    cloud.container.update({"command": SLEEP, "args": ["600"]})
    job = {"jobSpec": cloud.job["jobSpec"]}
    cloud.declarations["customJobs"] = {f"job{number}": job for number in range(6)}
    cloud.declarations["hyperparameterTuningJobs"] = {f"search{number}": search("score") for number in range(2)}
    cloud.declare()
    proxy = StallingProxy(cloud.vertex.url, "", "never")
    with proxy.serving() as url:
        cloud.environment["CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM"] = url
        cloud.up()
        calls = [f"{PARENT}/customJobs", f"{PARENT}/hyperparameterTuningJobs"]
        assert sorted(proxy.seen) == sorted(
            [f"GET {path}" for path in calls] + [f"POST {calls[0]}"] * 6 + [f"POST {calls[1]}"] * 2
        )

        proxy.seen.clear()
        resources = cloud.resources()
        old, forced = resources["job0"]["id"], resources["job1"]["id"]
        cloud.declarations["customJobs"]["job0"] = {**job, "labels": {"team": "vision"}}
        cloud.declare()
        cloud.up()
        changes = [call for call in proxy.seen if not call.startswith("GET")]
        assert changes == [f"POST /v1/{old}:cancel", f"DELETE /v1/{old}", f"POST {calls[0]}"]

        # Nor is an equal job taken for its own replacement.
        proxy.seen.clear()
        cloud.up("--replace", resources["job1"]["urn"])
        changes = [call for call in proxy.seen if not call.startswith("GET")]
        assert changes == [f"POST /v1/{forced}:cancel", f"DELETE /v1/{forced}", f"POST {calls[0]}"]
        cloud.destroy()


def test_the_next_up_resumes_a_timed_out_wait(cloud: CloudProject) -> None:
    cloud.container.update({"command": SLEEP, "args": ["10"]})
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
    rest, _ = up.communicate(timeout=60)
    assert up.returncode != 0
    assert "Traceback" not in "".join(shown) + rest

    cloud.up()
    assert cloud.resources()["train"]["id"] == job
    assert cloud.outputs()["results"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
    cloud.assert_no_changes()


def test_a_failing_wait_names_the_removed_job(cloud: CloudProject) -> None:
    old, bad = (json.loads(json.dumps({"jobSpec": cloud.job["jobSpec"]})) for _ in range(2))
    bad["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["command"] = ["false"]
    bad["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] = []
    old["jobSpec"]["workerPoolSpecs"][0]["containerSpec"].update({"command": SLEEP, "args": ["600"]})
    cloud.declarations["customJobs"] = {"old": old}
    cloud.declare()
    cloud.up()
    cloud.declarations["customJobs"] = {"bad": {**bad, "lifecycle": {"wait": True}}}
    cloud.declare()
    for _ in range(2):  # whether its name is gone just now, or was so before
        output = cloud.up(fails=True)
        assert "bad failed: " in output
        assert "still running, though no longer declared: old. Pulumi deletes such resources last" in output
        assert "old" in cloud.resources()

    output = cloud.up("--continue-on-error", fails=True)
    assert "bad failed: " in output
    assert "old" not in cloud.resources()
    assert "no longer declared" not in cloud.up(fails=True)


def test_refresh_shows_trials_and_waits_name_missing_metrics(cloud: CloudProject) -> None:
    cloud.declarations["customJobs"] = {}
    cloud.declarations["hyperparameterTuningJobs"] = {"good": search("score"), "bad": search("accuracy")}
    cloud.declare()
    cloud.up()
    submitted = _runs(cloud)
    for run in submitted.values():
        assert run.keys() == {"name", "state", "page", "logs"}
        cloud.vertex.ended(run["name"])

    output = cloud.refresh()

    assert "good: QUEUED → SUCCEEDED, 2 of 2 trials done" in output
    assert "bad: QUEUED → FAILED" in output
    refreshed = _runs(cloud)
    assert refreshed["good"]["state"] == "JOB_STATE_SUCCEEDED"
    assert refreshed["good"]["trials"] == {"ended": 2, "of": 2}
    assert refreshed["good"]["bestTrial"]["metrics"] == {"score": 0.5}
    assert refreshed["bad"]["state"] == "JOB_STATE_FAILED"
    assert "without reporting the metric score. It reported accuracy." in refreshed["bad"]["error"]
    assert "→" not in cloud.refresh("--expect-no-changes")
    assert _runs(cloud) == refreshed
    cloud.assert_no_changes()

    cloud.declarations["hyperparameterTuningJobs"]["bad"]["lifecycle"] = {"wait": True}
    cloud.declare()
    output = cloud.up(fails=True)
    assert "likely cause: metric `score` was never reported by" in output
    assert "report_hyperparameter_tuning_metric(hyperparameter_metric_tag='score', metric_value=…)" in output
    assert "It reported accuracy." in output


def _runs(cloud: CloudProject) -> dict[str, Any]:
    resources = cloud.resources()
    return {name: resources[name]["outputs"]["run"] for name in ("good", "bad")}
