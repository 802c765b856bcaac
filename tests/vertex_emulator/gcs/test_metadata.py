"""Which metadata of objects are stored, what a change of them does, and when they end."""

import os
from pathlib import Path
from typing import Any

import pytest

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs import metadata
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.gcs.metadata import MAX_CUSTOM_BYTES, MetadataDatabase
from vertex_emulator.gcs.objects import BucketStore, ObjectStore

FIELDS = {"contentType": "text/x", "metadata": {"a": "1", "b": "2"}}


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    (tmp_path / "gcs").mkdir()
    return ObjectStore(BucketStore(BucketTree(tmp_path / "gcs"), MetadataDatabase(tmp_path / "objects.db")))


def put(objects: ObjectStore, name: str, tmp_path: Path, **fields: Any) -> int:
    source = tmp_path / "source"
    source.write_text("content")
    return objects.put("bucket", name, source, fields).generation


def test_fields_of_the_service_are_not_stored() -> None:
    resource = {"name": "x", "size": "1", "md5Hash": "…", "generation": "5", "acl": [], "contentEncoding": None}
    assert metadata.parse({**resource, **FIELDS}) == FIELDS


@pytest.mark.parametrize(
    ("change", "after"),
    [
        ({}, FIELDS),
        ({"contentType": None}, {"metadata": {"a": "1", "b": "2"}}),
        ({"metadata": {"a": None, "c": "3"}}, {"contentType": "text/x", "metadata": {"b": "2", "c": "3"}}),
        ({"metadata": None, "cacheControl": "no-cache"}, {"contentType": "text/x", "cacheControl": "no-cache"}),
        ({"metadata": {"a": None, "b": None}}, {"contentType": "text/x"}),
    ],
)
def test_patches_keep_what_they_leave_out(change: dict[str, Any], after: dict[str, Any]) -> None:
    assert metadata.patch(FIELDS, change) == after


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"contentEncoding": "gzip", "temporaryHold": True}, "contentEncoding: is not stored.*temporaryHold: is not"),
        ({"contentType": "text/x\r\nset-cookie: a=b"}, "contentType: must be a text of at most 1024 printable"),
        ({"contentType": 5}, "contentType: must be a text"),
        ({"metadata": {"a": 1}}, "metadata: must be an object whose values are texts"),
        ({"metadata": ["a"]}, "metadata: must be an object"),
        ({"metadata": {"a": "ä" * MAX_CUSTOM_BYTES}}, "metadata: has 16385 bytes of keys and values"),
    ],
)
def test_invalid_metadata_are_rejected_by_name(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ApiError, match=text):
        metadata.patch({}, change)


def test_metadata_end_with_a_replaced_file(objects: ObjectStore, tmp_path: Path) -> None:
    generation = put(objects, "x.csv", tmp_path, **FIELDS)
    assert objects.require("bucket", "x.csv").metadata.fields == FIELDS
    (tmp_path / "gcs/bucket/x.csv").write_text("of a container")
    now = objects.require("bucket", "x.csv")
    assert now.generation != generation
    assert (now.metadata.fields, now.content_type) == ({}, "text/csv")


def test_metadata_end_with_their_object(objects: ObjectStore, tmp_path: Path) -> None:
    database = objects.buckets.metadata
    first = put(objects, "x", tmp_path, **FIELDS)
    second = put(objects, "x", tmp_path, contentType="text/y")
    assert database.get("bucket", "x", first).fields == {}
    objects.delete("bucket", "x", lambda _: None)
    assert database.get("bucket", "x", second).fields == {}
    third = put(objects, "y", tmp_path, **FIELDS)
    (tmp_path / "gcs/bucket/y").unlink()
    objects.buckets.delete("bucket")
    assert database.get("bucket", "y", third).fields == {}


def test_a_failed_replacement_keeps_the_metadata(objects: ObjectStore, tmp_path: Path) -> None:
    put(objects, "folder/x", tmp_path, **FIELDS)
    with pytest.raises(IsADirectoryError):
        put(objects, "folder", tmp_path, contentType="text/y")
    with pytest.raises(ApiError, match="is a file"):
        put(objects, "folder/x/y", tmp_path, contentType="text/y")
    assert objects.require("bucket", "folder/x").metadata.fields == FIELDS


def test_each_upload_makes_a_later_generation(objects: ObjectStore, tmp_path: Path) -> None:
    generations = []
    for _ in range(3):
        source = tmp_path / "source"
        source.touch()
        os.utime(source, ns=(0, 5_000_000_000))  # the clock of files stands still for some milliseconds
        generations.append(objects.put("bucket", "x", source).generation)
    assert generations == [5_000_000_000, 5_000_000_001, 5_000_000_002]


def test_metadata_outlive_a_restart(objects: ObjectStore, tmp_path: Path) -> None:
    put(objects, "x", tmp_path, **FIELDS)
    objects.set_metadata("bucket", "x", lambda stored: {**stored.metadata.fields, "contentType": "text/z"})
    again = ObjectStore(BucketStore(BucketTree(tmp_path / "gcs"), MetadataDatabase(tmp_path / "objects.db"))).require(
        "bucket", "x"
    )
    assert (again.metadata.fields, again.metadata.metageneration) == ({**FIELDS, "contentType": "text/z"}, 2)
