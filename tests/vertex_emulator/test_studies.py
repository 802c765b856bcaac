from tests.vertex_emulator.running import RunningEmulator, command, line_of, pool, until

REPORT = """
import json, os, sys, time
x = next(float(a.split("=")[1]) for a in sys.argv if a.startswith("--x="))
path = os.environ["CLOUD_ML_HP_METRIC_FILE"]
for step in range(1, 4):
    with open(path, "a") as file:
        entry = {"timestamp": time.time(), "trial": os.environ["CLOUD_ML_TRIAL_ID"], "global_step": str(step)}
        entry[os.environ["CLOUD_ML_HP_METRIC_TAG"]] = str(step * x)
        file.write(json.dumps(entry) + "\\n")
print(os.environ["AIP_MODEL_DIR"])
"""


def study(script: str = REPORT, trials: int = 4, parallel: int = 2, **fields: object) -> dict[str, object]:
    return {
        "displayName": "a study",
        "maxTrialCount": trials,
        "parallelTrialCount": parallel,
        "studySpec": {
            "algorithm": "RANDOM_SEARCH",
            "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
            "parameters": [{"parameterId": "x", "doubleValueSpec": {"minValue": 1, "maxValue": 2}}],
        },
        "trialJobSpec": {
            "workerPoolSpecs": [pool(script)],
            "baseOutputDirectory": {"outputUriPrefix": "gs://tuning/out"},
        },
        **fields,
    }


def test_trials_report_through_the_metric_file(shared: RunningEmulator) -> None:
    name = shared.create(study(trials=3), "hyperparameterTuningJobs")
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert sorted(trial["id"] for trial in job["trials"]) == ["1", "2", "3"]
    for trial in job["trials"]:
        assert trial["state"] == "SUCCEEDED"
        assert trial.keys() == {"id", "state", "parameters", "finalMeasurement", "startTime", "endTime"}
        (parameter,) = trial["parameters"]
        assert trial["finalMeasurement"]["stepCount"] == "3"
        assert trial["finalMeasurement"]["metrics"] == [{"metricId": "score", "value": 3 * parameter["value"]}]
        assert trial["startTime"] < trial["endTime"]
        own = shared.entries(name, f'labels."ml.googleapis.com/trial_id"="{trial["id"]}" AND severity=INFO')
        assert f"gs://tuning/out/{trial['id']}/model/" in map(line_of, own)
        assert shared.get(shared.trial_jobs(name)[trial["id"]])["state"] == "JOB_STATE_SUCCEEDED"
    assert "trial 3  " in command("logs", name, "--task=workerpool0-0", "--trial=3", data=shared.data).stdout
    unknown = command("logs", name, "--trial=4", data=shared.data)
    assert unknown.stderr == f"vertex-emulator: {name} has no trial 4; its trials are 1 to 3\n"
    trial_job = shared.trial_jobs(name)["1"]
    assert "trial 1  " in command("logs", trial_job, data=shared.data).stdout
    assert "trial 3  " in command("logs", trial_job, "--trial=3", data=shared.data).stdout


def test_trial_job_is_unlisted_and_cannot_be_cancelled(shared: RunningEmulator) -> None:
    parent = "projects/hidden/locations/us-central1"
    name = shared.call("POST", f"v1/{parent}/hyperparameterTuningJobs", study(trials=1, parallel=1))["name"]
    shared.ended(name)
    assert shared.call("GET", f"v1/{parent}/customJobs") == {}
    assert len(shared.call("GET", f"v1/{parent}/hyperparameterTuningJobs")["hyperparameterTuningJobs"]) == 1
    trial = shared.trial_jobs(name)["1"]
    for method, path in (("POST", f"v1/{trial}:cancel"), ("DELETE", f"v1/{trial}")):
        assert shared.call(method, path, expect=400)["error"]["status"] == "FAILED_PRECONDITION"
    shared.call("DELETE", f"v1/{name}")
    shared.call("GET", f"v1/{trial}", expect=404)


def test_running_trial_shows_measurements_until_study_is_cancelled(shared: RunningEmulator) -> None:
    name = shared.create(study(REPORT + "\ntime.sleep(600)", trials=9), "hyperparameterTuningJobs")

    def measured() -> object:
        page = shared.call("GET", f"vertex_emulator/page/jobs/hyperparameterTuningJobs/{name.rpartition('/')[2]}")
        return [trial for trial in page["study"]["trials"] if trial["state"] == "ACTIVE" and trial["curve"]["measured"]]

    until(measured, "a measurement")
    shared.call("POST", f"v1/{name}:cancel")
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_CANCELLED"
    assert {trial["state"] for trial in job["trials"]} == {"INFEASIBLE"}


def test_failed_first_trial_ends_study_with_its_reason(shared: RunningEmulator) -> None:
    name = shared.create(study("raise SystemExit(5)", parallel=1), "hyperparameterTuningJobs")
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_FAILED"
    assert job["error"]["code"] == 9 and "1 of 1 finished trials failed" in job["error"]["message"]
    assert "non-zero status of 5" in job["error"]["message"]
    assert "non-zero status of 5" in job["trials"][0]["infeasibleReason"]
