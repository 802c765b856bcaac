"""google-cloud-storage, unmodified, on the folder that containers see as `/gcs`."""

import base64
import hashlib
import io
import os
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import storage
from google.cloud.storage import transfer_manager
from google.cloud.storage.exceptions import InvalidResponse

from tests.vertex_emulator.running import RunningEmulator, custom_job, pool

LARGE = 20 << 20


def test_a_client_without_any_argument_finds_the_emulator(in_environment: None, emulator: RunningEmulator) -> None:
    assert storage.Client().create_bucket("no-arguments").exists()
    assert (emulator.data / "gcs/no-arguments").is_dir()


def test_objects_are_files_of_the_bucket_folder(client: storage.Client, emulator: RunningEmulator) -> None:
    bucket = client.create_bucket("both-ways")
    bucket.blob("a folder/ä?#.json").upload_from_string('{"x": 1}')
    file = emulator.data / "gcs/both-ways/a folder/ä?#.json"
    assert file.read_text() == '{"x": 1}'
    file.with_name("beside.txt").write_text("by hand")
    blob = bucket.get_blob("a folder/beside.txt")
    md5 = base64.b64encode(hashlib.md5(b"by hand").digest()).decode()
    assert (blob.size, blob.content_type, blob.md5_hash) == (7, "text/plain", md5)
    assert blob.download_as_text() == "by hand"
    blob.delete()
    assert not file.with_name("beside.txt").exists()
    assert bucket.get_blob("a folder/beside.txt") is None


def test_paths_without_their_beginning_are_node_s(client: storage.Client, emulator: RunningEmulator) -> None:
    client.bucket("of-node").blob("a/b.txt").upload_from_string("42")
    assert emulator.answer("b/of-node/o/a%2Fb.txt?alt=media").text == "42"
    assert [item["name"] for item in emulator.answer("b/of-node/o").json()["items"]] == ["a/b.txt"]


@pytest.mark.parametrize("chunk", [None, 1 << 20], ids=["in one request", "in chunks"])
def test_a_large_file_is_uploaded_resumably_and_downloaded(client: storage.Client, chunk: int | None) -> None:
    content = os.urandom(LARGE)
    blob = client.bucket("large").blob(f"by {chunk}.bin", chunk_size=chunk)
    blob.upload_from_file(io.BytesIO(content), size=LARGE)
    again = client.bucket("large").blob(blob.name)
    assert again.download_as_bytes() == content
    assert again.download_as_bytes(start=LARGE - 10) == content[-10:]
    assert again.download_as_bytes(start=1000, end=1999) == content[1000:2000]


def test_lists_have_prefixes_pages_and_job_output(client: storage.Client, emulator: RunningEmulator) -> None:
    names = ["a.txt", "a/1", "a/2", "a/b/3", "b"]
    for name in reversed(names):
        client.bucket("listed").blob(name).upload_from_string(name)
    script = "import pathlib; pathlib.Path('/gcs/listed/z by job').write_text('trained')"
    assert emulator.ended(emulator.create(custom_job(pool(script))))["state"] == "JOB_STATE_SUCCEEDED"
    assert [blob.name for blob in client.list_blobs("listed", page_size=2)] == [*names, "z by job"]
    assert [blob.name for blob in client.list_blobs("listed", prefix="a/")] == ["a/1", "a/2", "a/b/3"]
    found = client.list_blobs("listed", delimiter="/", page_size=1)
    assert ([blob.name for blob in found], found.prefixes) == (["a.txt", "b", "z by job"], {"a/"})
    found = client.list_blobs("listed", prefix="a/", delimiter="/")
    assert ([blob.name for blob in found], found.prefixes) == (["a/1", "a/2"], {"a/b/"})


def test_a_list_has_checksums_if_asked(client: storage.Client) -> None:
    stored = client.bucket("summed").blob("a/b")
    stored.upload_from_string("content")
    (listed,) = client.list_blobs("summed", fields="items(name,size,crc32c,md5Hash,generation)")
    assert (listed.md5_hash, listed.crc32c, listed.generation) == (stored.md5_hash, stored.crc32c, stored.generation)
    (plain,) = client.list_blobs("summed")
    assert (plain.size, plain.crc32c) == (7, None)


