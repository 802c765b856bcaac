"""gcloud, unmodified: custom jobs, tuning jobs and their logs."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.conftest import IDLE, Gcloud
from tests.vertex_emulator.running import IMAGE, PARENT, RunningEmulator, custom_job, pool, until

METRIC = (
    "import json, os, sys; x = sys.argv[-1].removeprefix('--x='); print('x is', x);"
    "entry = {'timestamp': 1.0, 'trial': '1', 'loss': x, 'global_step': '1', 'checkpoint_path': ''};"
    "open(os.environ['CLOUD_ML_HP_METRIC_FILE'], 'w').write(json.dumps(entry) + '\\n')"
)
STUDY = {
    "studySpec": {
        "algorithm": "RANDOM_SEARCH",
        "metrics": [{"metricId": "loss", "goal": "MINIMIZE"}],
        "parameters": [{"parameterId": "x", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}],
    },
    "trialJobSpec": {"workerPoolSpecs": [pool(METRIC)]},
}
CAMEL = {
    "workerPoolSpecs": pool(
        "import os; print('hello from', os.environ['WHO'])", env=[{"name": "WHO", "value": "gcloud"}]
    ),
    "scheduling": {"timeout": "600s"},
}
SNAKE = {
    "worker_pool_specs": [
        {
            "machine_spec": {"machine_type": "n1-standard-4"},
            "replica_count": 1,
            "container_spec": {"image_uri": IMAGE, "command": ["python3", "-c", "print('hello, snake')"]},
        }
    ]
}
FLAGS = [
    f"--worker-pool-spec=machine-type=n1-standard-4,container-image-uri={IMAGE}",
    "--worker-pool-spec=",
    f"--worker-pool-spec=machine-type=n1-standard-4,replica-count=2,container-image-uri={IMAGE}",
    "--command=python3,-u,-c",
    # One argument, as gcloud cuts them at commas. The job ends with the chief, so that one waits for the others' lines.
    "--args=import os; import time; from os import environ as e; from pathlib import Path;"
    " print('hello from ' + e['HOSTNAME']); here = Path('/gcs/by-flags');"
    " (here / e['RANK']).touch()\nwhile len(os.listdir(here)) < 3: time.sleep(.1)",
]


def together(gcloud: Gcloud, *calls: list[str]) -> list[str]:
    """What several commands print, run at the same time."""
    with ThreadPoolExecutor() as threads:
        return [done.stdout for done in threads.map(lambda call: gcloud(*call), calls)]


def config(folder: Path, name: str, spec: Mapping[str, Any]) -> str:
    """A --config flag."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(dict(spec)))
    return f"--config={path}"


