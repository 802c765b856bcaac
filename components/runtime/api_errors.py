"""Errors of the training API, as this module reports them."""

import contextlib
from collections.abc import Iterator

from vertex_api.errors import VertexError

from ..errors import SubmitFailed


@contextlib.contextmanager
def api_errors_as(failed_action: str) -> Iterator[None]:
    """Raise SubmitFailed in place of a VertexError, as one line: `<failed_action>: <what the API answered>`."""
    try:
        yield
    except VertexError as error:
        raise SubmitFailed(f"{failed_action}: {error}") from error
