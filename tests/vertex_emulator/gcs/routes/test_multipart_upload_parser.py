import time

import pytest

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.routes.multipart_upload_parser import MultipartParser

HEADER = 'multipart/related; boundary="==b=="'
META = b'--==b==\r\ncontent-type: application/json\r\n\r\n{"name": "n"}\r\n'
MEDIA = b"--==b==\r\ncontent-type: text/plain\r\n\r\n"


def body(content: bytes) -> bytes:
    return META + MEDIA + content + b"\r\n--==b==--"


def received(data: bytes, size: int, header: str = HEADER) -> bytes:
    related = MultipartParser(header)
    media = b"".join(related.feed_and_take_media(data[at : at + size]) for at in range(0, len(data), size))
    media += related.take_last_media()
    assert related.metadata == {"name": "n"}
    return media


@pytest.mark.parametrize("content", [b"", b"\r\n", b"x", b"--==b=", b"\r\n--==b\r\n\r\n", bytes(range(256)) * 3])
@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
def test_content_does_not_depend_on_chunk_boundaries(content: bytes, size: int) -> None:
    assert received(body(content), size) == content


@pytest.mark.parametrize("content", [b"", b"\n", b"x\n\ny"])
def test_parser_accepts_gcloud_line_feeds_and_single_quotes(content: bytes) -> None:
    head = b'--==b==\nContent-Type: application/json\nMIME-Version: 1.0\n\n{"name": "n"}\n--==b==\n'
    data = head + b"Content-Type: text/plain\nContent-Transfer-Encoding: binary\n\n" + content + b"\n--==b==--\n"
    for size in (1, 5, 1000):
        assert received(data, size, "multipart/related; boundary='==b=='") == content


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "before its closing boundary"),
        (META, "before its closing boundary"),
        (META + MEDIA + b"cut off", "before its closing boundary"),
        (body(b"x").replace(b'{"name"', b"{name"), "Invalid JSON"),
        (body(b"x").replace(b'{"name": "n"}', b"[]"), "must be an object"),
        (body(b"x").replace(b"text/plain", b"text/plain\r\ncontent-transfer-encoding: base64"), "base64"),
        (b"x" * (2 << 20), "first MiB"),
    ],
)
def test_a_malformed_body_is_refused_with_its_fault(data: bytes, reason: str) -> None:
    with pytest.raises(ApiError, match=reason):
        received(data, 1 << 16)


@pytest.mark.parametrize("header", ["", "application/json", "multipart/related", "multipart/mixed; boundary=b"])
def test_a_type_without_a_boundary_is_refused(header: str) -> None:
    with pytest.raises(ApiError, match="Content-Type"):
        MultipartParser(header)


@pytest.mark.parametrize(
    "lines",
    [b"--b\n" * (1 << 18), b"--b\nx: y" * (1 << 17), b"\n--b " * (1 << 17), b"--b" + b" " * (1 << 20)],
    ids=["boundaries", "headers", "marks", "spaces"],
)
@pytest.mark.parametrize("size", [1, 1 << 16])
def test_a_head_without_end_takes_linear_time(lines: bytes, size: int) -> None:
    """Each byte is looked at once, in pieces of a byte too: a quadratic search would take an hour."""
    data = (b"--b\n\n{}\n" + lines)[: 1 << 17 if size == 1 else None]
    before = time.process_time()
    with pytest.raises(ApiError, match="Malformed multipart body"):
        received(data, size, "multipart/related; boundary=b")
    assert time.process_time() - before < 10
