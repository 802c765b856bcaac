"""Schedule and Schedules: what they hand to the target, and what a program's mistakes lead to."""

import json
import re
from pathlib import Path
from typing import Any

import pulumi
import pytest
from vertex_training import CustomJob, JobTemplate, Schedule
from vertex_training.errors import DeclarationErrors
from vertex_training.schedules.component import schedule_id
from vertex_training.schedules.provider import EmulatorSchedule
from vertex_training.stack import RESOURCE_TYPES, Images, Packages, Schedules, Sources

from tests.blocks import taken
from tests.components.fakes import Ground
from tests.components.projects import INCLUDING, load
from tests.components.settings.test_declarations import NIGHTLY
from tests.components.targets.gcp.graph import graph
from tests.vertex_api.futures import MACHINE, future_job
from tests.vertex_api.jobs import custom_job, edited
from vertex_api.names import KINDS, Kind
from vertex_api.schedules import RUN_ID, ScheduleRequest

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
ARGS = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args")


def test_declared_schedules_are_registered_with_requests(tmp_path: Path) -> None:
    options = "timeZone: Europe/Berlin, overlap: allow, paused: true, job: digits"
    settings, ground = load(tmp_path, INCLUDING, jobs=NIGHTLY.replace("job: digits}", f"{options}}}")), Ground()
    found = graph(lambda: Schedules(settings, ground, Sources(Images(settings, ground), Packages(settings, ground))))
    assert [name for name in found.requests if "nightly" in name] == ["Schedule/nightly"]
    request: ScheduleRequest = ground.schedule_requests["nightly"]
    assert (request.cron, request.time_zone, request.paused, request.overlap) == (
        "0 2 * * *",
        "Europe/Berlin",
        True,
        "allow",
    )
    (job,) = request.jobs
    assert (job.name, job.collection, job.body["displayName"]) == ("digits", "customJobs", f"digits-{RUN_ID}")
    assert request.id == f"{job.body['labels']['pulumi_schedule']}"


def schedule(**changes: Any) -> Ground:
    """What a program's schedule hands to the target."""
    ground = Ground()
    args: Any = {
        "cron": "0 2 * * *",
        "jobs": {"train": JobTemplate(CustomJob, custom_job())},
        **changes,
    }
    graph(lambda: Schedule("nightly", args, foundation=ground), preview=True)
    return ground


def test_a_program_s_schedule_is_a_declared_one(tmp_path: Path) -> None:
    request = schedule().schedule_requests["nightly"]
    assert request.jobs[0].body["labels"]["pulumi_name"] == "train"
    assert (request.time_zone, request.paused, request.overlap) == ("UTC", False, "skip")


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_schedule_sends_what_its_jobs_lift(tmp_path: Path, kind: Kind) -> None:
    body, places = future_job(kind)
    template = JobTemplate(RESOURCE_TYPES[kind.collection], body, lifecycle={"allow": places})
    (made,) = schedule(jobs={"train": template}).schedule_requests["nightly"].jobs
    jobs = {
        kind.collection: {"digits": {**body, "lifecycle": {"run": "scheduled", "allow": places}}},
        "schedules": {"nightly": {"cron": "0 2 * * *", "job": "digits"}},
    }
    settings, ground = load(tmp_path, INCLUDING, jobs=json.dumps(jobs)), Ground()
    graph(lambda: Schedules(settings, ground, Sources(Images(settings, ground), Packages(settings, ground))))
    (declared,) = ground.schedule_requests["nightly"].jobs
    for job in (made, declared):
        assert [*job.allow] == places
        assert job.body[kind.spec_field]["pacing"] == body[kind.spec_field]["pacing"]
        assert job.body[kind.spec_field]["workerPoolSpecs"][0]["machineSpec"] == MACHINE


