"""Errors of calls to the API, and what all messages to users keep to. Every message is one line.

VertexError
├── InvalidRequest          the service rejects the request (400, 409, 412)
├── PermissionDenied        credentials are missing, or lack a permission (401, 403)
├── NotFound                the job does not exist (404)
├── QuotaExceeded           the project's quota does not cover the request (429)
├── RateLimited             there are too many requests in a minute (429)
├── Interrupted             the run was asked to stop while a call was to be made again
└── Unavailable             the service cannot be reached or fails (5xx, no connection)
    └── OperationUnfinished what the service has accepted is not done in time
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

MAX_PROBLEMS = 100
"""How many problems of an input are reported: a hundred say what is wrong, and each one costs time and text."""
MORE_PROBLEMS = f"validation stops at {MAX_PROBLEMS} problems, so there may be more: fix these first"
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of control and format characters (such as those that reverse text) and line ends."""
LOG_LINK = "To find out more about why your job exited please check the logs: "
"""What stands before a link to the log in Google Cloud's console, at the end of a failed job's error (captures)."""
FOUND_HERE = "On this machine: "
"""How lines of a job's log begin that the emulator adds to those of the service."""


class Refusal(str):
    """The message of a rule of the service, or of what its API did not have yet when these types were made.

    A job may lift such a problem. All others are about what has to be known of a job, or are rules of somebody else.
    """


Item = TypeVar("Item")


class VertexError(Exception):
    """A call to the training API failed. `retry_after` is how many seconds the service asks to wait, if it does."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(visible(message))
        self.retry_after = retry_after


class InvalidRequest(VertexError):
    """The service rejects the request."""


class PermissionDenied(VertexError):
    """Credentials are missing, or lack a permission."""


class NotFound(VertexError):
    """The job does not exist."""


class QuotaExceeded(VertexError):
    """The project's quota does not cover the request. `metrics` are the names of the quotas, if the service says so."""

    def __init__(self, message: str, metrics: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.metrics = tuple(metrics)


class RateLimited(VertexError):
    """The project has sent more requests in a minute than the service takes."""


class Interrupted(VertexError):
    """The run was asked to stop while a call was to be made again."""


class Unavailable(VertexError):
    """The service cannot be reached, or fails."""


class OperationUnfinished(Unavailable):
    """The service has accepted a request and has not finished it in time."""


def visible(text: str, kept: str = "") -> str:
    """Return a text without effect on a terminal: control and format characters but those in `kept` are escaped."""
    if text.isprintable():
        return text
    return "".join(each if each in kept or each.isprintable() else _escape(each) for each in text)


def without_log_link(error: str) -> str:
    """Return the error of a job without its link to the console, which has no log of a job on this machine."""
    return re.sub(rf"\s*{LOG_LINK}\S+", "", error)


def _escape(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    return {"\n": "\\n", "\t": "\\t"}.get(character, f"\\u{ord(character):04x}")


def first_problems(problems: Iterable[Item]) -> list[Item]:
    """Return the first problems: one more than are shown, if there are as many, to tell that validation stopped."""
    return list(islice(problems, MAX_PROBLEMS + 1))


def too_many(problems: Sequence[object]) -> bool:
    """Return whether there are more problems than are shown, so that validation may stop."""
    return len(problems) > MAX_PROBLEMS


def shown_problems(problems: Sequence[Item]) -> tuple[Sequence[Item], str]:
    """Return the problems to show, and the text of the last line: empty if these are all."""
    return problems[:MAX_PROBLEMS], MORE_PROBLEMS if too_many(problems) else ""
