"""Requests that two readers could understand differently: smuggled, doubled, folded, endless, of other protocols."""

import json
import re
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tests.vertex_emulator.gcs.test_batch import HEADER as BATCH_HEADER
from tests.vertex_emulator.gcs.test_batch import batch
from tests.vertex_emulator.running import (
    PARENT,
    PATIENCE_SECONDS,
    RunningEmulator,
    absent,
    peak_bytes,
    processor_seconds,
    resident_bytes,
)

SMUGGLED = "projects/smuggled/locations/us-central1"
JOBS = f"/v1/{SMUGGLED}/customJobs".encode()
JSON = b"Content-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
EVIL_HOST = b"Host: evil.example\r\n"
MIB = 1 << 20


def request(
    method: bytes = b"GET",
    target: bytes = b"/healthz",
    headers: bytes = b"",
    body: bytes = b"",
    version: bytes = b"HTTP/1.1",
    host: bytes = b"Host: localhost\r\n",
) -> bytes:
    return method + b" " + target + b" " + version + b"\r\n" + host + headers + b"\r\n" + body


def length(size: int) -> bytes:
    return b"Content-Length: %d\r\n" % size


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)


def post(headers: bytes, body: bytes, target: bytes = JOBS, host: bytes = b"Host: localhost\r\n") -> bytes:
    return request(b"POST", target, JSON + headers, body, host=host)


JOB = json.dumps(absent("smuggled")).encode()
HIDDEN = post(length(len(JOB)), JOB)  # a request that must never be one
LAST = request(headers=b"Connection: close\r\n")  # the answer to it shows where the emulator reads a request again
OK, BAD, ANSWERS = [200], [400], re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")


def answers(emulator: RunningEmulator, data: bytes) -> list[int]:
    """The status of each answer on one connection, until the emulator closes it."""
    received = b""
    with closing(socket.create_connection(("127.0.0.1", urlsplit(emulator.url).port or 0), PATIENCE_SECONDS)) as sent:
        try:
            sent.sendall(data)
            while part := sent.recv(1 << 16):
                received += part
        except (ConnectionResetError, BrokenPipeError):
            pass  # closed while bytes are on their way
    return [int(status) for status in ANSWERS.findall(received)]


