"""What can go wrong in a call to the API. Every message is one line, fit to be shown as it is.

VertexError
├── InvalidRequest      the service refuses the request as it is (400, 409, 412)
├── PermissionRefused   credentials are missing, or lack a permission (401, 403)
├── NotFound            there is no such job (404)
├── QuotaExceeded       too much is asked for at once (429)
└── Unavailable         the service cannot be reached, or fails (5xx, no connection)
"""


class VertexError(Exception):
    """A call to the training API failed."""


class InvalidRequest(VertexError):
    """The service refuses the request as it is."""


class PermissionDenied(VertexError):
    """Credentials are missing, or lack a permission."""


class NotFound(VertexError):
    """There is no such job."""


class QuotaExceeded(VertexError):
    """The project's quota does not cover the request."""


class Unavailable(VertexError):
    """The service cannot be reached, or fails."""