@pytest.fixture(scope="module")
def created(gcloud: Gcloud, emulator: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Names of ended jobs, by how gcloud created them."""
    folder = tmp_path_factory.mktemp("config")
    (emulator.data / "gcs" / "by-flags").mkdir(parents=True)
    create = ["ai", "custom-jobs", "create", "--format=value(name)"]
    tune = ["--display-name=tuned", "--max-trial-count=2", "--parallel-trial-count=2", config(folder, "study", STUDY)]
    calls = {
        "camel": [*create, "--display-name=camel", "--labels=team=a,made-by=gcloud", config(folder, "camel", CAMEL)],
        "snake": ["beta", *create, "--display-name=snake", config(folder, "snake", SNAKE)],
        "flags": [*create, "--display-name=flags", *FLAGS],
        "study": ["ai", "hp-tuning-jobs", "create", "--format=value(name)", *tune],
    }
    names = dict(zip(calls, (text.strip() for text in together(gcloud, *calls.values())), strict=True))
    # hp-tuning-jobs create prints the bare id.
    number = emulator.get(names["camel"])["name"].split("/")[1]
    study = names["study"].rpartition("/")[2]
    names["study"] = f"{PARENT.replace('my-project', number)}/hyperparameterTuningJobs/{study}"
    for name in names.values():
        assert (ended := emulator.ended(name))["state"] == "JOB_STATE_SUCCEEDED", ended
    return names


def test_jobs_from_files_and_flags_run(created: dict[str, str], emulator: RunningEmulator) -> None:
    assert emulator.lines(created["camel"]) == ["hello from gcloud"]
    assert emulator.lines(created["snake"]) == ["hello, snake"]
    hosts = {line.removeprefix("hello from cmle-training-")[:11] for line in emulator.lines(created["flags"])}
    assert hosts == {"workerpool0", "workerpool2"}
    tasks = {entry["resource"]["labels"]["task_name"] for entry in emulator.entries(created["flags"])}
    assert tasks == {"service", "workerpool0-0", "workerpool2-0", "workerpool2-1"}
    assert emulator.get(created["camel"])["labels"] == {"team": "a", "made-by": "gcloud"}
    assert emulator.get(created["camel"])["jobSpec"]["scheduling"] == {"timeout": "600s"}


def test_list_and_describe_show_what_was_created(gcloud: Gcloud, created: dict[str, str]) -> None:
    listed, described, studies, study = (
        json.loads(text)
        for text in together(
            gcloud,
            ["ai", "custom-jobs", "list", "--filter=labels.made-by=gcloud", "--format=json"],
            ["beta", "ai", "custom-jobs", "describe", created["flags"].rpartition("/")[2], "--format=json"],
            ["ai", "hp-tuning-jobs", "list", "--format=json"],
            ["ai", "hp-tuning-jobs", "describe", created["study"], "--format=json"],
        )
    )
    assert [job["name"] for job in listed] == [created["camel"]]
    assert [len(each) > 0 for each in described["jobSpec"]["workerPoolSpecs"]] == [True, False, True]
    assert [job["name"] for job in studies] == [created["study"]]
    assert sorted(trial["id"] for trial in study["trials"]) == ["1", "2"]
    for trial in study["trials"]:
        assert trial["finalMeasurement"]["metrics"][0]["value"] == trial["parameters"][0]["value"]


def test_logs_of_ended_jobs_stream_each_line_once(gcloud: Gcloud, created: dict[str, str]) -> None:
    quickly = ["--polling-interval=1"]
    job, one_task, study = together(
        gcloud,
        ["ai", "custom-jobs", "stream-logs", created["camel"], *quickly],
        ["ai", "custom-jobs", "stream-logs", created["flags"], "--task-name=workerpool2-1", *quickly],
        ["ai", "hp-tuning-jobs", "stream-logs", created["study"].rpartition("/")[2], *quickly],
    )
    assert job.count("hello from gcloud") == 1
    assert job.count("Job is running.") == 1
    assert job.rstrip().endswith("Job completed successfully.")
    assert len(one_task.splitlines()) == 1
    assert study.count("x is 0.") == 2


def test_running_jobs_and_studies_are_cancelled(gcloud: Gcloud, emulator: RunningEmulator) -> None:
    idle = pool(IDLE)
    study = {**STUDY, "trialJobSpec": {"workerPoolSpecs": [idle]}}
    counts = {"maxTrialCount": 4, "parallelTrialCount": 1}
    parent = PARENT.replace("my-project", "local")  # gcloud's own project in this shell
    job, tuned = (
        str(emulator.call("POST", f"v1/{parent}/{collection}", body)["name"])
        for collection, body in {
            "customJobs": custom_job(idle),
            "hyperparameterTuningJobs": {"displayName": "idle", **counts, **study},
        }.items()
    )
    emulator.in_state(job, "JOB_STATE_RUNNING")
    until(lambda: emulator.get(tuned).get("trials", [{}])[0].get("state") == "ACTIVE", "a trial")
    together(gcloud, ["ai", "custom-jobs", "cancel", job], ["ai", "hp-tuning-jobs", "cancel", tuned.rpartition("/")[2]])
    for name in (job, tuned):
        ended = emulator.ended(name)
        assert (ended["state"], ended["error"]["code"]) == ("JOB_STATE_CANCELLED", 1)


def test_a_refused_job_is_printed_with_its_field(gcloud: Gcloud, tmp_path: Path) -> None:
    bad = {
        "workerPoolSpecs": [{**pool("pass"), "machineSpec": {"acceleratorCount": 1, "machineType": "n1-standard-4"}}]
    }
    done = gcloud("ai", "custom-jobs", "create", "--display-name=bad", config(tmp_path, "bad", bad), code=1)
    assert "INVALID_ARGUMENT" in done.stderr
    assert "job_spec.worker_pool_specs[0].machine_spec" in done.stderr


def test_tensorboards_are_created_changed_and_deleted(gcloud: Gcloud) -> None:
    boards = ["ai", "tensorboards"]
    gcloud(*boards, "create", "--display-name=by gcloud", "--labels=made-by=gcloud")
    (board,) = json.loads(gcloud(*boards, "list", "--filter=labels.made-by=gcloud", "--format=json").stdout)
    assert board["displayName"] == "by gcloud"
    gcloud(*boards, "update", board["name"], "--description=changed")
    assert json.loads(gcloud(*boards, "describe", board["name"], "--format=json").stdout)["description"] == "changed"
    gcloud(*boards, "delete", board["name"], "--quiet")
    assert "NOT_FOUND" in gcloud(*boards, "describe", board["name"], code=1).stderr
