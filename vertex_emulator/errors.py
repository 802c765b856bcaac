"""The errors of the emulator; their messages are for clients and users."""

from collections.abc import Iterable, Mapping
from typing import Any

_HTTP_OF_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "INTERNAL": 500,
}


class EmulatorError(Exception):
    """The base of all errors: a message of one line, and the exit code of a command that fails with it."""

    exit_code = 1

    def __init__(self, message: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        if exit_code is not None:
            self.exit_code = exit_code


class StartError(EmulatorError):
    """The emulator cannot start."""


class DockerMissing(StartError):
    """The emulator cannot start because no Docker daemon listens."""

    exit_code = 5


class EmulatorNotRunning(EmulatorError):
    """A command needs a running emulator, and there is none."""


class CommandNotRun(EmulatorError):
    """`vertex-emulator exec` cannot run its command; the exit code is of those that shells and `env` use for that."""


class SnapshotInvalid(EmulatorError):
    """An archive is no snapshot that this version can import."""


class JobAmbiguous(EmulatorError):
    """A name that a command gives is that of jobs of several kinds."""


class JobFailed(EmulatorError):
    """A job whose log was followed did not succeed."""

    exit_code = 4


class ExecutorUnavailable(EmulatorError):
    """Docker does not answer; the job waits, and the step is repeated."""


class NetworkUnavailable(ExecutorUnavailable):
    """Docker has no free subnet for another network."""


class ImageUnavailable(EmulatorError):
    """An image is not on this machine and cannot be pulled."""


class ReplicaCannotStart(EmulatorError):
    """A container cannot be started although its image exists, for example without its executable or package."""


class DebuggerUnavailable(ReplicaCannotStart):
    """A replica cannot be debugged, because debugpy is not installed."""


class ReplicaNotRunning(EmulatorError):
    """A replica's container does not run, or ends while a command uses it."""


class InvalidBucketUri(EmulatorError):
    """A gs:// URI does not name a folder of a bucket."""


class InvalidBucketName(InvalidBucketUri):
    """A `name` is that of no bucket."""

    def __init__(self, uri: str, name: str) -> None:
        rule = 'bucket names are 3 to 222 lowercase letters, digits, ".", "_", "-"'
        super().__init__(f'"{uri}" names no bucket: {rule}')
        self.name = name


class ModelUploadRejected(EmulatorError):
    """A model cannot be uploaded; `status` is a google.rpc.Code name."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class AnswerLost(EmulatorError):
    """The connection of a request is to be cut before its answer, as an injected fault says."""


class ScheduleRunEnded(EmulatorError):
    """A run of a schedule needs the job no more that is being submitted for it: the schedule has been deleted."""


class SearchSpaceExhausted(EmulatorError):
    """Every point of the grid has a trial already."""


class InvalidFilter(EmulatorError):
    """A filter cannot be parsed; the message says where."""


class InvalidFault(EmulatorError):
    """A fault cannot be injected; the message names the field."""

    exit_code = 2


class ApiError(EmulatorError):
    """An error reply: `status` is a google.rpc.Code name, `violations` are pairs of field and description.

    `error_info` has the fields of a google.rpc.ErrorInfo.
    """

    def __init__(
        self,
        status: str,
        message: str,
        violations: Iterable[tuple[str, str]] = (),
        http: int | None = None,
        error_info: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.violations = list(violations)
        self.error_info = error_info
        self.http = http if http is not None else _HTTP_OF_STATUS[status]

    def to_json(self) -> dict[str, Any]:
        """Return the google.rpc.Status as the body of a reply, in the form of Google's REST APIs."""
        error: dict[str, Any] = {"code": self.http, "message": self.message, "status": self.status}
        if self.violations:
            violations = [{"field": field, "description": text} for field, text in self.violations]
            error["details"] = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}]
        if self.error_info:
            error["details"] = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", **self.error_info}]
        return {"error": error}
