"""What google-cloud-storage does with objects that are there: copies, metadata, batches, and readers of parts."""

import os
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import storage
from google.cloud.storage import transfer_manager

from tests.vertex_emulator.running import RunningEmulator


def test_copies_and_moves_keep_content_and_metadata(client: storage.Client, emulator: RunningEmulator) -> None:
    source, other = client.bucket("copies"), client.bucket("copied-to")
    blob = source.blob("a folder/x?.txt")
    blob.metadata = {"by": "ä test"}
    blob.upload_from_string("content", content_type="application/x-own")
    copied = source.copy_blob(blob, other, "deep/er/y", if_generation_match=0)
    assert (copied.metadata, copied.content_type, copied.md5_hash) == (
        blob.metadata,
        "application/x-own",
        blob.md5_hash,
    )
    renamed = source.rename_blob(blob, "z.json")
    assert (renamed.metadata, renamed.content_type) == (blob.metadata, "application/x-own")
    rewritten = other.blob("rewritten")
    rewritten.content_type = "text/other"
    assert rewritten.rewrite(renamed) == (None, 7, 7)
    assert (rewritten.content_type, rewritten.metadata) == ("text/other", None)
    moved = other.move_blob(copied, "moved", if_source_generation_match=copied.generation)
    assert (moved.metadata, moved.content_type) == (blob.metadata, "application/x-own")
    assert [each.name for each in client.list_blobs("copies")] == ["z.json"]
    assert [each.name for each in client.list_blobs("copied-to")] == ["moved", "rewritten"]
    assert (emulator.data / "gcs/copied-to/moved").read_text() == "content"
    with pytest.raises(exceptions.PreconditionFailed):
        source.copy_blob(renamed, other, "moved", if_generation_match=0)


def test_objects_are_composed_in_order_and_appended_to(client: storage.Client) -> None:
    bucket = client.bucket("composed")
    parts = [bucket.blob(f"part-{number}") for number in range(3)]
    for part in parts:
        part.upload_from_string(part.name)
    whole = bucket.blob("whole")
    whole.content_type = "text/plain"
    whole.compose([parts[2], parts[0]])
    whole.compose([whole, parts[1]], if_generation_match=whole.generation)
    assert whole.download_as_bytes() == b"part-2part-0part-1"
    with pytest.raises(exceptions.NotFound):
        whole.compose([parts[0], bucket.blob("none")])
    with pytest.raises(exceptions.PreconditionFailed):
        whole.compose([parts[0]], if_source_generation_match=[5])
    assert whole.download_as_bytes() == b"part-2part-0part-1"


def test_metadata_are_changed_and_end_with_their_file(client: storage.Client, emulator: RunningEmulator) -> None:
    blob = client.bucket("metadata").blob("model.bin")
    blob.upload_from_string(b"x", content_type="application/x-model")
    content = (blob.generation, blob.md5_hash)
    blob.metadata = {"accuracy": "0.9", "step": "10"}
    blob.cache_control = "no-cache"
    blob.patch(if_metageneration_match=1)
    blob.metadata = {"step": None}
    blob.patch()
    found = client.bucket("metadata").get_blob("model.bin")
    assert (found.metadata, found.cache_control, found.metageneration) == ({"accuracy": "0.9"}, "no-cache", 3)
    assert (found.generation, found.md5_hash) == content
    (listed,) = client.list_blobs("metadata")
    assert (listed.metadata, listed.content_type) == ({"accuracy": "0.9"}, "application/x-model")
    with pytest.raises(exceptions.PreconditionFailed):
        found.patch(if_metageneration_match=1)
    found.cache_control = None
    found.update()
    assert (found.cache_control, found.metadata) == (None, {"accuracy": "0.9"})
    folder = emulator.data / "gcs/metadata"
    assert [path.name for path in folder.iterdir()] == ["model.bin"]  # containers see no other file
    (folder / "model.bin").write_text("of a container")
    found = client.bucket("metadata").get_blob("model.bin")
    assert (found.metadata, found.content_type, found.metageneration) == (None, "application/octet-stream", 1)


def test_batches_change_many_objects_at_once(client: storage.Client) -> None:
    bucket = client.bucket("batches")
    blobs = [bucket.blob(f"folder/{number}?&") for number in range(100)]
    for blob in blobs:
        blob.upload_from_string("x")
    with client.batch():
        for blob in blobs[:99]:
            blob.delete()
    with client.batch():
        blobs[99].metadata = {"left": "over"}
        blobs[99].patch()
    assert [(blob.name, blob.metadata) for blob in client.list_blobs(bucket)] == [("folder/99?&", {"left": "over"})]
    with pytest.raises(exceptions.NotFound, match="No such object: batches/folder/0"), client.batch():
        blobs[0].delete()
        blobs[99].delete()
    assert list(client.list_blobs(bucket)) == []


def test_files_are_written_and_read_in_parts(client: storage.Client, tmp_path: Path) -> None:
    content = os.urandom(1 << 20)
    blob = client.bucket("in-parts").blob("x")
    with blob.open("wb", chunk_size=256 << 10) as file:  # its size is not known before its end
        for start in range(0, len(content), 100_000):
            file.write(content[start : start + 100_000])
    assert blob.download_as_bytes(start=-10) == content[-10:]
    assert blob.download_as_bytes(start=len(content) - 5, end=len(content) + 5) == content[-5:]
    with blob.open("rb", chunk_size=100_000) as file:
        file.seek(300_000)
        assert file.read(10) == content[300_000:300_010]
    transfer_manager.download_chunks_concurrently(blob, str(tmp_path / "x"), 300_000, worker_type="thread")
    assert (tmp_path / "x").read_bytes() == content
    with pytest.raises(exceptions.RequestRangeNotSatisfiable):
        blob.download_as_bytes(start=len(content))
