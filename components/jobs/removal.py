"""Removal of jobs from the API: one job, or the orphans of a stack, which it has submitted and no state records."""

import json
import subprocess
import time
from collections.abc import Mapping, Set
from contextlib import suppress

from vertex_api.client import Client
from vertex_api.errors import InvalidRequest, NotFound
from vertex_api.names import TERMINAL_STATES, TRAINING_PIPELINE, ResourceName, location_name
from vertex_api.pipelines import backing_job_name

from ..errors import SubmitFailed
from ..runtime import engine
from .identity import stack_filter

CANCEL_SECONDS = 900.0
"""How long to wait for a cancelled job to end before its deletion is left to the next run. Google gives no figure: a
job of many replicas takes minutes, and a tuning job ends when all its trials have."""
_REPORT_SECONDS = 60.0
_EXPORT_SECONDS = 120
_CANCELLING = {"JOB_STATE_CANCELLING", "PIPELINE_STATE_CANCELLING"}


def remove(client: Client, name: ResourceName, display_name: str, *, keep_record: bool = False) -> None:
    """Cancel a job if it is active, and delete it unless `keep_record` is set. A job that is gone is fine.

    With `keep_record` the job need not have ended, if the service is about to end it. `display_name` is for messages.
    Raises VertexError, and SubmitFailed for a job that does not end.
    """
    with suppress(NotFound):
        if client.require(name)["state"] not in TERMINAL_STATES:
            _cancel(client, name, display_name, TERMINAL_STATES | (_CANCELLING if keep_record else set()))
        if not keep_record:
            if name.kind == TRAINING_PIPELINE:
                _delete_backing_job(client, name)
            client.delete(name)


def _cancel(client: Client, name: ResourceName, display_name: str, awaited: Set[str]) -> None:
    """Cancel a job, and wait until it is in one of the states that are `awaited`."""
    try:
        client.cancel(name)
    except InvalidRequest:
        if client.require(name)["state"] not in TERMINAL_STATES:
            raise
    start, pause = time.monotonic(), 0.1
    next_report = start + _REPORT_SECONDS
    goes_on = "the service goes on ending it; run this again to wait on"
    while (state := client.require(name)["state"]) not in awaited:
        waited = time.monotonic() - start
        if waited > CANCEL_SECONDS:
            raise SubmitFailed(f"{display_name}: still {state} {waited:.0f} s after it was cancelled; {goes_on}")
        if time.monotonic() >= next_report:
            print(f"{display_name}: {state} for {waited:.0f} s, up to {CANCEL_SECONDS:.0f} s", flush=True)  # noqa: T201
            next_report += _REPORT_SECONDS
        if engine.wait_for_cancellation(pause):
            raise SubmitFailed(f"{display_name}: stopped while it was {state}; {goes_on}")
        pause = min(pause * 1.5, 5)


def _delete_backing_job(client: Client, pipeline: ResourceName) -> None:
    """Delete the job that a pipeline has run.

    Vertex AI leaves that job when its pipeline is deleted (docs/fidelity.md, captures). It is deleted first, because
    its name is known from its pipeline alone. The model stays, as all outputs of jobs do.
    """
    if job := backing_job_name(client.require(pipeline)):
        # Its record costs nothing, so it may stay if the service does not delete it.
        with suppress(NotFound, InvalidRequest):
            client.delete(ResourceName.parse(job))


def remove_orphans(client: Client, full_stack: str, display_names: Mapping[str, str]) -> None:
    """Remove those jobs that the stack `organization/project/stack` does not record, and print a line for each.

    `display_names` are for messages, by resource name. If the state cannot be read, nothing is removed. The job that a
    pipeline runs has the pipeline's labels, and no state records it: it is removed with its pipeline. Raises
    VertexError, and SubmitFailed for a job that does not end.
    """
    if not display_names:
        return
    recorded = recorded_ids(full_stack)
    if recorded is None:
        shown = ", ".join(sorted(display_names))
        print(f"{shown}: may be left of a run that was killed; the state cannot be read", flush=True)  # noqa: T201
        return
    orphans = {name: ResourceName.parse(name) for name in display_names if name not in recorded}
    parents = {location_name(each.project, each.region) for each in orphans.values() if each.kind != TRAINING_PIPELINE}
    filter_ = stack_filter(full_stack.partition("/")[2])
    pipelines = (each for parent in parents for each in client.list(TRAINING_PIPELINE, parent, filter_))
    backing_jobs = {backing_job_name(each) for each in pipelines}
    for name, resource_name in orphans.items():
        if name not in backing_jobs:
            shown = display_names[name]
            print(f"{shown}: removing {name}, which a killed run has left", flush=True)  # noqa: T201
            remove(client, resource_name, shown)


def recorded_ids(full_stack: str) -> set[str] | None:
    """Return the ids of all resources in the state of `organization/project/stack`; None if it cannot be read.

    A provider is told of one resource at a time, so this asks the `pulumi` command (it takes half a second).
    """
    command = ["pulumi", "stack", "export", "--stack", full_stack, "--non-interactive"]
    try:
        export = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_EXPORT_SECONDS)
        resources = json.loads(export.stdout)["deployment"].get("resources", [])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return None
    return {resource["id"] for resource in resources if "id" in resource}
