"""A schedule of the target gcp through the real engine, and a run of the workflow that it creates."""

import time
from collections.abc import Iterator

import pytest
from vertex_training.runtime.target import EXECUTIONS_VARIABLE

from tests.engine.cloud import CloudProject
from tests.engine.golden import load_golden_steps
from tests.standins.workflows.executions import Clock, Workflow
from tests.standins.workflows.server import ExecutionsServer, serve_executions
from tests.standins.workflows.training_api import TrainingApi
from tests.vertex_emulator.running import RunningEmulator


@pytest.fixture
def executions() -> Iterator[ExecutionsServer]:
    with serve_executions() as server:
        yield server


def test_a_cloud_schedule_lives_with_its_stack(
    cloud: CloudProject, vertex: RunningEmulator, executions: ExecutionsServer
) -> None:
    """What one `up` would leave to do would show among the steps of the next edit."""
    cloud.job["lifecycle"] = {"run": "scheduled"}
    nightly: dict[str, object] = {"cron": "0 2 * * *", "timeZone": "Europe/Berlin", "job": "train"}
    cloud.declarations["schedules"] = {"nightly": nightly}
    cloud.environment[EXECUTIONS_VARIABLE] = executions.url
    cloud.declare()
    steps = cloud.update().steps
    made = [step for step in steps if step["name"].startswith(("nightly", "schedules"))]
    assert made == load_golden_steps("gcp-schedule-first")
    assert [step for step in steps if step["type"] == "CustomJob"] == []

    (created,) = [line for line in cloud.read_provider_calls() if line["name"] == "nightly-workflow"]
    source, api = created["inputs"]["sourceContents"], TrainingApi(vertex, "europe-west4")
    workflow = Workflow(source, api, Clock(time.time()))
    execution = workflow.execute()
    name = f"projects/acme-dev/locations/europe-west4/workflows/{created['inputs']['name']}"
    executions.workflows[name] = workflow
    assert execution.error is None, execution.error
    vertex.ended(execution.result["jobs"]["train"])

    image = cloud.declarations["images"]["trainer"]
    image["uri"] = f"{image['uri']}@sha256:{'1' * 64}"
    cloud.declare()
    assert cloud.update("--refresh").steps == load_golden_steps("gcp-schedule-code-edit")
    status = cloud.outputs()["schedules"]["nightly"]
    run = status["lastRun"]
    assert status["lastExecution"] == {"state": "SUCCEEDED", "start": status["lastExecution"]["start"]}
    assert (run["runId"], run["state"]) == (execution.result["run"], "SUCCEEDED")
    assert run["modelDirs"]["train"].endswith(f"/nightly/{run['runId']}/train/model/")

    nightly["cron"] = "30 3 * * *"
    cloud.declare()
    assert cloud.update().steps == load_golden_steps("gcp-schedule-cron-edit")
    nightly["paused"] = True
    cloud.declare()
    assert cloud.update().steps == load_golden_steps("gcp-schedule-pause")
    cloud.assert_no_changes()
