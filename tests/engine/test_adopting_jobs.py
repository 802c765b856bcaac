"""Jobs that Google's clients have submitted become a stack's, through the real engine, and leave it unharmed."""

import json
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.clients.environment import variables
from tests.engine.cloud import GCP, CloudProject, create_cloud_project
from tests.vertex_emulator.running import IMAGE, PATIENCE_SECONDS, RunningEmulator

PROJECT, REGION = GCP["vertex-training:project"], GCP["vertex-training:region"]
PARENT = f"v1/projects/{PROJECT}/locations/{REGION}"
SDK = """
import json, os, sys
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform

where, job, options = json.loads(sys.argv[1])
address = os.environ["VERTEX_EMULATOR_ADDRESS"]
aiplatform.init(**where, api_endpoint=address, credentials=AnonymousCredentials())
submitted = aiplatform.CustomJob(**job)
submitted.submit(**options)
print(submitted.resource_name)
"""
"""As docs/clients.md has it; in a process of its own, as what `init` sets holds for the whole process."""


def run_client(vertex: RunningEmulator, *command: str) -> str:
    """Run a client in a shell that `vertex-emulator env` has set up, and return the last line it prints."""
    environment = variables(vertex.data, {}, "--project", PROJECT, "--region", REGION)
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
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


def submit_with_gcloud(gcloud: str, vertex: RunningEmulator, file: Path) -> str:
    """Submit a job with gcloud, from a file for `--config`, and return its name."""
    create = ["ai", "custom-jobs", "create", "--display-name=by gcloud", "--labels=team=vision", "--format=value(name)"]
    name = run_client(vertex, gcloud, *create, f"--config={file}")
    vertex.ended(name)
    return name


class Adopted(NamedTuple):
    """What the first `up` printed, the names of the jobs by client, and those that were there before the second one."""

    refusal: str
    by_sdk: str
    by_gcloud: str | None
    before: list[str]


@pytest.fixture(scope="class")
def stack(tmp_path_factory: pytest.TempPathFactory, vertex: RunningEmulator) -> CloudProject:
    """A stack `dev` of the target gcp with the job `own`, which it has submitted itself."""
    cloud = create_cloud_project(tmp_path_factory.mktemp("adopting"), vertex)
    cloud.declarations["customJobs"]["own"] = {"jobSpec": deepcopy(cloud.job["jobSpec"])}
    return cloud


@pytest.fixture(scope="class")
def adopted(stack: CloudProject) -> Adopted:
    """A job of each client, adopted by the second `up`; at the first one, what is declared was another job."""
    job = submit_with_sdk(stack.vertex)
    stack.container.update({"command": ["sleep"], "args": ["4"]})
    stack.job["lifecycle"] = {"adopt": int(job["name"].rpartition("/")[2]), "wait": True}
    stack.declare()
    refusal = stack.up(fails=True)

    stack.container["args"] = ["3"]
    # What was given to the SDK, in the API's words.
    stack.job["labels"] = {"team": "vision"}
    stack.job["jobSpec"]["scheduling"] = {"timeout": "600s", "restartJobOnWorkerRestart": True}
    name = None
    if gcloud := shutil.which("gcloud"):
        file = stack.root / "training" / "config.yaml"
        file.write_text(yaml.safe_dump({"worker_pool_specs": pools("0"), "scheduling": {"timeout": "600s"}}))
        name = submit_with_gcloud(gcloud, stack.vertex, file)
        declared = {"displayName": "by gcloud", "labels": {"team": "vision"}, "spec": {"file": "training/config.yaml"}}
        stack.declarations["customJobs"]["theirs"] = {**declared, "lifecycle": {"adopt": name.rpartition("/")[2]}}
    stack.declare()
    before = _jobs(stack)
    stack.up()
    return Adopted(refusal, job["name"], name, before)


class TestAdoption:
    """Tests of one stack, in the order of its life."""

    def test_a_job_other_than_declared_is_not_adopted(self, adopted: Adopted) -> None:
        assert "is not adopted, as it is not the job that is declared" in adopted.refusal
        assert 'jobSpec.workerPoolSpecs[0].containerSpec.args[0]: "4" declared, and the job has "3"' in adopted.refusal

    def test_an_sdk_job_is_adopted_and_awaited(self, stack: CloudProject, adopted: Adopted) -> None:
        outputs = stack.outputs()
        assert outputs["jobs"]["train"]["name"] == adopted.by_sdk
        assert " s on 1 n1-standard-4" in outputs["results"]["train"].pop("took")
        assert outputs["results"]["train"] == {"state": "JOB_STATE_SUCCEEDED", "modelDir": "gs://mine/out/model/"}

    @pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
    def test_a_job_submitted_by_gcloud_is_adopted(self, stack: CloudProject, adopted: Adopted) -> None:
        assert stack.resources()["theirs"]["id"] == adopted.by_gcloud

    def test_adopting_submits_nothing(self, stack: CloudProject, adopted: Adopted) -> None:
        own = stack.resources()["own"]["id"]
        assert _jobs(stack) == sorted({*adopted.before, own})

    def test_a_stack_can_adopt_its_own_job(self, stack: CloudProject, adopted: Adopted) -> None:
        own, before = stack.resources()["own"]["id"], _jobs(stack)
        stack.declarations["customJobs"]["own"]["lifecycle"] = {"adopt": own.rpartition("/")[2]}
        # What is declared of an adopted job is compared, and replaces nothing.
        stack.job["displayName"] = "another"
        stack.declare()
        shown = {step["name"]: step for step in stack.steps()}
        assert {name: step["op"] for name, step in shown.items()} == dict.fromkeys(
            ("job-names", "own", "train"), "update"
        )
        assert shown["own"]["changed"][0] == "adopt"
        assert shown["train"]["changed"] == ["spec.displayName"]

        del stack.job["displayName"]
        stack.declare()
        stack.up()

        assert own in before and _jobs(stack) == before
        resource = stack.resources()["own"]
        assert (resource["id"], resource["outputs"]["adopt"]) == (
            own,
            f"{PARENT[3:]}/customJobs/{own.rpartition('/')[2]}",
        )
        stack.assert_no_changes("--refresh")

    def test_another_job_or_none_to_adopt_replaces(self, stack: CloudProject, adopted: Adopted) -> None:
        del stack.job["lifecycle"]["adopt"]
        stack.declarations["customJobs"]["own"]["lifecycle"]["adopt"] = "77"
        stack.declare()
        replaced = {step["name"]: step for step in stack.steps() if step["op"] == "replace"}
        assert replaced.keys() == {"train", "own"}
        assert "adopt" in replaced["train"]["changed"]

    def test_adopted_jobs_outlive_their_stack(self, stack: CloudProject, adopted: Adopted) -> None:
        before = _jobs(stack)
        stack.destroy()
        assert _jobs(stack) == before
        assert stack.vertex.get(adopted.by_sdk)["state"] == "JOB_STATE_SUCCEEDED"


def _jobs(cloud: CloudProject) -> list[str]:
    return sorted(job["name"] for job in cloud.vertex.call("GET", f"{PARENT}/customJobs")["customJobs"])
