"""Errors of calls to the API. Every message is one line that can be shown to users.

VertexError
├── InvalidRequest      the service rejects the request (400, 409, 412)
├── PermissionDenied    credentials are missing, or lack a permission (401, 403)
├── NotFound            the job does not exist (404)
├── QuotaExceeded       the quota is exceeded (429)
└── Unavailable         the service cannot be reached or fails (5xx, no connection)
"""

CREDENTIALS_REMEDY = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS"
"""What to do if there are no valid Google credentials."""


class VertexError(Exception):
    """A call to the training API failed."""


class InvalidRequest(VertexError):
    """The service rejects the request."""


class PermissionDenied(VertexError):
    """Credentials are missing, or lack a permission."""


class NotFound(VertexError):
    """The job does not exist."""


class QuotaExceeded(VertexError):
    """The project's quota does not cover the request."""


class Unavailable(VertexError):
    """The service cannot be reached, or fails."""
