"""A job that someone has submitted by hand becomes a stack's, through the real engine, and leaves it unharmed."""

from typing import Any

from tests.emulator.running import IMAGE, RunningEmulator
from tests.engine.cloud import CloudProject

PARENT = "v1/projects/acme-dev/locations/europe-west4"


def by_hand(vertex: RunningEmulator) -> dict[str, Any]:
    """A job as gcloud or the SDK submits it: with a name, labels and an output folder of its own."""
    job = {
        "displayName": "by hand",
        "labels": {"team": "vision"},
        "jobSpec": {
            "workerPoolSpecs": [
                {
                    "machine_spec": {"machine_type": "n1-standard-4"},
                    "replica_count": 1,
                    "container_spec": {"image_uri": IMAGE, "command": ["sleep"], "args": ["3"]},
                }
            ],
            "baseOutputDirectory": {"outputUriPrefix": "gs://mine/out"},
        },
    }
    return dict(vertex.call("POST", f"{PARENT}/customJobs", job))


def test_a_job_is_adopted_waited_for_and_kept_when_its_stack_goes(cloud: CloudProject) -> None:
    job = by_hand(cloud.vertex)
    number = job["name"].rpartition("/")[2]
    cloud.container.update({"imageUri": IMAGE, "command": ["sleep"], "args": ["4"]})
    cloud.job["lifecycle"] = {"adopt": int(number), "wait": True}
    cloud.declare()
    before = _jobs(cloud)
    output = cloud.up(fails=True)
    assert "is not adopted, as it is not the job that is declared" in output
    assert 'jobSpec.workerPoolSpecs[0].containerSpec.args[0]: "4" declared, and the job has "3"' in output

    cloud.container["args"] = ["3"]
    cloud.declare()
    cloud.up()

    outputs = cloud.outputs()
    assert outputs["jobs"]["train"]["name"] == job["name"]
    assert outputs["results"]["train"] == {"state": "JOB_STATE_SUCCEEDED", "modelDir": "gs://mine/out/model/"}
    cloud.pulumi("refresh", "--yes", "--stack", "dev", "--expect-no-changes")
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

    cloud.pulumi("destroy", "--yes", "--stack", "dev")
    assert cloud.vertex.get(job["name"])["state"] == "JOB_STATE_SUCCEEDED"
    assert _jobs(cloud) == before


def test_a_stack_that_is_told_to_adopt_its_own_job_keeps_it_from_then_on(cloud: CloudProject) -> None:
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

    cloud.pulumi("destroy", "--yes", "--stack", "dev")
    assert _jobs(cloud) == before


def _jobs(cloud: CloudProject) -> list[str]:
    return sorted(job["name"] for job in cloud.vertex.call("GET", f"{PARENT}/customJobs")["customJobs"])
