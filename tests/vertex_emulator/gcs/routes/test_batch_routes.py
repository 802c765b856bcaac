"""Batches over HTTP: the calls in one are answered as calls on their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vertex_emulator.gcs.served import ServedStorage

HEADERS = {"content-type": "multipart/mixed; boundary=b"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ServedStorage]:
    for name in ("gcs/bucket", "uploads"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("x", "y"):
        (tmp_path / "gcs/bucket" / name).write_text(name)
    with ServedStorage(tmp_path) as client:
        yield client


def batch(*calls: str) -> str:
    parts = [f"--b\r\nContent-Type: application/http\r\nContent-ID: <{i}>\r\n\r\n{c}" for i, c in enumerate(calls, 1)]
    return "\r\n".join([*parts, "--b--"])


def test_each_call_has_the_answer_of_its_own(client: ServedStorage, tmp_path: Path) -> None:
    json = "Content-Type: application/json\r\n\r\n"
    data = batch(
        "DELETE /storage/v1/b/bucket/o/x HTTP/1.1",
        "DELETE /storage/v1/b/bucket/o/none HTTP/1.1",
        f'PATCH /storage/v1/b/bucket/o/y?fields=contentType HTTP/1.1\r\n{json}{{"contentType": "text/x"}}',
        "PATCH /storage/v1/b/bucket/o/y HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n{}",
        "POST /storage/v1/b/bucket/o/y/restore HTTP/1.1",
        f'POST /storage/v1/b/bucket/o/y/copyTo/b/bucket/o/z HTTP/1.1\r\n{json}{{"contentType": "text/z"}}',
    )
    reply = client.ask("POST", "/batch/storage/v1", data=data, headers=HEADERS)
    assert reply.status_code == 200
    boundary = reply.headers["content-type"].removeprefix("multipart/mixed; boundary=")
    parts = reply.text.split(f"--{boundary}")[1:-1]
    assert [part.split("\r\n\r\n", 2)[1].split(" ")[1] for part in parts] == ["204", "404", "200", "415", "501", "200"]
    assert [f"Content-ID: <response-{number}>" in part for number, part in enumerate(parts, 1)] == [True] * 6
    assert "No such object: bucket/none" in parts[1]
    assert '"contentType":"text/x"' in parts[2] and f'"{client.url}/storage/v1/b/bucket/o/y"' in parts[2]
    assert sorted(path.name for path in (tmp_path / "gcs/bucket").iterdir()) == ["y", "z"]


@pytest.mark.parametrize(
    ("data", "status"),
    [(batch(), 400), (batch("GET /v1/x"), 400), ("x" * (5 << 20), 413)],
    ids=["empty", "path", "size"],
)
def test_a_batch_that_is_none_calls_nothing(client: ServedStorage, data: str, status: int) -> None:
    assert client.ask("POST", "/batch/storage/v1", data=data, headers=HEADERS).status_code == status
    assert client.ask("POST", "/batch/storage/v1", data=batch("GET /storage/v1/b")).status_code == 400