def test_only_empty_buckets_can_be_deleted(client: storage.Client) -> None:
    bucket = client.create_bucket("to-be-deleted")
    with pytest.raises(exceptions.Conflict, match="already exists"):
        client.create_bucket("to-be-deleted")
    bucket.blob("x/y").upload_from_string("z")
    assert "to-be-deleted" in [each.name for each in client.list_buckets()]
    with pytest.raises(exceptions.Conflict, match="not empty"):
        bucket.delete()
    bucket.blob("x/y").delete()
    bucket.delete()
    assert not bucket.exists()
    with pytest.raises(exceptions.NotFound, match="to-be-deleted"):
        list(client.list_blobs("to-be-deleted"))


def test_a_precondition_keeps_an_object_from_being_overwritten(client: storage.Client) -> None:
    blob = client.bucket("conditions").blob("once")
    blob.upload_from_string("first", if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        blob.upload_from_string("second", if_generation_match=0)
    blob.upload_from_string("third", if_generation_match=blob.generation)
    assert blob.download_as_bytes() == b"third"


def test_objects_that_files_cannot_represent_are_rejected(client: storage.Client, emulator: RunningEmulator) -> None:
    bucket, partial_files = client.bucket("refusals"), set((emulator.data / "uploads").glob("*.partial"))
    bucket.blob("folder/file").upload_from_string("x")
    for name, reason in (
        ("folder", "both a file and a folder"),
        ("../outside", "part, which is not a valid folder name"),
        ("/etc", "an empty part"),
    ):
        with pytest.raises(exceptions.GoogleAPICallError, match=reason):
            bucket.blob(name).upload_from_string("x")
    blob = bucket.blob("compressed")
    blob.content_encoding = "gzip"
    with pytest.raises(exceptions.BadRequest, match="contentEncoding: is not stored"):
        blob.upload_from_string("x")
    assert [each.name for each in client.list_blobs("refusals")] == ["folder/file"]
    assert set((emulator.data / "uploads").glob("*.partial")) <= partial_files


def test_links_left_by_containers_are_not_objects(client: storage.Client, emulator: RunningEmulator) -> None:
    secret = emulator.data.parent / "secret"
    secret.write_text("of the host")
    client.create_bucket("with-links")
    folder = emulator.data / "gcs/with-links"
    (folder / "file").symlink_to(secret)
    (folder / "folder").symlink_to(emulator.data.parent)
    (folder / "real").mkdir()
    (folder / "inside").symlink_to(folder / "real")
    (folder / os.fsdecode(b"no \xff text")).write_text("")
    assert list(client.list_blobs("with-links")) == []
    for name in ("file", "folder/secret", "inside/x"):
        with pytest.raises(exceptions.BadRequest, match="symbolic link"):
            client.bucket("with-links").blob(name).upload_from_string("x")
    assert secret.read_text() == "of the host"


def test_containers_can_write_to_folders_of_clients(client: storage.Client, emulator: RunningEmulator) -> None:
    client.bucket("folders").blob("made/").upload_from_string("")
    made: Path = emulator.data / "gcs/folders/made"
    assert made.is_dir()
    assert made.stat().st_mode & 0o777 == 0o777
    assert client.bucket("folders").blob("made/").exists()


def test_a_method_that_is_not_here_says_so(client: storage.Client, tmp_path: Path) -> None:
    blob = client.bucket("unimplemented").blob("x")
    blob.upload_from_string("x")
    with pytest.raises(exceptions.MethodNotImplemented, match="no PATCH /storage/v1/b/unimplemented"):
        blob.bucket.patch()
    with pytest.raises(exceptions.MethodNotImplemented, match=r"no POST .*/o/x/restore"):
        blob.bucket.restore_blob("x", generation=1)
    (tmp_path / "large").write_bytes(b"0123")
    with pytest.raises(InvalidResponse) as raised:
        transfer_manager.upload_chunks_concurrently(str(tmp_path / "large"), blob, chunk_size=2, worker_type="thread")
    assert (raised.value.response.status_code, "XML API" in raised.value.response.text) == (501, True)


def test_downloads_are_attachments_and_rejected_across_origins(emulator: RunningEmulator) -> None:
    page = emulator.data / "gcs/for-browsers/page.html"
    page.parent.mkdir()
    page.write_text("<script>alert(1)</script>")
    path = "download/storage/v1/b/for-browsers/o/page.html?alt=media"
    reply = emulator.http.get(f"{emulator.url}/{path}")
    assert (reply.text, reply.headers["content-disposition"]) == (page.read_text(), "attachment")
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        emulator.call("GET", path, expect=403, headers=headers)
