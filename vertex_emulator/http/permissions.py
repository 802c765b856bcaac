"""What the calls of jobs need: each method says it, and whoever lets a call in notes it, and may refuse it."""

from collections.abc import Callable

from starlette.requests import Request

CHECK = "permissions"
"""The key of a request's state for what takes permissions and resources, and raises ApiError for a lacking one."""
Check = Callable[[str, str], None]


def check_of(request: Request) -> Check | None:
    """Return what takes the permissions of a request, None if it is no job's."""
    check: Check | None = request.scope.get("state", {}).get(CHECK)
    return check


def need(request: Request, permission: str, resource: str) -> None:
    """Say that a request needs a permission on a resource, `gs://BUCKET`, `gs://BUCKET/OBJECT` or `project`.

    Raises ApiError if it is a job's, and nothing grants it to that.
    """
    if (check := check_of(request)) is not None:
        check(permission, resource)
