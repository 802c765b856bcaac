import asyncio
import json

import pytest
from starlette.requests import Request
from starlette.types import Message

from vertex_emulator.errors import ApiError
from vertex_emulator.http import requests
from vertex_emulator.http.requests import MAX_DEPTH, parse_json


def request(*parts: bytes, stalls: bool = False) -> Request:
    """A request whose body comes in these parts, and then ends or stays away."""
    left = list(parts)

    async def receive() -> Message:
        if not left and stalls:
            await asyncio.sleep(3600)
        part = left.pop(0) if left else b""
        return {"type": "http.request", "body": part, "more_body": bool(left) or stalls}

    return Request({"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}, receive)


def test_bodies_are_read_in_parts() -> None:
    assert asyncio.run(requests.read_json(request(b'{"a"', b": ", b"1}"))) == {"a": 1}
    assert asyncio.run(requests.read_json(request())) == {}


def test_an_endless_body_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_SECONDS", 0.05)
    with pytest.raises(ApiError) as refused:
        asyncio.run(requests.read_json(request(b"{", stalls=True)))
    assert refused.value.http == 408


def test_no_more_is_read_than_may_be() -> None:
    whole = requests.MAX_BYTES // 4
    assert asyncio.run(requests.read_json(request(b'{"a": "', *[b"x" * (whole - 10)] * 4, b'"}')))["a"]
    with pytest.raises(ApiError) as refused:
        asyncio.run(requests.read_json(request(b'{"a": "', *[b"x" * whole] * 4, stalls=True)))
    assert refused.value.http == 413


def test_all_bodies_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have been read, or given up, count no longer."""
    monkeypatch.setattr(requests, "MAX_HELD_BYTES", 1000)
    monkeypatch.setattr(requests, "MAX_SECONDS", 0.2)

    async def send() -> None:
        slow = [asyncio.create_task(requests.read_json(request(b"x" * 300, stalls=True))) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(ApiError) as refused:
            await requests.read_json(request(b" " * 300))
        assert (refused.value.status, refused.value.http) == ("RESOURCE_EXHAUSTED", 429)
        ended = await asyncio.gather(*slow, return_exceptions=True)
        assert [each.http for each in ended if isinstance(each, ApiError)] == [408] * 3
        for _ in range(10):
            assert await requests.read_json(request(b"{}" + b" " * 300)) == {}

    asyncio.run(send())


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize("raw", [b"", b" \n", b"{}"])
def test_no_body_is_an_empty_object(raw: bytes) -> None:
    assert parse_json(raw) == {}


def test_an_object_is_read_as_it_is() -> None:
    sent = {"a": [1, 2.5, None, "é", "😀"], "b": {"c": True}}
    assert parse_json(json.dumps(sent).encode()) == sent


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[]",
        b'"x"',
        b"\xff",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'{"a":"\\ud800"}',
        b'{"\\uDFFF":1}',
        nested(MAX_DEPTH + 1),
        nested(2000),
        nested(200_000),
    ],
    ids=lambda raw: repr(raw[:12]),
)
def test_json_that_cannot_be_returned_is_rejected(raw: bytes) -> None:
    with pytest.raises(ApiError) as refusal:
        parse_json(raw)
    assert (refusal.value.status, refusal.value.http) == ("INVALID_ARGUMENT", 400)


def test_a_nesting_that_google_reads_is_read() -> None:
    assert parse_json(nested(MAX_DEPTH))
