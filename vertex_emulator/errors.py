"""The errors of the emulator; their messages are for clients and users."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vertex_api.validation.shape_validation import FieldProblem

_HTTP_OF_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "ALREADY_EXISTS": 409,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "INTERNAL": 500,
}


class EmulatorError(Exception):
    """The base of all errors: a message of one line, and the exit code of a command that fails with it."""

    exit_code = 1


class StartError(EmulatorError):
    """The emulator cannot start."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class DockerMissing(StartError):
    """The emulator cannot start because no Docker daemon listens."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=5)


class EmulatorNotRunning(EmulatorError):
    """A command needs a running emulator, and there is none."""


class CommandNotRun(EmulatorError):
    """`vertex-emulator exec` cannot run its command; the exit code is of those that shells and `env` use for that."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class SnapshotInvalid(EmulatorError):
    """An archive is no snapshot that this version can import."""


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


class ModelUploadRejected(EmulatorError):
    """A model cannot be uploaded; `status` is a google.rpc.Code name."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class AnswerLost(EmulatorError):
    """The connection of a request is to be cut before its answer, as an injected fault says."""


class ScheduleRunEnded(EmulatorError):
    """A run of a schedule needs the job no more that is being submitted for it: the schedule has been deleted."""


class TooManyScheduleTimes(EmulatorError):
    """A clock cannot be moved over that many times of a schedule at once."""


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


def build_not_found_error(resource_type: str, name: str) -> ApiError:
    """Build the service's error for a resource that does not exist, such as a CustomJob."""
    return ApiError("NOT_FOUND", f'The {resource_type} "{name}" does not exist.')


def build_malformed_name_error(resource_type: str) -> ApiError:
    """Build the service's error for a name that no resource of this type can have."""
    from vertex_api.validation.shape_validation import FieldProblem

    return build_invalid_argument_error([FieldProblem(("name",), f"Invalid {resource_type} resource name.")])


def build_invalid_argument_error(problems: "Sequence[FieldProblem]", headline: str = "") -> ApiError:
    """Build the service's error for the problems of a request: `List of found errors:\\t1.Field: a.b; Message: c`.

    `headline` is a text that comes before them.
    """
    # Imported here because all commands import this module, and validation takes them 0.1 s.
    from vertex_api.validation.problem_limit import select_shown_problems_and_more_text

    shown, more = select_shown_problems_and_more_text(problems)
    pairs = [(_format_field_path(problem), problem.message) for problem in shown]
    texts = [f"{i}.Field: {field}; Message: {message}" for i, (field, message) in enumerate(pairs, 1)]
    message = "\t".join(["List of found errors:", *texts, *([more] if more else []), ""])
    return ApiError("INVALID_ARGUMENT", f"{headline}. {message}" if headline else message, pairs)


def _format_field_path(problem: "FieldProblem") -> str:
    """Render the path of a field in the form of the service's errors; an unknown field as it was spelt."""
    from vertex_api.validation.shape_validation import format_path

    if not problem.is_unknown_field:
        return to_snake_case(problem.path_text)
    *parents, name = problem.path
    return ".".join(filter(None, [to_snake_case(format_path(tuple(parents))), format_path((name,))]))


def to_snake_case(field_path: str) -> str:
    """Convert `jobSpec.workerPoolSpecs[0].x` to the form of the service's errors, `job_spec.worker_pool_specs[0].x`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match.group(1).lower(), field_path)
