"""The files of the page itself, in the folder of that name."""

from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).parent / "assets"
# Only what lies in the folder runs; nothing is fetched from elsewhere, and no other page may hold this one.
FRAME_HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}


class Assets(StaticFiles):
    """The folder over HTTP: a browser asks each time whether what it holds is current (ETag)."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        """As StaticFiles, with `Cache-Control`: without one, browsers guess for how long a file stays as it is."""
        response = super().file_response(*arguments, **options)
        response.headers["cache-control"] = "no-cache"
        return response
