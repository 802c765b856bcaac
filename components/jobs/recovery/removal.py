"""Removing a job from the API: what runs is cancelled first, and has ended before it is deleted."""

import time
from contextlib import suppress

from vertex_api.client import JobClient
from vertex_api.errors import InvalidRequest, NotFound
from vertex_api.kinds import TRAINING_PIPELINE
from vertex_api.names import ResourceName
from vertex_api.states import TERMINAL_STATES
from vertex_api.validation.pipeline_tasks import get_backing_job_name

from ...errors import SubmitFailed

CANCEL_SECONDS = 180.0
"""How long a cancelled job may take to end before its deletion is given up until the next run."""


def remove(client: JobClient, name: ResourceName, shown: str, *, keep_record: bool = False) -> None:
    """Ends a job, which a person calls `shown`, and deletes it. One that is gone is fine.

    Raises VertexError, and SubmitFailed for one that does not end.
    """
    with suppress(NotFound):
        if client.get(name)["state"] not in TERMINAL_STATES:
            _cancel(client, name)
            _await_end(client, name, shown)
        if not keep_record:
            if name.kind == TRAINING_PIPELINE:
                _forget_backing(client, name)
            client.delete(name)


def _forget_backing(client: JobClient, name: ResourceName) -> None:
    """Deletes the job that a pipeline has run.

    What Vertex AI does with that job when its pipeline is deleted is not documented. It goes too, and first, as
    afterwards nothing would know its name; the model stays, as what jobs write does.
    """
    if job := get_backing_job_name(client.get(name)):
        # Its record costs nothing, so it may stay where the service does not let it go.
        with suppress(NotFound, InvalidRequest):
            client.delete(ResourceName.parse(job))


def _cancel(client: JobClient, name: ResourceName) -> None:
    try:
        client.cancel(name)
    except InvalidRequest:
        if client.get(name)["state"] not in TERMINAL_STATES:
            raise


def _await_end(client: JobClient, name: ResourceName, shown: str) -> None:
    deadline, pause = time.monotonic() + CANCEL_SECONDS, 0.1
    while (state := client.get(name)["state"]) not in TERMINAL_STATES:
        if time.monotonic() > deadline:
            raise SubmitFailed(f"{shown}: still {state} {CANCEL_SECONDS:.0f} s after it was cancelled; run this again")
        time.sleep(pause)
        pause = min(pause * 1.5, 5)
