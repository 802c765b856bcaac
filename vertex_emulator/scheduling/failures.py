"""How jobs fail: the service's codes and messages, as captures of real jobs show them (docs/fidelity.md)."""

import re
from collections.abc import Callable, Iterable
from urllib.parse import quote

from vertex_api.errors import LOG_LINK
from vertex_emulator.database.records import FAILED, Ending, Job, Replica
from vertex_emulator.replicas.containers import ReplicaStatus

# google.rpc.Code
INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS = 3, 4, 5, 6
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, INTERNAL = 8, 9, 13

_TRACEBACK = "Traceback (most recent call last):"
_MAX_TRACEBACK_CHARACTERS = 2000
_OCI_ERROR = "OCI runtime create failed"
_ARTIFACT_REGISTRY = re.compile(
    r"(?P<location>[a-z0-9-]+)-docker\.pkg\.dev/(?P<project>[^/]+)/(?P<repository>[^/]+)/.+"
)
_UNREACHED = re.compile(
    r"no such host|dial (tcp|udp)|server misbehaving|name resolution|i/o timeout|network is unreachable"
    r"|no route to host|connection (refused|reset)|proxyconnect|TLS handshake timeout|x509:|Client\.Timeout"
    r"|deadline exceeded|\bEOF\b",
    re.IGNORECASE,
)
"""How Go's net package, in Docker's words, says that a registry has not answered."""
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127  # a shell's exit codes for a command that cannot be run


def exited(
    job: Job, replica: Replica, status: ReplicaStatus, read_traceback: Callable[[Replica], str], now: int
) -> Ending:
    """A replica exited with an error or ran out of memory; a Python package's last traceback is shown.

    The message for memory names the pool and has no link.
    """
    if status.out_of_memory:
        advice = "Specify a machine with larger memory and try again."
        return Ending(FAILED, RESOURCE_EXHAUSTED, f"Replicas low on memory: workerpool{replica.pool}. {advice}", now)
    is_package = "pythonPackageSpec" in job.spec["jobSpec"]["workerPoolSpecs"][replica.pool]
    traceback = read_traceback(replica) if is_package else ""
    reason = f"Termination reason: Error. \n{traceback}\n\n" if traceback else ""
    message = f"{exit_sentence(replica, status.exit_code)} {reason}{_log_hint(job)}"
    return Ending(FAILED, INVALID_ARGUMENT, message, now)


def exit_sentence(replica: Replica, exit_code: int) -> str:
    """The service's sentence for a replica that failed."""
    return f"The replica {replica.task_name} exited with a non-zero status of {exit_code}."


def not_started(job: Job, replica: Replica, reason: str, now: int) -> Ending:
    """A replica cannot start for `reason`; the service's text where Docker says why."""
    _, oci_error, detail = reason.partition(_OCI_ERROR)
    if oci_error:
        exit_code = _NOT_EXECUTABLE if "permission denied" in detail else _NOT_FOUND
        message = (
            f"{exit_sentence(replica, exit_code)} Termination reason: ContainerCannotRun. \n"
            f" Termination log message: {oci_error}{detail}\n\n{_log_hint(job)}"
        )
    else:
        message = f"The replica {replica.task_name} failed to start: {reason}"
    return Ending(FAILED, INVALID_ARGUMENT, message, now)


def image_unavailable(job: Job, image: str, reason: str, now: int) -> Ending:
    """An image cannot be had: where its registry has answered so, the service's text, then Docker's `reason`.

    Real jobs fail with this text for Artifact Registry whether the permission, the image or the repository is missing.
    A registry that this machine does not reach has answered nothing.
    """
    match = _ARTIFACT_REGISTRY.fullmatch(image)
    message = f"The image {reason.rstrip('.')}."
    if _UNREACHED.search(reason):
        host = _registry(image)
        message += f" This machine does not reach {host}: connect it, or bring the image here by `docker load`."
    elif match is not None:
        agent = f"service-{job.location.project_number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
        message = (
            f"Vertex AI Service Agent {agent} does not have permission to access Artifact Registry repository "
            f"projects/{match['project']}/locations/{match['location']}/repositories/{match['repository']}. "
            f"On this machine: {reason.rstrip('.')}."
        )
    return Ending(FAILED, FAILED_PRECONDITION, message, now)


def _registry(image: str) -> str:
    """The host of an image's registry: the first part of its name if that can be one, by Docker's rule."""
    host, slash, _ = image.partition("/")
    return host if slash and (host == "localhost" or {".", ":"} & {*host}) else "docker.io"


def stockout(job: Job, now: int) -> Ending:
    """There are no machines for a job (Google's page on troubleshooting)."""
    advice = "Try a different region or use a different accelerator."
    message = f"Resources are insufficient in region: {job.location.region}. {advice}"
    return Ending(FAILED, RESOURCE_EXHAUSTED, message, now)


def internal(cause: str, now: int) -> Ending:
    """A cause that is neither the program's nor the user's."""
    return Ending(FAILED, INTERNAL, f"Internal error occurred for the current attempt: {cause}", now)


def last_traceback(stderr_lines: Iterable[str]) -> str:
    """What a Python program wrote from its last traceback on, shortened by `[...]`; "" without a traceback."""
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


def _log_hint(job: Job) -> str:
    return LOG_LINK + console_url(job)


def console_url(job: Job) -> str:
    """The page of a job's log in Google Cloud's console. Tools find the job's id in it, by `job_id%2F`."""
    _, job_id = job.owner
    log_filter = quote(f'resource.type="ml_job"\nresource.labels.job_id="{job_id}"', safe=".")
    return (
        f"https://console.cloud.google.com/logs/viewer?project={job.location.project_number}"
        f"&resource=ml_job%2Fjob_id%2F{job_id}&advancedFilter={log_filter}"
    )
