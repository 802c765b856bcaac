"""Errors of calls to the API. Every message is one line that can be shown to users.

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

import unicodedata
from collections.abc import Sequence

_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of control and format characters (such as those that reverse text) and line ends."""


def visible(text: str, kept: str = "") -> str:
    """Return a text without effect on a terminal: control and format characters but those in `kept` are escaped."""
    if text.isprintable():
        return text
    return "".join(each if each in kept or each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    return {"\n": "\\n", "\t": "\\t"}.get(character, f"\\u{ord(character):04x}")


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
