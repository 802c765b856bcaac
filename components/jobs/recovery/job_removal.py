"""Removal of a job from the API: an active job is cancelled, and deleted once it has ended."""

import time
from contextlib import suppress

from vertex_api.client import JobClient
from vertex_api.client_errors import InvalidRequest, NotFound
from vertex_api.job_kinds import TRAINING_PIPELINE
from vertex_api.job_states import TERMINAL_STATES
from vertex_api.resource_names import ResourceName
from vertex_api.training_pipelines.backing_job import get_backing_job_resource_name_or_none

from ...errors import SubmitFailed

CANCEL_SECONDS = 180.0
"""How long to wait for a cancelled job to end before its deletion is left to the next run."""


def remove_job(client: JobClient, name: ResourceName, display_name: str, *, keep_record: bool = False) -> None:
    """Cancel a job if it is active, and delete it unless `keep_record` is set. A job that is gone is fine.

    `display_name` is for messages. Raises VertexError, and SubmitFailed for a job that does not end.
    """
    with suppress(NotFound):
        if client.require(name)["state"] not in TERMINAL_STATES:
            _cancel_and_wait(client, name, display_name)
        if not keep_record:
            if name.kind == TRAINING_PIPELINE:
                _delete_backing_job(client, name)
            client.delete_and_wait(name)


def _delete_backing_job(client: JobClient, pipeline_name: ResourceName) -> None:
    """Delete the job that a pipeline has run.

    What Vertex AI does with that job when its pipeline is deleted is not documented. It is deleted first, because
    its name is known from its pipeline alone. The model stays, as all outputs of jobs do.
    """
    if job := get_backing_job_resource_name_or_none(client.require(pipeline_name)):
        # Its record costs nothing, so it may stay if the service does not delete it.
        with suppress(NotFound, InvalidRequest):
            client.delete_and_wait(ResourceName.parse(job))


def _cancel_and_wait(client: JobClient, name: ResourceName, display_name: str) -> None:
    try:
        client.cancel(name)
    except InvalidRequest:
        if client.require(name)["state"] not in TERMINAL_STATES:
            raise
    deadline, pause = time.monotonic() + CANCEL_SECONDS, 0.1
    while (state := client.require(name)["state"]) not in TERMINAL_STATES:
        if time.monotonic() > deadline:
            since = f"{CANCEL_SECONDS:.0f} s after it was cancelled"
            raise SubmitFailed(f"{display_name}: still {state} {since}; run this again")
        time.sleep(pause)
        pause = min(pause * 1.5, 5)
