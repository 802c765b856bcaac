"""Batches: how their bodies are read, and that the calls in one are answered as calls on their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vertex_emulator.gcs.served import ServedStorage
from vertex_emulator.errors import ApiError
from vertex_emulator.gcs import batch as batches
from vertex_emulator.gcs.batch import MAX_CALLS, Call

HEADER = 'multipart/mixed; boundary="==b=="'
DELETE = "DELETE /storage/v1/b/x/o/y%2Fz?generation=5 HTTP/1.1"


def batch(*calls: str, end: str = "\r\n") -> bytes:
    parts = [
        f"--==b=={end}Content-Type: application/http{end}Content-ID: <c+{number}>{end}{end}{call}{end}"
        for number, call in enumerate(calls, 1)
    ]
    return f"{''.join(parts)}--==b==--".encode()


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_calls_are_read_with_their_bodies(end: str) -> None:
    head = end.join(["PATCH http://localhost:1/storage/v1/b/x/o/y HTTP/1.1", "Content-Type: application/json"])
    first, second = batches.parse(
        HEADER, b"preamble" + end.encode() + batch(DELETE, f'{head}{end}{end}{{"a": 1}}', end=end)
    )
    assert first == Call("DELETE", "/storage/v1/b/x/o/y%2Fz", "generation=5", {}, b"", "<c+1>")
    assert (second.method, second.path) == ("PATCH", "/storage/v1/b/x/o/y")
    assert (second.headers, second.body) == ({"content-type": "application/json"}, b'{"a": 1}')


def test_headers_need_no_blank_line_after_them() -> None:
    (call,) = batches.parse(HEADER, batch(f"{DELETE}\naccept: application/json\ncontent-length: 0\n", end="\n"))
    assert call.headers == {"accept": "application/json", "content-length": "0"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "before its closing boundary"),
        (batch(DELETE)[:-2], "before its closing boundary"),
        (batch(), "it has 0 calls; 1 to 100"),
        (batch(*[DELETE] * (MAX_CALLS + 1)), "it has 101 calls; 1 to 100"),
        (batch("not a call"), 'part 1 begins with "not a call"'),
        (batch("CONNECT /storage/v1/b HTTP/1.1"), "not with a method and a path"),
        (batch(DELETE, "GET /v1/projects/p/locations/l/customJobs"), 'part 2 calls "/v1/projects/p/locations/l/custom'),
        (batch("POST /upload/storage/v1/b/x/o?uploadType=media&name=y"), "only /storage/v1/… is allowed"),
        (batch("POST /batch/storage/v1"), "only /storage/v1/… is allowed"),
        (batch("POST http://localhost/batch/storage/v1"), "only /storage/v1/… is allowed"),
        (batch("POST //localhost/batch/storage/v1"), "only /storage/v1/… is allowed"),
        (batch("POST %2Fstorage/v1/b"), "only /storage/v1/… is allowed"),
        (batch("GET http://[localhost/storage/v1/b"), "part 1 has no valid URL"),
        (batch("GET /storage/v1/b/x/o/y?alt=%6dedia"), "part 1 downloads content"),
        (batch("GET /storage/v1/b/x/o/y?al%74=media&alt=json"), "part 1 downloads content"),
        (b"--==b==" + b" " * (4 << 20) + b"x", "before its closing boundary"),
        (b"--==b==\n" * (1 << 18), "before its closing boundary"),
        (batch("GET /storage/v1/b/x/o/y?prettyPrint=false&alt=media"), "part 1 downloads content"),
    ],
)
def test_malformed_batches_are_refused_with_reason(body: bytes, reason: str) -> None:
    with pytest.raises(ApiError, match=reason):
        batches.parse(HEADER, body)


@pytest.mark.parametrize("header", ["", "multipart/form-data; boundary=b", "multipart/mixed", "text/plain"])
def test_another_content_type_is_no_batch(header: str) -> None:
    with pytest.raises(ApiError, match="not multipart/mixed with a boundary"):
        batches.parse(header, batch(DELETE))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ServedStorage]:
    for name in ("gcs/bucket", "uploads"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("x", "y"):
        (tmp_path / "gcs/bucket" / name).write_text(name)
    with ServedStorage(tmp_path) as client:
        yield client


def test_each_call_has_its_own_answer(client: ServedStorage, tmp_path: Path) -> None:
    json = "Content-Type: application/json\r\n\r\n"
    data = batch(
        "DELETE /storage/v1/b/bucket/o/x HTTP/1.1",
        "DELETE /storage/v1/b/bucket/o/none HTTP/1.1",
        f'PATCH /storage/v1/b/bucket/o/y?fields=contentType HTTP/1.1\r\n{json}{{"contentType": "text/x"}}',
        "PATCH /storage/v1/b/bucket/o/y HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n{}",
        "POST /storage/v1/b/bucket/o/y/restore HTTP/1.1",
        f'POST /storage/v1/b/bucket/o/y/copyTo/b/bucket/o/z HTTP/1.1\r\n{json}{{"contentType": "text/z"}}',
    )
    reply = client.ask("POST", "/batch/storage/v1", data=data, headers={"content-type": HEADER})
    assert reply.status_code == 200
    boundary = reply.headers["content-type"].removeprefix("multipart/mixed; boundary=")
    parts = reply.text.split(f"--{boundary}")[1:-1]
    assert [part.split("\r\n\r\n", 2)[1].split(" ")[1] for part in parts] == ["204", "404", "200", "415", "501", "200"]
    assert [f"Content-ID: <response-c+{number}>" in part for number, part in enumerate(parts, 1)] == [True] * 6
    assert "No such object: bucket/none" in parts[1]
    assert '"contentType":"text/x"' in parts[2] and f'"{client.url}/storage/v1/b/bucket/o/y"' in parts[2]
    assert sorted(path.name for path in (tmp_path / "gcs/bucket").iterdir()) == ["y", "z"]


@pytest.mark.parametrize(
    ("data", "status"),
    [(batch(), 400), (batch("GET /v1/x"), 400), ("x" * (5 << 20), 413)],
    ids=["empty", "path", "size"],
)
def test_malformed_batches_call_nothing(client: ServedStorage, data: str, status: int) -> None:
    assert client.ask("POST", "/batch/storage/v1", data=data, headers={"content-type": HEADER}).status_code == status
    assert client.ask("POST", "/batch/storage/v1", data=batch("GET /storage/v1/b")).status_code == 400
