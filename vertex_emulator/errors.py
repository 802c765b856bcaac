"""What can go wrong, in the words that a client or a user reads."""

import re
from collections.abc import Iterable
from typing import Any

from vertex_api.validation.shape import FieldProblem

_HTTP_OF_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "ALREADY_EXISTS": 409,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "INTERNAL": 500,
}


class EmulatorError(Exception):
    """A failure with one line for the person at the terminal; `exit_code` is what the process ends with."""

    exit_code = 1


class StartError(EmulatorError):
    """The emulator cannot start."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class EmulatorNotRunning(EmulatorError):
    """A command needs a running emulator and there is none."""


class JobFailed(EmulatorError):
    """A job whose log was followed did not succeed."""

    exit_code = 4


class ExecutorUnavailable(EmulatorError):
    """Docker does not answer; the job waits and the step is tried again."""


class ImageUnavailable(EmulatorError):
    """An image is neither on this machine nor can it be pulled."""


class ReplicaCannotStart(EmulatorError):
    """The image is there and its container cannot be started: a missing executable or package, a bad mount."""


class InvalidBucketUri(EmulatorError):
    """A gs:// URI that names no folder."""


class ModelUploadRejected(EmulatorError):
    """A model cannot go where it should; `status` is the google.rpc.Code name."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class NetworkUnavailable(EmulatorError):
    """Docker found no room for another network."""


class SearchSpaceExhausted(EmulatorError):
    """Every point of the grid has a trial already."""


class InvalidFilter(EmulatorError):
    """A filter that cannot be read; the message says where."""


class InvalidFault(EmulatorError):
    """A fault that cannot be injected; the message names the field."""


class ApiError(EmulatorError):
    """A reply that is not 200: `status` is a google.rpc.Code name, `violations` pairs of field and description."""

    def __init__(
        self, status: str, message: str, violations: Iterable[tuple[str, str]] = (), http: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.violations = list(violations)
        self.http = http if http is not None else _HTTP_OF_STATUS[status]

    def body(self) -> dict[str, Any]:
        """The google.rpc.Status body as Google's REST front end writes it."""
        error: dict[str, Any] = {"code": self.http, "message": self.message, "status": self.status}
        if self.violations:
            error["details"] = [
                {
                    "@type": "type.googleapis.com/google.rpc.BadRequest",
                    "fieldViolations": [{"field": field, "description": text} for field, text in self.violations],
                }
            ]
        return {"error": error}


def invalid_argument_error(problems: Iterable[FieldProblem], headline: str = "") -> ApiError:
    """All problems of a request in the service's one-line form, `List of found errors:\\t1.Field: a.b; Message: c`.

    `headline` is a text of the service's that comes before them.
    """
    pairs = [(to_snake_case(problem.field), problem.message) for problem in problems]
    text = "\t".join(f"{i}.Field: {field}; Message: {message}" for i, (field, message) in enumerate(pairs, 1))
    found = f"List of found errors:\t{text}"
    return ApiError("INVALID_ARGUMENT", f"{headline}. {found}" if headline else found, pairs)


def to_snake_case(path: str) -> str:
    """`jobSpec.workerPoolSpecs[0].x` as the service names it in errors: `job_spec.worker_pool_specs[0].x`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match.group(1).lower(), path)
