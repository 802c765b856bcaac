"""The service's error messages for jobs that fail, as captures of real jobs show them (docs/fidelity.md)."""

import re
from collections.abc import Iterable
from urllib.parse import quote

from vertex_emulator.database.records import Job, Replica
from vertex_emulator.names import Location

_TRACEBACK = "Traceback (most recent call last):"
_MAX_TRACEBACK_CHARACTERS = 2000
_OCI_ERROR = "OCI runtime create failed"
_ARTIFACT_REGISTRY = re.compile(
    r"(?P<location>[a-z0-9-]+)-docker\.pkg\.dev/(?P<project>[^/]+)/(?P<repository>[^/]+)/.+"
)
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127  # a shell's exit codes for a command that cannot be run


def build_console_log_url(job: Job) -> str:
    """Return the page of a job's log in Google Cloud's console. Tools find the job's id in it, by `job_id%2F`."""
    _, job_id = job.owner
    log_filter = quote(f'resource.type="ml_job"\nresource.labels.job_id="{job_id}"', safe=".")
    return (
        f"https://console.cloud.google.com/logs/viewer?project={job.location.project_number}"
        f"&resource=ml_job%2Fjob_id%2F{job_id}&advancedFilter={log_filter}"
    )


def render_nonzero_exit_message(job: Job, replica: Replica, exit_code: int, traceback: str = "") -> str:
    """Render the error of a job whose replica exited with an error; `traceback` is that of a Python package, if any."""
    reason = f"Termination reason: Error. \n{traceback}\n\n" if traceback else ""
    return f"{_render_exit_sentence(replica, exit_code)} {reason}{_render_log_hint(job)}"


def render_low_memory_message(replica: Replica) -> str:
    """Render the error of a job whose replica ran out of memory. It names the pool and has no link."""
    return f"Replicas low on memory: workerpool{replica.pool}. Specify a machine with larger memory and try again."


def render_failed_start_message(job: Job, replica: Replica, reason: str) -> str:
    """Render the error of a job whose replica cannot start for `reason`; the service's text where Docker says why."""
    _, oci_error, detail = reason.partition(_OCI_ERROR)
    if not oci_error:
        return f"The replica {replica.task_name} failed to start: {reason}"
    exit_code = _NOT_EXECUTABLE if "permission denied" in detail else _NOT_FOUND
    return (
        f"{_render_exit_sentence(replica, exit_code)} Termination reason: ContainerCannotRun. \n"
        f" Termination log message: {oci_error}{detail}\n\n{_render_log_hint(job)}"
    )


def render_unavailable_image_message(image: str, reason: str, location: Location) -> str:
    """Render the error of a job in `location`: the service's text, then Docker's `reason`.

    Real jobs fail with this text for Artifact Registry whether the permission, the image or the repository is missing.
    """
    match = _ARTIFACT_REGISTRY.fullmatch(image)
    if match is None:
        return f"The image {reason}."
    return (
        f"Vertex AI Service Agent service-{location.project_number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com does "
        f"not have permission to access Artifact Registry repository projects/{match['project']}/locations/"
        f"{match['location']}/repositories/{match['repository']}. On this machine: {reason}."
    )


def render_stockout_message(region: str) -> str:
    """Render the service's error message for missing machines (Google's page on troubleshooting)."""
    return f"Resources are insufficient in region: {region}. Try a different region or use a different accelerator."


def shorten_last_traceback_or_empty(stderr_lines: Iterable[str]) -> str:
    """Return what a Python program wrote from its last traceback on, shortened by `[...]`; "" without a traceback."""
    lines: list[str] = []
    for line in stderr_lines:
        if line == _TRACEBACK:
            lines = [line]
        elif lines:
            lines.append(line)
    last, characters = list[str](), 0
    for line in reversed(lines[1:]):
        characters += len(line) + 1
        if last and characters > _MAX_TRACEBACK_CHARACTERS:
            last.append("  [...]")
            break
        last.append(line[:_MAX_TRACEBACK_CHARACTERS])
    return "\n".join([*lines[:1], *reversed(last)])


def _render_exit_sentence(replica: Replica, exit_code: int) -> str:
    return f"The replica {replica.task_name} exited with a non-zero status of {exit_code}."


def _render_log_hint(job: Job) -> str:
    return f"To find out more about why your job exited please check the logs: {build_console_log_url(job)}"