def test_the_schedule_of_the_page_is_made() -> None:
    (lines,) = taken("docs/schedules.md", "python")
    known = {"CustomJob": CustomJob, "JobTemplate": JobTemplate, "Schedule": Schedule}
    given = {**known, "job_spec": custom_job()["jobSpec"], "foundation": Ground()}
    graph(lambda: exec(lines, given), preview=True)
    request = given["foundation"].schedule_requests["nightly"]
    assert (request.cron, request.time_zone, request.jobs[0].name) == ("0 2 * * *", "Europe/Berlin", "train")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cron": "0 25 * * *"}, 'Schedule "nightly": cron: "0 25 * * *": the hour is "25", and must be 0 to 23'),
        ({"time_zone": "Mars"}, 'Schedule "nightly": timeZone: "Mars" is not a time zone'),
        ({"overlap": "queue"}, 'Schedule "nightly": overlap: '),
        ({"jobs": {}}, 'Schedule "nightly": jobs: needs a job'),
        (
            {"jobs": {"train": JobTemplate(CustomJob, edited(custom_job(), *ARGS, to=["$${HOME}"]))}},
            'CustomJob "nightly.train": jobSpec.workerPoolSpecs[0].containerSpec.args[0]: a literal "${" is not for',
        ),
        (
            {"jobs": {"train": JobTemplate(CustomJob, edited(custom_job(), *ARGS, to=["${jobs.later.name}"]))}},
            "${jobs.later.name} is of none of the jobs of this job",
        ),
        (
            {"jobs": {"train": JobTemplate(CustomJob, custom_job(), lifecycle={"rerun": "2"})}},
            'CustomJob "nightly.train": lifecycle.rerun: is not for a job with lifecycle.run: scheduled: a sched',
        ),
        (
            {"jobs": {"train": JobTemplate(CustomJob, custom_job() | {"lables": {}}, lifecycle={"allow": ["lable"]})}},
            'CustomJob "nightly.train": lifecycle.allow[0]: "lable" lifts nothing; did you mean lables?',
        ),
    ],
)
def test_a_program_s_mistakes_fail_the_preview(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationErrors) as failure:
        schedule(**changes)
    assert message in str(failure.value)


def test_no_schedule_has_the_name_of_a_closed_folder() -> None:
    def program() -> None:
        jobs = {"train": JobTemplate(CustomJob, custom_job())}
        Schedule("packages", {"cron": "0 2 * * *", "jobs": jobs}, foundation=LocalGround())

    with pytest.raises(DeclarationErrors, match='"packages" is a folder of the bucket that jobs may not write to'):
        graph(program, preview=True)


def test_a_later_job_uses_results_of_an_earlier_one() -> None:
    second = edited(custom_job(), *ARGS, to=["${jobs.train.name}"])
    jobs = {"train": JobTemplate(CustomJob, custom_job()), "export": JobTemplate(CustomJob, second)}
    request = schedule(jobs=jobs).schedule_requests["nightly"]
    assert [job.name for job in request.jobs] == ["train", "export"]


def test_outputs_in_a_spec_make_the_request_an_output() -> None:
    ground = Ground()

    def program() -> None:
        spec = edited(custom_job(), *ARGS, to=[pulumi.Output.from_input("--epochs=3")])
        jobs = {"train": JobTemplate(CustomJob, spec)}
        Schedule("nightly", {"cron": "0 2 * * *", "jobs": jobs}, foundation=ground)
        ground.schedule_requests["nightly"].apply(lambda request: seen.append(request))

    seen: list[ScheduleRequest] = []
    graph(program, preview=True)
    assert seen[0].jobs[0].body["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--epochs=3"]


class LocalGround(Ground):
    """A ground that keeps schedules as the target local does."""

    def create_schedule(
        self, name: str, request: pulumi.Input[ScheduleRequest], opts: pulumi.ResourceOptions
    ) -> pulumi.Output[Any]:
        return EmulatorSchedule(name, self.full_location_name, request, opts).status


def test_an_update_registers_what_a_preview_shows() -> None:
    def program() -> None:
        jobs = {"train": JobTemplate(CustomJob, custom_job())}
        Schedule("nightly", {"cron": "0 2 * * *", "jobs": jobs}, foundation=LocalGround())

    preview, update = graph(program, preview=True), graph(program)
    name = "EmulatorSchedule/nightly"
    assert preview.inputs[name] == update.inputs[name]
    assert update.inputs[name]["jobs"][0]["body"]["displayName"].endswith(RUN_ID)
    assert update.parent(name) == "Schedule/nightly"


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ({}, 'Schedule "nightly": jobs: needs a job'),
        (
            {"train": JobTemplate(CustomJob, edited(custom_job(), *ARGS, to=["${unknown.name}"]))},
            "${unknown.name} is not a reference that is allowed here",
        ),
    ],
)
def test_an_update_of_an_invalid_program_fails(jobs: dict[str, JobTemplate], message: str) -> None:
    with pytest.raises(DeclarationErrors, match=re.escape(message)):
        graph(lambda: Schedule("nightly", {"cron": "0 2 * * *", "jobs": jobs}, foundation=LocalGround()))


def test_ids_name_project_stack_and_schedule() -> None:
    assert schedule_id("team", "dev", "nightly") == "team_dev_nightly"
    ids = [
        schedule_id("team", "dev", "a.b"),
        schedule_id("team", "dev", "a-b"),
        schedule_id("team", "dev", "a_b"),
        schedule_id("team-dev", "a", "b"),
        schedule_id("team", "dev-a", "b"),
        schedule_id("team", "dev", f"{'n' * 62}1"),
        schedule_id("team", "dev", f"{'n' * 62}2"),
        schedule_id("2026", "Dev", "nightly"),
    ]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z][a-z0-9_-]{0,62}", id_) for id_ in ids)
