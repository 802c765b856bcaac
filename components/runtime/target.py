"""Target: the API that a resource's calls go to. It is resolved for each call, so that no address is an input."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial

from vertex_api.client import Client, Endpoint
from vertex_api.errors import VertexError
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, ResourceName
from vertex_api.retry import LOST_ANSWER_SECONDS, SUBMISSIONS_PER_MINUTE, Caller, Pace

from ..errors import SubmitFailed
from . import emulator, engine, pacing

LOCAL_PREFIX = "//local/"
"""The prefix of full resource names on this machine."""
CLOUD_PREFIX = "//aiplatform.googleapis.com/"
ENDPOINT_VARIABLES = ("CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM", "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING")
"""gcloud's own variables for another address of an API; the emulator's `env` prints them."""
EXECUTIONS_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_WORKFLOWEXECUTIONS"
"""The same for the executions of schedules, which the emulator does not have."""
_GCLOUD_GROUPS = {CUSTOM_JOB: "custom-jobs", HYPERPARAMETER_TUNING_JOB: "hp-tuning-jobs"}
_QUOTA_PAGE = "https://console.cloud.google.com/iam-admin/quotas"


@dataclass(frozen=True)
class EmulatorLinks:
    """The emulator's page at `url`, and its command line."""

    url: str
    quota_page = _QUOTA_PAGE
    """Where to ask for more quota: the emulator injects Google's quotas and has none itself."""

    def page(self, job: ResourceName) -> str:
        """The address of a job's page."""
        return f"{self.url}/jobs/{job.kind.collection}/{job.id}"

    def logs(self, job: ResourceName) -> str:
        """The command that prints a job's log: every job has one."""
        return f"vertex-emulator logs {job.id}"

    def cancel(self, job: ResourceName) -> str:
        """The command that cancels a job."""
        return f"curl -X POST {self.url}/v1/{job}:cancel"


@dataclass(frozen=True)
class GoogleCloudLinks:
    """Google Cloud's console and command line."""

    project: str

    @property
    def quota_page(self) -> str:
        """Where to ask for more quota."""
        return f"{_QUOTA_PAGE}?project={self.project}"

    def page(self, job: ResourceName) -> str:
        """The address of a job's page."""
        page = f"https://console.cloud.google.com/vertex-ai/locations/{job.region}/training/{job.id}"
        return f"{page}?project={self.project}"

    def logs(self, job: ResourceName) -> str:
        """The command that prints a job's log; for a pipeline, which has no log, its page."""
        group = _GCLOUD_GROUPS.get(job.kind)
        if group is None:
            return self.page(job)
        return f"gcloud ai {group} stream-logs {job.id} --region={job.region} --project={self.project}"

    def cancel(self, job: ResourceName) -> str:
        """The command that cancels a job."""
        if group := _GCLOUD_GROUPS.get(job.kind):
            return f"gcloud ai {group} cancel {job.id} --region={job.region} --project={job.project}"
        authorization = '-H "Authorization: Bearer $(gcloud auth print-access-token)"'
        return f"curl -X POST {authorization} {Endpoint.for_region(job.region).jobs}/v1/{job}:cancel"


@dataclass(frozen=True)
class Target:
    """An API that is ready for calls: its `client`, the `parent` of jobs (`projects/P/locations/R`), and `links`."""

    client: Client
    parent: str
    links: EmulatorLinks | GoogleCloudLinks


def resolve(full_location_name: str) -> Target:
    """Return the target of a full resource name such as `//local/projects/P/locations/R`. Raises SubmitFailed.

    Starts the emulator if the target is local and it is not running.
    """
    if full_location_name.startswith(LOCAL_PREFIX):
        endpoint = emulator.start()
        parent = full_location_name.removeprefix(LOCAL_PREFIX)
        return Target(_client(endpoint, full_location_name), parent, EmulatorLinks(endpoint.jobs))
    if full_location_name.startswith(CLOUD_PREFIX):
        parent = full_location_name.removeprefix(CLOUD_PREFIX)
        _, project, _, region = parent.split("/")
        return Target(_client(_cloud_endpoint(region), full_location_name), parent, GoogleCloudLinks(project))
    raise SubmitFailed(f'"{full_location_name}" in the state is of no target that this version knows (local, gcp)')


def _cloud_endpoint(region: str) -> Endpoint:
    google = Endpoint.for_region(region)
    variables = (*ENDPOINT_VARIABLES, EXECUTIONS_VARIABLE)
    jobs, logging, executions = (os.environ.get(variable, "").rstrip("/") for variable in variables)
    if jobs.startswith("http://"):  # a server that gets no credentials
        executions = executions or jobs
    return Endpoint(jobs or google.jobs, logging or google.logging, executions=executions or google.executions)


@cache
def _client(endpoint: Endpoint, full_location_name: str) -> Client:
    is_local = full_location_name.startswith(LOCAL_PREFIX)
    # An emulator that has been killed starts again, at the same port.
    before_retry = emulator.start if is_local else lambda: None
    caller = Caller(
        pace(full_location_name),
        before_retry,
        partial(print, flush=True),
        engine.wait_for_cancellation,
        # The emulator lists a job as soon as it is created, and what its death cuts off is never done later.
        lost_answer_seconds=0.0 if is_local else LOST_ANSWER_SECONDS,
    )
    return Client(endpoint, caller)


def pace(full_location_name: str) -> Pace | None:
    """Return the pace of submissions to a location; None if they are not paced, as those to the emulator."""
    default = SUBMISSIONS_PER_MINUTE if full_location_name.startswith(CLOUD_PREFIX) else None
    return pacing.current().pace(full_location_name, default)


@contextmanager
def one_line_errors(prefix: str) -> Iterator[None]:
    """Raise SubmitFailed in place of a VertexError, as one line: `<prefix>: <what the API answered>`."""
    try:
        yield
    except VertexError as error:
        raise SubmitFailed(f"{prefix}: {error}") from error
