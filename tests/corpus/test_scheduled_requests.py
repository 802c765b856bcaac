"""The request that a schedule's workflow sends is that of the declared job, for all specs as people write them."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from vertex_training.plan.training import Timetable
from vertex_training.schema import interpolation
from vertex_training.workflow.source import Place, request_violations, size_violation, workflow_source

from tests.components.workflow.schedules import WINDOW, request
from tests.corpus.specs import Spec, settings
from tests.corpus.test_accepted import CLEAN, GROUND, checked
from tests.standins.workflows.executions import Workflow
from tests.vertex_emulator.fakes import Clock, Machine
from vertex_api.job import Job
from vertex_api.messages import value_at
from vertex_api.names import Kind
from vertex_api.schedules import NAME_LABEL, SCHEDULE_LABEL
from vertex_emulator.api.jobs import JobService
from vertex_emulator.database import Database
from vertex_emulator.errors import ApiError
from vertex_emulator.names import Location

PLACE = Place("acme-dev", "us-central1", "team_dev_nightly")
OWN_FIELDS = ("name", "createTime", "updateTime", "displayName")
OWN_LABELS = (SCHEDULE_LABEL, NAME_LABEL)


def send(spec: Job, name: str) -> tuple[str, Any]:
    """The id of a run of a schedule with one job, and the request that its workflow sends."""
    requests = Timetable("nightly", "", (name,)).requests("team_dev_nightly", {name: spec}, GROUND.defaults)
    schedule = request("team_dev_nightly", *requests)
    source = workflow_source(schedule, PLACE, WINDOW)
    assert not list(request_violations(schedule)) and size_violation(source) is None
    sent: list[Any] = []

    def answer(method: str, url: str, query: Mapping[str, Any], body: Any) -> Any:
        if method == "POST":
            assert url == f"{PLACE.location_url}/{spec.kind.collection}"
            sent.append(body)
        return {"name": "n"} if method == "POST" else {}

    execution = Workflow(source, answer).execute()
    assert execution.error is None and len(sent) == 1
    return execution.result["run"], sent[0]


def without_run(kind: Kind, job: Mapping[str, Any]) -> dict[str, Any]:
    """A job without what is each run's own: names, times, its output folder, and the labels of its schedule."""
    rest: dict[str, Any] = copy.deepcopy({key: value for key, value in job.items() if key not in OWN_FIELDS})
    rest["labels"] = {key: value for key, value in rest.get("labels", {}).items() if key not in OWN_LABELS}
    del value_at(rest, Job(kind, job).job_spec_path)["baseOutputDirectory"]
    return rest


def post(jobs: JobService, kind: Kind, body: Mapping[str, Any]) -> Any:
    """What the emulator makes of a request: a job, or a refusal."""
    try:
        return without_run(kind, jobs.create(kind, Location(PLACE.project, PLACE.region), body))
    except ApiError as error:
        return str(error)


@pytest.mark.parametrize("spec", CLEAN, ids=lambda spec: spec.name)
def test_workflows_send_what_declared_jobs_send(spec: Spec, tmp_path: Path) -> None:
    spec.declare(tmp_path)
    jobs = JobService(Database(tmp_path / "jobs.sqlite"), tmp_path, 4, Machine(Clock()), lambda _: None, "")
    for job in settings(tmp_path).jobs:
        declared = interpolation.expand(checked(job.job, job.name), {})
        run, sent = send(job.job, job.name)
        assert without_run(job.kind, sent) == without_run(job.kind, declared)
        assert post(jobs, job.kind, sent) == post(jobs, job.kind, declared)
        assert sent["displayName"] == f"{declared['displayName']}-{run}"
        folder = value_at(sent, Job(job.kind, sent).job_spec_path)["baseOutputDirectory"]
        assert folder["outputUriPrefix"].endswith(f"/{run}/{job.name}")
        assert sent["labels"] == {**declared.get("labels", {}), **{key: sent["labels"][key] for key in OWN_LABELS}}
