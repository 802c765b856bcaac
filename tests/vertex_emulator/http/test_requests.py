import asyncio
import gzip
import json

import pytest
from starlette.requests import Request
from starlette.types import Message

from vertex_emulator.errors import ApiError
from vertex_emulator.http import requests
from vertex_emulator.http.requests import MAX_DEPTH, parse_json


def request(*parts: bytes, stalls: bool = False, encoding: bytes = b"identity") -> Request:
    """A request whose body comes in these parts, and then ends or stays away."""
    left = list(parts)

    async def receive() -> Message:
        if not left and stalls:
            await asyncio.sleep(3600)
        part = left.pop(0) if left else b""
        return {"type": "http.request", "body": part, "more_body": bool(left) or stalls}

    headers = [(b"content-type", b"application/json"), (b"content-encoding", encoding)]
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


def test_bodies_are_read_in_parts() -> None:
    assert asyncio.run(requests.read_json(request(b'{"a"', b": ", b"1}"))) == {"a": 1}
    assert asyncio.run(requests.read_json(request())) == {}


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_compressed_bodies_are_unpacked(size: int) -> None:
    """In whatever pieces they come, as Google's client for Java sends them."""
    value = {"a": "x" * 3_000_000}
    packed = gzip.compress(json.dumps(value).encode())
    parts = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert asyncio.run(requests.read_json(request(*parts, encoding=b"GZip"))) == value


def test_what_a_body_unpacks_to_has_the_limit() -> None:
    with pytest.raises(ApiError) as refused:
        asyncio.run(requests.read_json(request(gzip.compress(b" " * (16 << 20)), encoding=b"gzip")))
    assert refused.value.http == 413


PACKED = gzip.compress(b"{}")


@pytest.mark.parametrize(
    ("encoding", "body", "status", "message"),
    [
        (b"br", b"{}", 415, 'Content-Encoding is "br"; it must be gzip, or missing.'),
        (b"gzip, gzip", PACKED, 415, "it must be gzip, or missing"),
        (b"gzip", b"{}", 400, "The body is no gzip: Error -3"),
        (b"gzip", b"", 400, "The body ends before its gzip does."),
        (b"gzip", PACKED[:-1], 400, "The body ends before its gzip does."),
        (b"gzip", PACKED + PACKED, 400, "The body goes on after the end of its gzip."),
    ],
    ids=["another", "twice", "none", "empty", "cut", "longer"],
)
def test_other_encodings_are_refused(encoding: bytes, body: bytes, status: int, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        asyncio.run(requests.read_json(request(body, encoding=encoding)))
    assert refused.value.http == status and message in refused.value.message


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
