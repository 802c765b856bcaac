"""Requests that this emulator's Cloud Storage does not support: unknown query parameters, methods, access rules."""

import re
from collections.abc import Iterable, Mapping

from starlette.requests import Request
from starlette.responses import Response

from vertex_emulator.errors import ApiError

_SYSTEM_PARAMETERS = {"alt", "fields", "key", "prettyPrint", "projection", "quotaUser", "userProject", "$prettyPrint"}
_ACCESS_RULES = re.compile(r"/storage/v1/b/[^/]+/o/[^/]+/(?:acl(?:/[^/]+)?|iam(?:/testPermissions)?)")


def get_checked_query(request: Request, allowed: Iterable[str] = ()) -> Mapping[str, str]:
    """Return the query. Raises ApiError for a parameter that the method does not have."""
    for name in request.query_params:
        if name not in _SYSTEM_PARAMETERS and name not in allowed:
            message = f'This emulator\'s Cloud Storage does not know the query parameter "{name}" here.'
            raise ApiError("INVALID_ARGUMENT", message, [(name, "unknown query parameter")])
    return request.query_params


def get_bucket_and_object_name_or_refuse_acl_method(request: Request) -> tuple[str, str]:
    """Return the names in a path `/b/BUCKET/o/NAME`. Raises ApiError for a method on an object's access rules."""
    if _ACCESS_RULES.fullmatch(get_encoded_path(request)):
        raise_unimplemented(request)
    return request.path_params["bucket"], request.path_params["name"]


def get_encoded_path(request: Request) -> str:
    """Return the path as the client wrote it, in which slashes of names are encoded."""
    return bytes(request.scope["raw_path"]).decode("latin-1")


def raise_unimplemented(request: Request) -> Response:
    """Raise the error for a method that the API has, or may have, and this emulator does not."""
    call = f"{request.method} {request.url.path}"
    message = f"This emulator's Cloud Storage has no {call} (docs/fidelity.md lists what it has)."
    raise ApiError("UNIMPLEMENTED", message)


def find_xml_multipart_upload_error(request: Request) -> ApiError | None:
    """Return the error for a multipart upload of the XML API, which has paths of its own; None for other requests."""
    if request.query_params.keys() & {"uploads", "uploadId"}:
        message = "This emulator has no multipart uploads of Cloud Storage's XML API; upload resumably by the JSON API."
        return ApiError("UNIMPLEMENTED", message)
    return None
