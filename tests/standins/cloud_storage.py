"""A stand-in for Cloud Storage: the calls of its JSON API that an upload and a read take, and nothing else of it."""

import base64
import hashlib
import json
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.standins.json_answers import send_json


class Objects(dict[tuple[str, str], bytes]):
    """The content of objects by bucket and name. Whoever sets one makes a generation, which `read` has for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._written: list[tuple[tuple[str, str], bytes]] = []

    def __setitem__(self, key: tuple[str, str], content: bytes) -> None:
        self._written.append((key, content))
        super().__setitem__(key, content)

    def generation(self, key: tuple[str, str]) -> int:
        """The generation that an object has now; 0 of one that there is not."""
        return max(
            (number for number, (each, _) in enumerate(self._written, 1) if each == key and key in self), default=0
        )

    def read(self, key: tuple[str, str], generation: str) -> bytes:
        """Return what a generation of an object has."""
        written, content = self._written[int(generation) - 1]
        assert written == key
        return content


class CloudStorageStandIn:
    """What it holds by bucket and name, and the `refusal` that it answers with, if any; or those of methods, `refused`.

    Of the uploads that were `sent`, it took `uploads`. `before_upload` is called before it looks at one, and `has_md5`
    is false for what was composed. Everything was `updated` at that time, and `downloaded` bytes were read.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.objects = Objects()
        self.uploads = self.sent = 0
        self.refusal: str | None = None
        self.refused: dict[str, str] = {}
        self.before_upload: Callable[[], object] = lambda: None
        self.has_md5 = True
        self.updated = 0.0
        self.downloaded = 0

    def get(self, path: str, query: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """`GET /storage/v1/b/BUCKET/o/NAME`, and without a name a list in pages of two objects, or of `maxResults`."""
        _, _, bucket, *rest = path.removeprefix("/storage/").split("/")
        if rest == ["o"]:
            prefix, after = (query.get(key, [""])[0] for key in ("prefix", "pageToken"))
            found = [key for key in sorted(self.objects) if key[0] == bucket and key[1].startswith(prefix)]
            page = [key for key in found if key[1] > after][: int(query.get("maxResults", ["2"])[0])]
            more = {"nextPageToken": page[-1][1]} if page and page[-1] != found[-1] else {}
            return 200, {"items": [self._describe(key) for key in page], **more}
        key = (bucket, unquote(rest[1])) if rest else ("", "")
        return (200, self._describe(key)) if key in self.objects else _error(404, "No such object")

    def download(self, path: str, byte_range: str) -> bytes:
        """`GET /download/storage/v1/b/BUCKET/o/NAME?alt=media` with a `Range` of `bytes=FIRST-LAST`."""
        bucket, _, name = path.removeprefix("/download/storage/v1/b/").split("/")
        first, last = map(int, byte_range.removeprefix("bytes=").split("-"))
        content = self.objects[bucket, unquote(name)][first : last + 1]
        self.downloaded += len(content)
        return content

    def post(
        self, path: str, query: dict[str, list[str]], content_type: str, body: bytes
    ) -> tuple[int, dict[str, Any]]:
        """`POST /upload/storage/v1/b/BUCKET/o?uploadType=multipart`: a JSON part with the name, then the bytes."""
        assert query["uploadType"] == ["multipart"]
        self.sent += 1
        message = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
        named, content = (part.get_payload(decode=True) for part in message.walk() if not part.is_multipart())
        assert isinstance(named, bytes) and isinstance(content, bytes)
        key = (path.split("/")[5], json.loads(named)["name"])
        self.before_upload()
        if query.get("ifGenerationMatch", [""])[0] not in ("", str(self.objects.generation(key))):
            return _error(412, "conditionNotMet")
        self.uploads += 1
        self.objects[key] = content
        return 200, self._describe(key)

    def _describe(self, key: tuple[str, str]) -> dict[str, Any]:
        md5 = base64.b64encode(hashlib.md5(self.objects[key], usedforsecurity=False).digest()).decode()
        described = {
            "name": key[1],
            "bucket": key[0],
            "generation": str(self.objects.generation(key)),
            "crc32c": base64.b64encode(zlib.crc32(self.objects[key]).to_bytes(4)).decode(),  # of another polynomial
            "size": str(len(self.objects[key])),
            "updated": f"{datetime.fromtimestamp(self.updated, UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        return described | ({"md5Hash": md5} if self.has_md5 else {})


@contextmanager
def cloud_storage() -> Iterator[CloudStorageStandIn]:
    """The stand-in, on a port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    standin = _Handler.standin = CloudStorageStandIn(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    try:
        yield standin
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    standin: CloudStorageStandIn

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if path.startswith("/download/"):
            content = self.standin.download(path, self.headers["Range"])
            self.send_response(206)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        self._answer(self.standin.get(path, query))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        parts = urlsplit(self.path)
        self._answer(self.standin.post(parts.path, parse_qs(parts.query), self.headers["Content-Type"], body))

    def _answer(self, answer: tuple[int, dict[str, Any]]) -> None:
        refusal = self.standin.refusal or self.standin.refused.get(self.command)
        status, reply = _error(403, refusal) if refusal else answer
        send_json(self, status, reply)

    def log_message(self, *arguments: object) -> None:
        """Nothing: a test's output is its own."""


def _error(code: int, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"error": {"code": code, "message": message}}
