import pytest

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.routes.batch_body_parser import MAX_CALLS, BatchedCall, parse_batch_request

HEADER = 'multipart/mixed; boundary="==b=="'
DELETE = "DELETE /storage/v1/b/x/o/y%2Fz?generation=5 HTTP/1.1"


def batch(*calls: str, end: str = "\r\n") -> bytes:
    parts = [f"--==b=={end}Content-Type: application/http{end}Content-ID: <c+1>{end}{end}{call}{end}" for call in calls]
    return f"{''.join(parts)}--==b==--".encode()


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_calls_are_read_with_their_bodies(end: str) -> None:
    head = end.join(["PATCH http://localhost:1/storage/v1/b/x/o/y HTTP/1.1", "Content-Type: application/json"])
    first, second = parse_batch_request(
        HEADER, b"preamble" + end.encode() + batch(DELETE, f'{head}{end}{end}{{"a": 1}}', end=end)
    )
    assert first == BatchedCall("DELETE", "/storage/v1/b/x/o/y%2Fz", "generation=5", {}, b"", "<c+1>")
    assert (second.method, second.path) == ("PATCH", "/storage/v1/b/x/o/y")
    assert (second.headers, second.body) == ({"content-type": "application/json"}, b'{"a": 1}')


def test_a_call_needs_no_blank_line_after_its_headers() -> None:
    (call,) = parse_batch_request(HEADER, batch(f"{DELETE}\naccept: application/json\ncontent-length: 0\n", end="\n"))
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
def test_a_malformed_batch_is_rejected_with_its_fault(body: bytes, reason: str) -> None:
    with pytest.raises(ApiError, match=reason):
        parse_batch_request(HEADER, body)


@pytest.mark.parametrize("header", ["", "multipart/form-data; boundary=b", "multipart/mixed", "text/plain"])
def test_another_content_type_is_no_batch(header: str) -> None:
    with pytest.raises(ApiError, match="not multipart/mixed with a boundary"):
        parse_batch_request(header, batch(DELETE))
