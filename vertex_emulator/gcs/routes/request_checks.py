"""What all methods of Cloud Storage read from a request: query parameters, names, and whether its client is there."""

import re
from collections.abc import Iterable, Mapping

from starlette.requests import ClientDisconnect, Request

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.routes.error_responses import raise_unimplemented

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


def get_base_url(request: Request) -> str:
    """Return the emulator's URL as the client wrote it."""
    return str(request.base_url).rstrip("/")


async def raise_if_disconnected(request: Request) -> None:
    """Raise ClientDisconnect if the client, whose whole body has arrived, has left."""
    if await request.is_disconnected():
        raise ClientDisconnect
