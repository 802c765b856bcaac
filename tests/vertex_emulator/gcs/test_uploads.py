"""Uploads over HTTP, as clients send them when something goes wrong, and the parser of multipart bodies."""

import gzip
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.vertex_emulator.gcs.served import ServedStorage
from vertex_emulator.errors import ApiError
from vertex_emulator.gcs import uploads

URL = "/upload/storage/v1/b/bucket/o"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("gcs", "uploads"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def client(root: Path) -> Iterator[ServedStorage]:
    with ServedStorage(root) as client:
        yield client


def begun(client: ServedStorage, **metadata: Any) -> str:
    """The path of a new resumable upload."""
    reply = client.ask("POST", f"{URL}?uploadType=resumable&name=x", json=metadata)
    assert reply.status_code == 200, reply.text
    address = urlsplit(reply.headers["location"])
    return f"{address.path}?{address.query}"


def sent(client: ServedStorage, address: str, data: bytes, range_: str, **headers: str) -> Any:
    return client.ask("PUT", address, data=data, headers={"content-range": f"bytes {range_}", **headers})


def test_upload_resumes_after_restart(client: ServedStorage, root: Path) -> None:
    address = begun(client)
    reply = sent(client, address, b"01234", "0-4/10")
    assert (reply.status_code, reply.headers["range"]) == (308, "bytes=0-4")
    with ServedStorage(root) as again:
        state = sent(again, address, b"", "*/10")
        assert (state.status_code, state.headers["range"]) == (308, "bytes=0-4")
        assert sent(again, address, b"56789", "5-9/10").json()["size"] == "10"
    assert (root / "gcs/bucket/x").read_text() == "0123456789"


def test_finished_upload_repeats_its_last_answer(client: ServedStorage) -> None:
    address = begun(client)
    first = sent(client, address, b"0123456789", "0-9/10")
    again = sent(client, address, b"", "*/10")
    assert (again.status_code, again.json()) == (200, first.json())


def test_overlaps_and_gaps_lose_no_bytes(client: ServedStorage, root: Path) -> None:
    address = begun(client)
    sent(client, address, b"01234", "0-4/*")
    assert sent(client, address, b"34567", "3-7/*").headers["range"] == "bytes=0-7"
    assert sent(client, address, b"x", "9-9/10").headers["range"] == "bytes=0-7"
    assert sent(client, address, b"89", "8-9/10").status_code == 200
    assert (root / "gcs/bucket/x").read_text() == "0123456789"


def test_object_appears_only_when_complete(client: ServedStorage, root: Path) -> None:
    address = begun(client)
    sent(client, address, b"01234", "0-4/10")
    assert not (root / "gcs/bucket").exists()
    broken = client.ask("POST", f"{URL}?uploadType=multipart", data=b"--b\r\n\r\n{}", headers={"content-type": "x/y"})
    assert broken.status_code == 400
    assert not (root / "gcs/bucket").exists()


def test_an_upload_may_be_compressed_on_its_way(client: ServedStorage, root: Path) -> None:
    """As by Google's client for Java: what is stored is what was compressed. A whole body may be meant as it is."""
    packed = {"content-encoding": "gzip"}
    body = (
        b'--b\r\ncontent-type: application/json\r\n\r\n{"name": "x"}\r\n--b\r\n\r\n' + b"4" * 3_000_000 + b"\r\n--b--"
    )
    headers = {"content-type": "multipart/related; boundary=b", **packed}
    stored = client.ask("POST", f"{URL}?uploadType=multipart", data=gzip.compress(body), headers=headers)
    assert (stored.status_code, (root / "gcs/bucket/x").read_bytes()) == (200, b"4" * 3_000_000)
    cut = client.ask("POST", f"{URL}?uploadType=multipart", data=gzip.compress(body)[:-9], headers=headers)
    assert cut.status_code == 400 and list((root / "uploads").iterdir()) == []
    metadata = {"content-type": "application/json", **packed}
    data = gzip.compress(b'{"name": "y"}')
    assert client.ask("POST", f"{URL}?uploadType=resumable", data=data, headers=metadata).status_code == 200
    whole = client.ask("POST", f"{URL}?uploadType=media&name=z", data=data, headers=packed)
    assert whole.status_code == 415 and not (root / "gcs/bucket/z").exists()


def test_a_change_may_be_posted(client: ServedStorage) -> None:
    """As by Google's client for Java, whose HTTP has no PATCH; another POST there is still a call by its name."""
    client.ask("POST", f"{URL}?uploadType=media&name=folder/x", data=b"42")
    change, override = {"metadata": {"a": "b"}}, {"X-HTTP-Method-Override": "PATCH"}
    path = "/storage/v1/b/bucket/o/folder%2Fx"
    assert client.ask("POST", path, json=change).status_code == 501
    assert client.ask("POST", path, json=change, headers=override).json()["metadata"] == {"a": "b"}
    assert client.ask("GET", path).json()["metadata"] == {"a": "b"}
    for other in ("DELETE", "GET"):
        assert client.ask("POST", path, headers={"X-HTTP-Method-Override": other}).status_code == 501


@pytest.mark.parametrize("where", ["header", "metadata"])
def test_content_with_wrong_checksum_is_not_stored(client: ServedStorage, root: Path, where: str) -> None:
    wrong = "AAAAAA=="
    address = begun(client, **({"crc32c": wrong} if where == "metadata" else {}))
    headers = {"x-goog-hash": f"crc32c={wrong}"} if where == "header" else {}
    reply = sent(client, address, b"0123", "0-3/4", **headers)
    assert (reply.status_code, "crc32c" in reply.json()["error"]["message"]) == (400, True)
    assert not (root / "gcs/bucket").exists()
    assert list((root / "uploads").iterdir()) == []


def test_unknown_cancelled_and_expired_uploads_are_gone(client: ServedStorage, root: Path) -> None:
    assert sent(client, f"{URL}?upload_id=../../x", b"", "*/1").status_code == 404
    cancelled, old = begun(client), begun(client)
    assert client.ask("DELETE", cancelled).status_code == 499
    assert sent(client, cancelled, b"", "*/1").status_code == 404
    for path in (root / "uploads").iterdir():
        os.utime(path, (0, 0))
    with ServedStorage(root) as again:
        assert sent(again, old, b"", "*/1").status_code == 404
    assert list((root / "uploads").iterdir()) == []


def ids(root: Path) -> set[str]:
    return {path.stem for path in (root / "uploads").iterdir()}


def make_idle(root: Path, *addresses: str, by: float = uploads.IDLE_SECONDS + 60) -> None:
    """Make as if the last bytes of uploads had come longer ago, those of the first the longest."""
    for place, address in enumerate(addresses):
        at = time.time() - by - 60 * (len(addresses) - place)
        for path in (root / "uploads").glob(f"{address.rpartition('=')[2]}.*"):
            os.utime(path, (at, at))


def test_uploads_beyond_the_most_are_refused(
    client: ServedStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MAX_UPLOADS", 3)
    for _ in range(3):
        begun(client)
    reply = client.ask("POST", f"{URL}?uploadType=resumable&name=x", json={})
    assert (reply.status_code, reply.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert reply.json()["error"]["message"] == (
        "3 uploads are open. Finish or cancel some, or wait until one has been idle for 10 minutes."
    )
    assert len(ids(root)) == 3


def test_finished_then_oldest_idle_uploads_make_room(
    client: ServedStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MAX_UPLOADS", 3)
    older, old, finished = (begun(client) for _ in range(3))
    sent(client, finished, b"0", "0-0/1")
    make_idle(root, older, old)
    first = begun(client)
    assert sent(client, finished, b"", "*/1").status_code == 404
    second = begun(client)
    assert [sent(client, each, b"", "*/1").status_code for each in (older, old, first, second)] == [404, 308, 308, 308]
    sent(client, old, b"0", "0-0/2")
    assert client.ask("POST", f"{URL}?uploadType=resumable&name=x", json={}).status_code == 429
    assert ids(root) == {each.rpartition("=")[2] for each in (old, first, second)}


def test_idle_uploads_leave_half_the_disk(client: ServedStorage, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older, old, new = (begun(client) for _ in range(3))
    for address in (older, old, new):
        sent(client, address, bytes(1000), "0-999/2000")
    make_idle(root, older, old)
    monkeypatch.setattr(uploads.Uploads, "_free_bytes", lambda _: 1500)
    begun(client)
    assert [sent(client, each, b"", "*/1").status_code for each in (older, old, new)] == [404, 308, 308]


def test_expired_uploads_go_while_the_emulator_runs(client: ServedStorage, root: Path) -> None:
    expired = begun(client)
    make_idle(root, expired, by=uploads.EXPIRY_SECONDS)
    kept = begun(client)
    assert ids(root) == {kept.rpartition("=")[2]}


def test_bytes_without_a_record_are_removed(client: ServedStorage, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when one is removed to make room while its client sends."""
    monkeypatch.setattr(uploads, "MAX_UPLOADS", 1)
    (root / "uploads" / f"{'0' * 32}.partial").write_bytes(b"0123")
    make_idle(root, "=" + "0" * 32)
    begun(client)
    assert "0" * 32 not in ids(root)


def test_full_disk_is_reported_and_leaves_nothing(
    client: ServedStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(uploads.Upload, "append", full)
    reply = client.ask("POST", f"{URL}?uploadType=media&name=x", data=b"0123")
    assert (reply.status_code, reply.json()["error"]["status"]) == (507, "RESOURCE_EXHAUSTED")
    assert list((root / "uploads").iterdir()) == []
    assert not (root / "gcs/bucket").exists()


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (f"{URL}?uploadType=media", "name"),
        (f"{URL}?name=x", "uploadType"),
        (f"{URL}?uploadType=media&name=x&surprise=1", "surprise"),
        (f"{URL}?uploadType=media&name={'x' * 300}", "255 bytes"),
        ("/upload/storage/v1/b/NO/o?uploadType=media&name=x", "Invalid bucket name: 'NO'"),
    ],
)
def test_bad_upload_is_rejected_with_reason(client: ServedStorage, root: Path, path: str, names: str) -> None:
    reply = client.ask("POST", path, data=b"x")
    assert reply.status_code == 400
    assert names in reply.text
    assert list((root / "uploads").iterdir()) == []


def test_a_list_takes_what_go_sends(client: ServedStorage) -> None:
    for name in ("a", "b/1", "b/2", "c"):
        assert client.ask("POST", f"{URL}?uploadType=media&name={name}", data=b"x").status_code == 200

    def listed(query: str) -> dict[str, Any]:
        reply = client.ask("GET", f"{URL.removeprefix('/upload')}?{query}")
        assert reply.status_code == 200, reply.text
        return {**reply.json(), "names": [each["name"] for each in reply.json().get("items", ())]}

    unset = "startOffset=&endOffset=&matchGlob=&includeTrailingDelimiter=false&softDeleted=false"
    assert listed(unset)["names"] == ["a", "b/1", "b/2", "c"]
    assert listed("startOffset=b&endOffset=b/2")["names"] == ["b/1"]
    offset = listed("delimiter=/&startOffset=b/2")
    assert (offset["names"], offset["prefixes"]) == (["c"], ["b/"])
    assert client.ask("GET", f"{URL.removeprefix('/upload')}?matchGlob=*").status_code == 400


def test_a_stream_of_unknown_length_ends_an_upload(client: ServedStorage, root: Path) -> None:
    url = begun(client)
    reply = client.ask("PUT", url, data=b"42", headers={"content-range": "bytes 0-*/*"})
    assert (reply.status_code, reply.json()["size"]) == (200, "2")
    # Of a known length, it ends there.
    reply = client.ask("PUT", begun(client), data=b"42", headers={"content-range": "bytes 0-*/3"})
    assert (reply.status_code, reply.headers["range"]) == (308, "bytes=0-1")


@pytest.mark.parametrize("header", ["bytes 5", "0-4/5", "bytes 0-4", "bytes x-y/z", f"bytes 0-4/{'9' * 5000}"])
def test_a_range_that_is_none_is_refused(client: ServedStorage, header: str) -> None:
    reply = client.ask("PUT", begun(client), data=b"x", headers={"content-range": header})
    assert (reply.status_code, "Content-Range" in reply.text) == (400, True)


HEADER = 'multipart/related; boundary="==b=="'
META = b'--==b==\r\ncontent-type: application/json\r\n\r\n{"name": "n"}\r\n'
MEDIA = b"--==b==\r\ncontent-type: text/plain\r\n\r\n"


def body(content: bytes) -> bytes:
    return META + MEDIA + content + b"\r\n--==b==--"


def received(data: bytes, size: int, header: str = HEADER) -> bytes:
    related = uploads.MultipartParser(header)
    media = b"".join(related.feed(data[at : at + size]) for at in range(0, len(data), size))
    media += related.finish()
    assert related.metadata == {"name": "n"}
    return media


@pytest.mark.parametrize("content", [b"", b"\r\n", b"x", b"--==b=", b"\r\n--==b\r\n\r\n", bytes(range(256)) * 3])
@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
def test_content_does_not_depend_on_chunk_boundaries(content: bytes, size: int) -> None:
    assert received(body(content), size) == content


@pytest.mark.parametrize("content", [b"", b"\n", b"x\n\ny"])
def test_line_feeds_and_single_quotes_are_read(content: bytes) -> None:
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
def test_malformed_bodies_are_refused_with_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ApiError, match=reason):
        received(data, 1 << 16)


@pytest.mark.parametrize("header", ["", "application/json", "multipart/related", "multipart/mixed; boundary=b"])
def test_a_type_without_a_boundary_is_refused(header: str) -> None:
    with pytest.raises(ApiError, match="Content-Type"):
        uploads.MultipartParser(header)


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
