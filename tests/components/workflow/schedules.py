"""Schedules and their jobs for tests of workflows."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from vertex_training.workflow.source import Place, workflow_source

from tests.standins.workflows.executions import Clock, Http, Workflow
from vertex_api.names import CUSTOM_JOB, Kind
from vertex_api.schedules import NAME_LABEL, RUN_ID, SCHEDULE_LABEL, Overlap, ScheduledJob, ScheduleRequest

PLACE = Place("my-project", "us-central1", "team-dev-nightly")
WINDOW = timedelta(minutes=10)


def scheduled(schedule: str, name: str, body: dict[str, Any], kind: Kind = CUSTOM_JOB) -> ScheduledJob:
    """A job of a schedule with the labels, the display name and the folder that a schedule gives it."""
    labels = {SCHEDULE_LABEL: schedule, NAME_LABEL: name}
    folder = {"outputUriPrefix": f"gs://nightly/{schedule}/{RUN_ID}/{name}"}
    spec = {**body[kind.spec_field], "baseOutputDirectory": folder}
    whole = {**body, "displayName": f"{name}-{RUN_ID}", "labels": labels, kind.spec_field: spec}
    return ScheduledJob(name, kind.collection, whole)


def request(id_: str, *jobs: ScheduledJob, overlap: Overlap = "skip") -> ScheduleRequest:
    return ScheduleRequest(id_, "0 2 * * *", "UTC", False, overlap, jobs)


def workflow(
    schedule: ScheduleRequest,
    http: Http,
    clock: Clock | None = None,
    on_sleep: Callable[[float], None] = lambda _: None,
) -> Workflow:
    """The workflow of a schedule, at a time."""
    return Workflow(workflow_source(schedule, PLACE, WINDOW), http, clock or Clock(), on_sleep)
