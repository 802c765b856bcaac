"""Submissions at a pace, and against an API that refuses, fails and loses answers: each job is there once."""

import signal
from collections import Counter
from typing import Any

import pytest

from tests.engine.project import SLEEP, Project
from tests.vertex_emulator.running import IMAGE, PATIENCE_SECONDS

REFUSED = (
    "Quota exceeded for quota metric 'Job or long running operation submission requests' and limit "
    "'Job or long running operation submission requests per minute per region' of service 'aiplatform.googleapis.com' "
)
FAULTS = "/vertex_emulator/faults"
METRIC = "aiplatform.googleapis.com/custom_model_training_cpus"


@pytest.fixture
def project(project: Project) -> Project:
    """A project whose jobs need no image of their own and stay in the queue or asleep."""
    project.declarations = {"customJobs": {}}
    return project


def declare(project: Project, count: int, setting: str = "0") -> None:
    container = {"imageUri": IMAGE, "command": [*SLEEP, "600"], "env": [{"name": "SETTING", "value": setting}]}
    pools = [{"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}]
    project.declarations["customJobs"] = {
        f"job-{number}": {"jobSpec": {"workerPoolSpecs": pools}} for number in range(count)
    }
    project.declare()


def pace(project: Project, per_minute: int | None) -> None:
    project.stack.pop("vertex-training:submissionsPerMinute", None)
    if per_minute:
        project.stack["vertex-training:submissionsPerMinute"] = per_minute
    project.declare()


def inject(project: Project, kind: str, **fault: Any) -> None:
    project.request("POST", FAULTS, {"kind": kind, **fault})


def count_jobs_by_name(project: Project) -> Counter[str]:
    return Counter(job["labels"]["pulumi_name"] for job in project.list_jobs())


def test_messages_name_pace_outage_limit_and_quota(project: Project) -> None:
    declare(project, 7)
    pace(project, 2)
    assert "7 submissions: at least 3 min at 2 a minute\n" in project.pulumi("preview", "--stack", "local")

    pace(project, 60)
    project.start_emulator()
    # All but the last job wait for machines, so that no container is started for them.
    inject(project, "stockout", machine_type="n1-standard-4", after=600, count=14)
    inject(project, "unavailable", count=2)
    inject(project, "lost-answer", count=1)
    output = project.up()
    assert (
        "creating and deleting jobs is paced at 60 a minute (vertex-training:submissionsPerMinute): "
        "7 of them take at least 2 s\n"
    ) in output
    assert (
        "the API does not answer as it should (The service is currently unavailable.); trying again for up to 120 s\n"
    ) in output

    pace(project, None)
    inject(project, "rate", per_minute=60)
    declare(project, 7, setting="1")
    output = project.up()
    assert f"the API has had too many requests in this minute ({REFUSED}" in output
    assert "; trying again for up to 600 s\n" in output
    assert count_jobs_by_name(project) == {f"job-{number}": 1 for number in range(7)}

    inject(project, "quota")
    declare(project, 8, setting="1")
    assert (
        f"job-7: not submitted: the quota in us-central1 does not cover {METRIC} (this job needs 4); "
        "ask for more at https://console.cloud.google.com/iam-admin/quotas\n"
    ) in project.up(fails=True)
    project.request("DELETE", FAULTS)
    project.up()
    assert count_jobs_by_name(project) == {f"job-{number}": 1 for number in range(8)}
    project.assert_no_changes()


def test_ctrl_c_ends_retries_without_loss(project: Project) -> None:
    declare(project, 1)
    project.start_emulator()
    inject(project, "stockout", machine_type="n1-standard-4", after=600)
    inject(project, "unavailable", count=1000)
    up = project.start_pulumi("up", "--yes", "--skip-preview", "--stack", project.name)
    assert up.stdout
    output = ""
    for line in up.stdout:
        output += line
        if "the API does not answer as it should" in line:
            break
    up.send_signal(signal.SIGINT)
    output += up.communicate(timeout=PATIENCE_SECONDS)[0]
    assert "job-0: not submitted: stopped while it was to be tried again" in output, output
    project.request("DELETE", FAULTS)
    project.up()
    (job,) = project.list_jobs()
    assert project.resources()["job-0"]["id"] == job["name"]
