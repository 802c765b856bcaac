"""The page's own files: HTML, scripts and styles, in the folder `assets`."""

from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).parent / "assets"
# Only scripts in the folder run; nothing is loaded from elsewhere, and no other page may embed this one.
FRAME_HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}


class Assets(StaticFiles):
    """The folder over HTTP: a browser asks each time whether its copy is current (ETag)."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        """Return a file with `Cache-Control`: without it, browsers guess for how long their copy is current."""
        response = super().file_response(*arguments, **options)
        response.headers["cache-control"] = "no-cache"
        return response
