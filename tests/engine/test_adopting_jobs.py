"""Jobs that Google's clients have submitted become a stack's, through the real engine, and leave it unharmed."""

import json
import shutil
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.clients.environment import variables
from tests.engine.cloud import GCP, CloudProject
from tests.vertex_emulator.running import IMAGE, RunningEmulator

PROJECT, REGION = GCP["vertex-training:project"], GCP["vertex-training:region"]
PARENT = f"v1/projects/{PROJECT}/locations/{REGION}"
SDK = """
import json, os, sys
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform

where, job, options = json.loads(sys.argv[1])
emulator = {"api_endpoint": os.environ["STORAGE_EMULATOR_HOST"], "api_transport": "rest"}
aiplatform.init(**where, **emulator, credentials=AnonymousCredentials())
submitted = aiplatform.CustomJob(**job)
submitted.submit(**options)
print(submitted.resource_name)
"""
"""As docs/clients.md has it; in a process of its own, as what `init` sets holds for the whole process."""


def run_client(vertex: RunningEmulator, *command: str) -> str:
    """Run a client in a shell that `vertex-emulator env` has set up, and return the last line it prints."""
    environment = variables(vertex.data, {}, "--project", PROJECT, "--region", REGION)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def pools(*arguments: str) -> list[dict[str, Any]]:
    """Worker pools as the SDK's and gcloud's documentation write them."""
    container = {"image_uri": IMAGE, "command": ["sleep"], "args": [*arguments]}
    return [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}]


def submit_with_sdk(vertex: RunningEmulator) -> dict[str, Any]:
    """Submit a job with Google's SDK, with a name, labels, a staging folder and options."""
    job = {
        "display_name": "by the SDK",
        "worker_pool_specs": pools("3"),
        "labels": {"team": "vision"},
        "base_output_dir": "gs://mine/out",
    }
    where = {"project": PROJECT, "location": REGION, "staging_bucket": "gs://staging"}
    options = {"timeout": 600, "restart_job_on_worker_restart": True}
    name = run_client(vertex, sys.executable, "-c", SDK, json.dumps([where, job, options]))
    return dict(vertex.get(name))


def test_a_job_submitted_by_gcloud_is_adopted(cloud: CloudProject) -> None:
    gcloud = shutil.which("gcloud")
    if gcloud is None:
        pytest.skip("gcloud is not installed")
    file = cloud.root / "training" / "config.yaml"
    file.write_text(yaml.safe_dump({"worker_pool_specs": pools("0"), "scheduling": {"timeout": "600s"}}))
    create = ["ai", "custom-jobs", "create", "--display-name=by gcloud", "--labels=team=vision", "--format=value(name)"]
    name = run_client(cloud.vertex, gcloud, *create, f"--config={file}")
    declared = {"displayName": "by gcloud", "labels": {"team": "vision"}, "spec": {"file": "training/config.yaml"}}
    cloud.declarations["customJobs"] = {"theirs": {**declared, "lifecycle": {"adopt": name.rpartition("/")[2]}}}
    cloud.declare()
    cloud.up()
    assert cloud.resources()["theirs"]["id"] == name
    cloud.assert_no_changes()


def test_adopted_jobs_are_awaited_and_outlive_their_stack(cloud: CloudProject) -> None:
    job = submit_with_sdk(cloud.vertex)
    number = job["name"].rpartition("/")[2]
    cloud.container.update({"imageUri": IMAGE, "command": ["sleep"], "args": ["4"]})
    cloud.job["lifecycle"] = {"adopt": int(number), "wait": True}
    cloud.declare()
    before = _jobs(cloud)
    output = cloud.up(fails=True)
    assert "is not adopted, as it is not the job that is declared" in output
    assert 'jobSpec.workerPoolSpecs[0].containerSpec.args[0]: "4" declared, and the job has "3"' in output

    cloud.container["args"] = ["3"]
    # What was given to the SDK, in the API's words.
    cloud.job["labels"] = {"team": "vision"}
    cloud.job["jobSpec"]["scheduling"] = {"timeout": "600s", "restartJobOnWorkerRestart": True}
    cloud.declare()
    cloud.up()

    outputs = cloud.outputs()
    assert outputs["jobs"]["train"]["name"] == job["name"]
    assert outputs["results"]["train"] == {"state": "JOB_STATE_SUCCEEDED", "modelDir": "gs://mine/out/model/"}
    cloud.refresh("--expect-no-changes")
    cloud.assert_no_changes()

    # What is declared of it is compared, and replaces nothing.
    cloud.job["displayName"] = "another"
    cloud.declare()
    assert [(step["op"], step["changed"]) for step in cloud.steps()] == [("update", ["spec.displayName"])]

    # Without `adopt` it is a job to be run.
    del cloud.job["displayName"], cloud.job["lifecycle"]["adopt"]
    cloud.declare()
    replaced = [step for step in cloud.steps() if step["name"] == "train" and step["op"] == "replace"]
    assert "adopt" in replaced[0]["changed"]

    cloud.destroy()
    assert cloud.vertex.get(job["name"])["state"] == "JOB_STATE_SUCCEEDED"
    assert _jobs(cloud) == before


def test_a_stack_can_adopt_its_own_job(cloud: CloudProject) -> None:
    del cloud.job["lifecycle"]
    cloud.declare()
    cloud.up()
    own = cloud.resources()["train"]["id"]
    cloud.job["lifecycle"] = {"adopt": own.rpartition("/")[2]}
    cloud.declare()
    shown = {step["name"]: step for step in cloud.steps()}
    assert {name: step["op"] for name, step in shown.items()} == {"ledger": "update", "train": "update"}
    assert shown["train"]["changed"][0] == "adopt"

    before = _jobs(cloud)
    cloud.up()

    assert own in before and _jobs(cloud) == before
    train = cloud.resources()["train"]
    assert (train["id"], train["outputs"]["adopt"]) == (own, f"{PARENT[3:]}/customJobs/{own.rpartition('/')[2]}")
    cloud.assert_no_changes()

    # Another one would be adopted in place of it.
    cloud.job["lifecycle"]["adopt"] = "77"
    cloud.declare()
    assert "replace" in [step["op"] for step in cloud.steps() if step["name"] == "train"]

    cloud.destroy()
    assert _jobs(cloud) == before


def _jobs(cloud: CloudProject) -> list[str]:
    return sorted(job["name"] for job in cloud.vertex.call("GET", f"{PARENT}/customJobs")["customJobs"])
