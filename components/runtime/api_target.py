"""Target: the API that a resource's calls go to. It is resolved for each call, so that no address is an input."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial

from vertex_api.calls.retry_rules import LOST_ANSWER_SECONDS
from vertex_api.calls.retrying_caller import RetryingCaller
from vertex_api.calls.submission_pace import SUBMISSIONS_PER_MINUTE, SubmissionPace
from vertex_api.client import Endpoint, JobClient, RestClient
from vertex_api.client_errors import VertexError

from ..errors import SubmitFailed
from . import emulator_process, engine_cancellation
from .page_and_log_links import EmulatorLinks, GoogleCloudLinks
from .submission_pacing import get_submission_pacing

LOCAL_PREFIX = "//local/"
"""The prefix of full resource names on this machine."""
CLOUD_PREFIX = "//aiplatform.googleapis.com/"
ENDPOINT_VARIABLES = ("CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM", "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING")
"""gcloud's own variables for another address of an API; the emulator's `env` prints them."""
EXECUTIONS_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_WORKFLOWEXECUTIONS"
"""The same for the executions of schedules, which the emulator does not have."""


@dataclass(frozen=True)
class Target:
    """An API that is ready for calls: its `client`, the `parent` of jobs (`projects/P/locations/R`), and `links`."""

    client: JobClient
    parent: str
    links: EmulatorLinks | GoogleCloudLinks


def resolve_target_and_start_emulator(full_location_name: str) -> Target:
    """Return the target of a full resource name such as `//local/projects/P/locations/R`. Raises SubmitFailed.

    Starts the emulator if the target is local and it is not running.
    """
    if full_location_name.startswith(LOCAL_PREFIX):
        endpoint = emulator_process.start_emulator_unless_running()
        parent = full_location_name.removeprefix(LOCAL_PREFIX)
        return Target(_get_or_create_client(endpoint, full_location_name), parent, EmulatorLinks(endpoint.jobs))
    if full_location_name.startswith(CLOUD_PREFIX):
        parent = full_location_name.removeprefix(CLOUD_PREFIX)
        _, project, _, region = parent.split("/")
        endpoint = _build_endpoint_with_environment_overrides(region)
        return Target(_get_or_create_client(endpoint, full_location_name), parent, GoogleCloudLinks(project))
    raise SubmitFailed(f'"{full_location_name}" in the state is of no target that this version knows (local, gcp)')


def get_submission_pace_or_none(full_location_name: str) -> SubmissionPace | None:
    """Return the pace of submissions to a location; `None` if they are not paced, as those to the emulator."""
    default = SUBMISSIONS_PER_MINUTE if full_location_name.startswith(CLOUD_PREFIX) else None
    return get_submission_pacing().get_pace_or_none(full_location_name, default)


def _build_endpoint_with_environment_overrides(region: str) -> Endpoint:
    google = Endpoint.for_region(region)
    variables = (*ENDPOINT_VARIABLES, EXECUTIONS_VARIABLE)
    jobs, logging, executions = (os.environ.get(variable, "").rstrip("/") for variable in variables)
    if jobs.startswith("http://"):  # a server that gets no credentials
        executions = executions or jobs
    return Endpoint(jobs or google.jobs, logging or google.logging, executions=executions or google.executions)


@contextmanager
def translate_api_errors(error_prefix: str) -> Iterator[None]:
    """Raise SubmitFailed in place of a VertexError, as one line: `<error_prefix>: <what the API answered>`."""
    try:
        yield
    except VertexError as error:
        raise SubmitFailed(f"{error_prefix}: {error}") from error


@cache
def _get_or_create_client(endpoint: Endpoint, full_location_name: str) -> JobClient:
    is_local = full_location_name.startswith(LOCAL_PREFIX)
    # An emulator that has been killed starts again, at the same port.
    before_retry = emulator_process.start_emulator_unless_running if is_local else lambda: None
    caller = RetryingCaller(
        get_submission_pace_or_none(full_location_name),
        before_retry,
        partial(print, flush=True),
        engine_cancellation.wait_for_cancellation,
        # The emulator lists a job as soon as it is created, and what its death cuts off is never done later.
        lost_answer_seconds=0.0 if is_local else LOST_ANSWER_SECONDS,
    )
    return RestClient(endpoint, caller)
