"""Removal of a job from the API: an active job is cancelled, and deleted once it has ended."""

import time
from collections.abc import Set
from contextlib import suppress

from vertex_api.client import Client
from vertex_api.errors import InvalidRequest, NotFound
from vertex_api.names import TERMINAL_STATES, TRAINING_PIPELINE, ResourceName
from vertex_api.pipelines import backing_job_name

from ...errors import SubmitFailed
from ...runtime import engine

CANCEL_SECONDS = 900.0
"""How long to wait for a cancelled job to end before its deletion is left to the next run. Google gives no figure: a
job of many replicas takes minutes, and a tuning job ends when all its trials have."""
_REPORT_SECONDS = 60.0
_CANCELLING = {"JOB_STATE_CANCELLING", "PIPELINE_STATE_CANCELLING"}


def remove_job(client: Client, name: ResourceName, display_name: str, *, keep_record: bool = False) -> None:
    """Cancel a job if it is active, and delete it unless `keep_record` is set. A job that is gone is fine.

    With `keep_record` the job need not have ended, if the service is about to end it. `display_name` is for messages.
    Raises VertexError, and SubmitFailed for a job that does not end.
    """
    with suppress(NotFound):
        if client.require(name)["state"] not in TERMINAL_STATES:
            _cancel_and_wait(client, name, display_name, TERMINAL_STATES | (_CANCELLING if keep_record else set()))
        if not keep_record:
            if name.kind == TRAINING_PIPELINE:
                _delete_backing_job(client, name)
            client.delete(name)


def _delete_backing_job(client: Client, pipeline_name: ResourceName) -> None:
    """Delete the job that a pipeline has run.

    What Vertex AI does with that job when its pipeline is deleted is not documented. It is deleted first, because
    its name is known from its pipeline alone. The model stays, as all outputs of jobs do.
    """
    if job := backing_job_name(client.require(pipeline_name)):
        # Its record costs nothing, so it may stay if the service does not delete it.
        with suppress(NotFound, InvalidRequest):
            client.delete(ResourceName.parse(job))


def _cancel_and_wait(client: Client, name: ResourceName, display_name: str, awaited: Set[str]) -> None:
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