ATTACKS: dict[str, tuple[bytes, list[int]]] = {
    # Two lengths of a body. What comes behind the first of them must not run as a request.
    "CL.TE": (post(length(5) + CHUNKED, b"0\r\n\r\n" + HIDDEN), BAD),
    "TE.CL": (post(CHUNKED + length(4), chunk(HIDDEN)), BAD),
    "CL.TE with equal ends": (post(length(len(chunk(b"{}"))) + CHUNKED, chunk(b"{}")), BAD),
    "lengths that differ": (post(length(2) + length(2 + len(HIDDEN)), b"{}" + HIDDEN), BAD),
    "a list of lengths that differ": (post(b"Content-Length: 2, 40\r\n", b"{}" + HIDDEN), BAD),
    "equal lengths": (post(length(2) + length(2), b"{}"), BAD + OK),
    "a length with a sign": (post(b"Content-Length: +2\r\n", b"{}" + HIDDEN), BAD),
    "a length in hexadecimal": (post(b"Content-Length: 0x2\r\n", b"{}" + HIDDEN), BAD),
    "a negative length": (post(b"Content-Length: -1\r\n", HIDDEN), BAD),
    "a length of 5,000 digits": (post(b"Content-Length: " + b"9" * 5000 + b"\r\n", HIDDEN), BAD),
    "an empty length": (post(b"Content-Length: \r\n", HIDDEN), BAD),
    "a space before the colon of a length": (post(b"Content-Length : 2\r\n", b"{}" + HIDDEN), BAD),
    "a length in two parts": (post(b"Content-Length: 2 2\r\n", b"{}" + HIDDEN), BAD),
    "chunked twice": (post(CHUNKED * 2, chunk(b"{}") + HIDDEN), BAD),
    "chunked, chunked": (post(b"Transfer-Encoding: chunked, chunked\r\n", chunk(b"{}") + HIDDEN), BAD),
    "identity": (post(b"Transfer-Encoding: identity\r\n" + length(2), b"{}" + HIDDEN), BAD),
    "gzip, chunked": (post(b"Transfer-Encoding: gzip, chunked\r\n", chunk(b"{}") + HIDDEN), BAD),
    "xchunked": (post(b"Transfer-Encoding: xchunked\r\n", chunk(b"{}") + HIDDEN), BAD),
    "chunked behind a control character": (post(b"Transfer-Encoding: \x0bchunked\r\n", chunk(b"{}") + HIDDEN), BAD),
    "a space before the colon of chunked": (post(b"Transfer-Encoding : chunked\r\n", chunk(b"{}") + HIDDEN), BAD),
    "chunked in HTTP/1.0": (request(b"POST", JOBS, JSON + CHUNKED, chunk(HIDDEN), b"HTTP/1.0"), BAD),
    # Chunks.
    "a chunk in 0x": (post(CHUNKED, b"0x2\r\n{}\r\n0\r\n\r\n" + HIDDEN), BAD),
    "a negative chunk": (post(CHUNKED, b"-2\r\n{}\r\n0\r\n\r\n" + HIDDEN), BAD),
    "a chunk of 2^120 bytes": (post(CHUNKED, b"f" * 30 + b"\r\n{}"), BAD),
    "a chunk without its end": (post(CHUNKED, b"2\r\n{}XX0\r\n\r\n" + HIDDEN), BAD),
    "chunks between line feeds": (post(CHUNKED, b"2\n{}\n0\n\n" + HIDDEN), BAD),
    "a chunk's extension": (post(CHUNKED, b"2;a=b\r\n{}\r\n0\r\n\r\n"), BAD + OK),
    "a chunk's extension without end": (post(CHUNKED, b"2;" + b"a" * MIB), BAD),
    "a trailer that is a header": (post(CHUNKED, b"2\r\n{}\r\n0\r\n" + EVIL_HOST + length(5) + b"\r\n"), BAD + OK),
    "trailers without end": (post(CHUNKED, b"2\r\n{}\r\n0\r\n" + b"a: b\r\n" * (MIB // 6)), BAD),
    # Headers.
    "a second host": (request(headers=EVIL_HOST), BAD),
    "the same host again": (request(headers=b"Host: localhost\r\n"), BAD),
    "a second type": (post(b"Content-Type: text/plain\r\n" + length(len(JOB)), JOB), BAD),
    "a second type, JSON": (
        request(b"POST", JOBS, b"Content-Type: text/plain\r\n" + JSON + length(len(JOB)), JOB),
        BAD,
    ),
    "a second credential": (request(headers=b"Authorization: Bearer x\r\nAuthorization: Bearer y\r\n"), BAD),
    "a second origin": (request(headers=b"Origin: http://localhost\r\nOrigin: http://evil.example\r\n"), [403, *OK]),
    "a folded host": (request(host=b"Host: localhost\r\n evil.example\r\n"), [403, *OK]),
    "a folded encoding": (post(b"Transfer-Encoding:\r\n chunked\r\n", chunk(b"{}")), BAD + OK),
    "a space before a header": (request(host=b" Host: localhost\r\n"), BAD),
    "a carriage return in a header": (request(headers=b"X: a\r" + EVIL_HOST), BAD),
    "NUL in a header": (request(headers=b"X: a\0b\r\n"), BAD),
    "a header without a colon": (request(headers=b"nothing\r\n"), BAD),
    "a header without a name": (request(headers=b": x\r\n"), BAD),
    "a header's name beyond ASCII": (request(headers="é: x\r\n".encode()), BAD),
    "a header of 1 MiB": (request(headers=b"x: " + b"y" * MIB + b"\r\n"), BAD),
    "200,000 headers": (request(headers=b"".join(b"x-%d: y\r\n" % number for number in range(200_000))), BAD),
    "lines that end with LF": (request().replace(b"\r\n", b"\n"), OK + OK),
    # Request lines.
    "an absolute target": (request(target=b"http://localhost/healthz"), [404, *OK]),
    "an absolute target elsewhere": (request(target=b"http://evil.example/healthz"), [404, *OK]),
    "a target with another host": (request(target=b"//evil.example/healthz"), [404, *OK]),
    "a target with a space": (request(target=b"/healthz /x"), BAD),
    "a target with NUL": (request(target=b"/healthz\0"), BAD),
    "a target of 1 MiB": (request(target=b"/" + b"x" * MIB), BAD),
    "a method of 1 MiB": (request(b"X" * MIB), BAD),
    "a tunnel": (request(b"CONNECT", b"evil.example:443"), [404, *OK]),
    "TRACE": (request(b"TRACE", headers=b"Cookie: x\r\n"), [501, *OK]),
    "HTTP/0.9": (b"GET /healthz\r\n", BAD),
    "HTTP/1.0": (request(version=b"HTTP/1.0"), OK),
    "HTTP/1.0 without a host": (request(version=b"HTTP/1.0", host=b""), [403]),
    # All of it goes to the process of gRPC, which has no answer of HTTP/1.
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []),
    "an upgrade to HTTP/2": (request(headers=b"Connection: Upgrade\r\nUpgrade: h2c\r\n"), OK + OK),
    "an upgrade to a web socket": (request(headers=b"Connection: Upgrade\r\nUpgrade: websocket\r\n"), OK + OK),
    # Behind a refused request: its body is none, and the next one is judged by itself.
    "behind another host": (post(length(len(HIDDEN)), HIDDEN, host=EVIL_HOST), [403, *OK]),
    "behind another origin": (
        post(b"Origin: http://evil.example\r\n" + length(len(HIDDEN)), HIDDEN),
        [403, *OK],
    ),
    "behind another type": (
        request(b"POST", JOBS, b"Content-Type: text/plain\r\n" + length(len(HIDDEN)), HIDDEN),
        [415, *OK],
    ),
    "behind no route": (post(length(len(HIDDEN)), HIDDEN, b"/nowhere"), [404, *OK]),
    "behind GET": (request(headers=length(len(HIDDEN)), body=HIDDEN), OK + OK),
    "behind a body that is too large": (post(length(5 * MIB), b" " * (5 * MIB)), [413, *OK]),
    "a refused request in a row": (request() + request(host=EVIL_HOST) + request(), [200, 403, 200, *OK]),
    "500 in a row": (request() * 500, OK * 501),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_request_hides_in_another(shared: RunningEmulator, attack: str) -> None:
    data, expected = ATTACKS[attack]
    used, held = processor_seconds(shared.process.pid), resident_bytes(shared.process.pid)
    assert answers(shared, data + LAST) == expected
    assert shared.call("GET", JOBS.decode()[1:]) == {}
    assert processor_seconds(shared.process.pid) - used < 3
    assert resident_bytes(shared.process.pid) - held < 64 * MIB


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_spec_of_200_mb_is_refused_and_not_held(shared: RunningEmulator, is_chunked: bool) -> None:
    part, count = b'{"displayName": "'.ljust(MIB, b"x"), 200
    framed, last = (b"%x\r\n%s\r\n" % (MIB, part), b"0\r\n\r\n") if is_chunked else (part, b"")
    pid, log = shared.process.pid, shared.data.with_suffix(".log")
    used, peak, written = processor_seconds(pid), peak_bytes(pid), log.stat().st_size
    with closing(socket.create_connection(("127.0.0.1", urlsplit(shared.url).port or 0), PATIENCE_SECONDS)) as sent:
        sent.sendall(post(CHUNKED if is_chunked else length(count * MIB), b""))
        for _ in range(count):
            sent.sendall(framed)
        sent.sendall(last + LAST)
        received = b"".join(iter(lambda: sent.recv(1 << 16), b""))
    assert ANSWERS.findall(received) == [b"413", b"200"]
    assert b"Request payload size exceeds the limit: 4194304 bytes." in received
    assert processor_seconds(pid) - used < 3
    assert peak_bytes(pid) - peak < 32 * MIB
    assert log.stat().st_size - written < 1000


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("", {"X-HTTP-Method-Override": "DELETE"}, 200),
        ("", {"X-HTTP-Method": "DELETE", "X-Method-Override": "DELETE"}, 200),
        ("?$httpMethod=DELETE", {}, 400),
        ("?%24httpMethod=DELETE", {}, 400),
        ("?_method=DELETE", {}, 400),
        ("?upload_protocol=resumable", {}, 200),
        ("?uploadType=media", {}, 200),
        ("?$.xgafv=1&alt=json", {"X-Goog-Upload-Protocol": "resumable", "X-Goog-Upload-Command": "start"}, 200),
    ],
)
def test_no_request_has_another_method(
    shared: RunningEmulator, query: str, headers: dict[str, str], status: int
) -> None:
    name = shared.create(absent("kept"))
    shared.ended(name)
    for path, body in ((f"v1/{name}", None), (f"v1/{PARENT}/customJobs", absent("kept"))):
        reply = shared.http.request(
            "POST" if body else "GET", f"{shared.url}/{path}{query}", json=body, headers=headers
        )
        assert reply.status_code == status, reply.text
        assert "location" not in reply.headers and "x-goog-upload-url" not in reply.headers
    assert shared.get(name)["displayName"] == "kept"


def test_parts_have_their_batchs_rights_only(shared: RunningEmulator) -> None:
    """Its Host, lengths and line ends are text; what they would say elsewhere, nobody reads."""
    headers = (
        "Host: evil.example\r\nHost: localhost\r\nContent-Length: 999999\r\nTransfer-Encoding: chunked\r\n"
        "Origin: http://evil.example\r\nX-HTTP-Method-Override: DELETE\r\nContent-Type: application/json"
    )
    name = f"POST /storage/v1/b?project=p HTTP/1.1\r\n{headers}\r\n\r\n" + json.dumps({"name": "in-a-batch"})
    escapes = [f"GET /storage/v1/{path}" for path in ("../../v1/x", "%2e%2e/%2e%2e/v1/x", "b/../../../healthz")]
    data = batch(name, *escapes, "GET /storage/v1/b?alt=json HTTP/1.1\r\nContent-ID: <x\x0bSet-Cookie: a>")
    reply = shared.http.post(f"{shared.url}/batch/storage/v1", data=data, headers={"Content-Type": BATCH_HEADER})
    assert reply.status_code == 200
    assert re.findall(r"HTTP/1\.1 ([0-9]{3})", reply.text) == ["200", "501", "501", "400", "200"]
    assert "evil.example" not in reply.text and "set-cookie" not in reply.headers
    shared.http.delete(f"{shared.url}/storage/v1/b/in-a-batch")


@pytest.mark.parametrize(
    ("path", "content_type", "body"),
    [
        ("batch/storage/v1", "multipart/mixed; boundary=b", b"--b" + b" " * (4 * MIB - 9) + b"x"),
        (
            "upload/storage/v1/b/x/o?uploadType=multipart",
            "multipart/related; boundary=b",
            b"--b\n\n{}\n" + b"--b\n" * (MIB // 3),
        ),
        ("upload/storage/v1/b/x/o?uploadType=multipart", "multipart/related" + ";" * 60_000, b""),
    ],
)
def test_a_body_of_boundaries_hangs_nothing(shared: RunningEmulator, path: str, content_type: str, body: bytes) -> None:
    used = processor_seconds(shared.process.pid)
    headers = {"Content-Type": content_type}
    reply = shared.http.post(f"{shared.url}/{path}", data=body, headers=headers, timeout=PATIENCE_SECONDS)
    assert reply.status_code == 400
    assert processor_seconds(shared.process.pid) - used < 3
