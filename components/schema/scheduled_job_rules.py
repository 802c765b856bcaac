"""Rules for jobs that schedules submit: what `pulumi up` alone can do for a job is not for them."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job import Job
from vertex_api.schedules import JOB_LABEL, RUN_ID_LENGTH, SCHEDULE_LABEL
from vertex_api.validation.formats import Violation

from . import interpolation
from .declared_job import LIFECYCLE_KEY

MAX_DISPLAY_NAME_LENGTH = 128 - RUN_ID_LENGTH - 1
"""What the API's limit leaves for the name before a run's id and a hyphen."""
OWN_LABELS = (SCHEDULE_LABEL, JOB_LABEL)
_LIFECYCLE_MESSAGES = {
    "wait": "`pulumi up` waits for no run of a schedule; the stack's output `schedules` has the state of the last one",
    "deadline": "`pulumi up` waits for no run of a schedule; what ends a job is scheduling.timeout",
    "after": "the jobs of a schedule run in the order of its `jobs`",
    "onDelete": "runs of a schedule stay when it is deleted",
    "rerun": "a schedule runs again by itself; docs/schedules.md says how to run it now",
    "adopt": "a job that exists already cannot run again",
}
_NOT_FOR_SCHEDULED = "is not for a job with lifecycle.run: scheduled"


def find_lifecycle_violations(lifecycle: Mapping[str, Any]) -> Iterator[Violation]:
    """Find what the lifecycle of a scheduled job says that is for jobs which `pulumi up` submits."""
    for key, message in _LIFECYCLE_MESSAGES.items():
        if key in lifecycle:
            yield (LIFECYCLE_KEY, key), f"{_NOT_FOR_SCHEDULED}: {message}"


def find_unschedulable_content_violations(spec: Job) -> Iterator[Violation]:
    """Find what a valid spec has that a schedule cannot send.

    Cloud Workflows evaluates each `${` in a request (its page on expressions), so a text cannot hold one beside
    references. A secret would stand in the workflow's source, for everybody who may read it.
    """
    references = interpolation.references(spec.fields)
    for path, reference in references:
        if reference.startswith("secrets."):
            advice = "it would stand in the workflow's source; let the trainer read it from Secret Manager"
            yield path, f"${{{reference}}} {_NOT_FOR_SCHEDULED}: {advice}"
    for path in interpolation.literals(spec.fields):
        yield path, f'a literal "${{" {_NOT_FOR_SCHEDULED}: Cloud Workflows would evaluate it; take it out'
    name = spec.fields.get("displayName", "")
    if len(name) > MAX_DISPLAY_NAME_LENGTH:
        message = f"has {len(name)} characters; at most {MAX_DISPLAY_NAME_LENGTH} leave room for the id of a run"
        yield ("displayName",), message
    for label in OWN_LABELS:
        if label in spec.fields.get("labels", {}):
            yield ("labels", label), "is a label that a schedule gives its jobs itself; take another name"
