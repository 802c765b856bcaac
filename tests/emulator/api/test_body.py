import json

import pytest

from emulator.api.body import MAX_DEPTH, parse
from emulator.errors import ApiError


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize("raw", [b"", b" \n", b"{}"])
def test_no_body_is_an_empty_object(raw: bytes) -> None:
    assert parse(raw) == {}


def test_an_object_is_read_as_it_is() -> None:
    sent = {"a": [1, 2.5, None, "é", "😀"], "b": {"c": True}}
    assert parse(json.dumps(sent).encode()) == sent


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
    ]
    + [nested(MAX_DEPTH + 1), nested(2000), nested(200_000)],
    ids=lambda raw: repr(raw[:12]),
)
def test_what_could_not_be_kept_and_shown_again_is_refused(raw: bytes) -> None:
    with pytest.raises(ApiError) as refusal:
        parse(raw)
    assert (refusal.value.status, refusal.value.http) == ("INVALID_ARGUMENT", 400)


def test_a_nesting_that_google_reads_is_read() -> None:
    assert parse(nested(MAX_DEPTH))
