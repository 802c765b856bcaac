"""Files that change while they are sent."""

import asyncio
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from vertex_emulator.http.responses import OpenFileResponse

_CONTENT = b"0123456789" * 20_000  # several chunks


def _send_file(
    path: Path, change: Callable[[], object], header: tuple[bytes, bytes] | None = None, method: str = "GET"
) -> tuple[dict[str, str], bytes, bool]:
    """Send a file that is changed after its headers have left; return headers, body, and whether it is complete."""
    path.write_bytes(_CONTENT)
    messages: list[Message] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            change()
        messages.append(message)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("the client stays")

    scope: dict[str, Any] = {"type": "http", "method": method, "path": "/file", "headers": [header] if header else []}
    file = FileIO(path)
    asyncio.run(OpenFileResponse(file, "text/plain", {})(scope, receive, send))
    assert file.closed
    headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    bodies = messages[1:]
    assert all(each["more_body"] for each in bodies[:-1])
    return headers, b"".join(each["body"] for each in bodies), not bodies[-1]["more_body"]


def _append(path: Path) -> Callable[[], object]:
    return lambda: path.write_bytes(_CONTENT + b"more" * 100_000)


def test_later_additions_are_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "file"
    headers, body, is_complete = _send_file(path, _append(path))
    assert (headers["content-length"], body, is_complete) == (str(len(_CONTENT)), _CONTENT, True)


@pytest.mark.parametrize("byte_range", ["bytes=5-150000", "bytes=5-", "bytes=-150000"])
def test_ranges_keep_their_length(tmp_path: Path, byte_range: str) -> None:
    path = tmp_path / "file"
    headers, body, is_complete = _send_file(path, _append(path), (b"range", byte_range.encode()))
    assert len(body) == int(headers["content-length"])
    assert body in _CONTENT
    assert is_complete


@pytest.mark.parametrize("header", [None, (b"range", b"bytes=5-150000")])
def test_a_file_cut_meanwhile_is_seen_incomplete(
    tmp_path: Path, header: tuple[bytes, bytes] | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    headers, body, is_complete = _send_file(path, lambda: path.write_bytes(_CONTENT[:100_000]), header)
    assert len(body) < int(headers["content-length"])
    assert not is_complete
    assert "/file: a file became shorter while it was sent" in caplog.text


def test_several_ranges_get_the_whole_file(tmp_path: Path) -> None:
    headers, body, _ = _send_file(tmp_path / "file", lambda: None, (b"range", b"bytes=0-1,5-6"))
    assert (body, "content-range" in headers) == (_CONTENT, False)


def test_a_head_request_gets_the_length_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    headers, body, is_complete = _send_file(path, _append(path), method="HEAD")
    assert (headers["content-length"], body, is_complete) == (str(len(_CONTENT)), b"", True)
