import contextlib
import os
from pathlib import Path

import pytest

from tests.vertex_emulator.gcs.served import ServedStorage
from vertex_emulator.errors import ApiError
from vertex_emulator.gcs import files
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.gcs.metadata import MetadataDatabase
from vertex_emulator.gcs.objects import BucketStore, ObjectStore

NAMES = ["a", "a b/c", "a-/z", "a.txt", "a/1", "a/b/2", "a0", "b/", "ä/x", "z/y/x/w"]


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    root = tmp_path / "gcs"
    for name in NAMES:
        path = root / "bucket" / name
        if name == "a":
            continue  # a folder here, because of the names below it
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith("/") else path.write_text(name)
    return ObjectStore(BucketStore(BucketTree(root), MetadataDatabase(tmp_path / "objects.db")))


def test_names_are_sorted_and_exclude_folders(objects: ObjectStore) -> None:
    assert list(objects.names("bucket")) == sorted(name for name in NAMES if name not in ("a", "b/"))


@pytest.mark.parametrize("prefix", ["", "a", "a/", "a/b", "ä", "z/y/", "z/y/x/w", "nothing"])
def test_prefix_selects_names_that_start_with_it(objects: ObjectStore, prefix: str) -> None:
    everything = list(objects.names("bucket"))
    assert list(objects.names("bucket", prefix)) == [name for name in everything if name.startswith(prefix)]


def test_large_folder_is_listed_in_batches(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = list(objects.names("bucket"))
    monkeypatch.setattr(files, "_FIRST_BATCH", 1)
    monkeypatch.setattr(files, "_MAX_BATCH", 2)
    assert list(objects.names("bucket")) == everything
    assert list(objects.names("bucket", "a")) == [name for name in everything if name.startswith("a")]


def test_folders_stand_for_their_objects(objects: ObjectStore) -> None:
    def prefixes(prefix: str, after: str = "") -> list[str]:
        return list(objects.names("bucket", prefix, after, folders_as_prefixes=True))

    assert prefixes("") == ["a b/", "a-/", "a.txt", "a/", "a0", "z/", "ä/"]
    assert prefixes("a/") == ["a/1", "a/b/"]
    assert prefixes("", "a/1") == ["a/", "a0", "z/", "ä/"]
    assert prefixes("", "a/\U0010ffff") == ["a0", "z/", "ä/"]


def test_a_list_goes_on_after_any_name(objects: ObjectStore) -> None:
    everything = list(objects.names("bucket"))
    for after in [*everything, "a/\U0010ffff", "a", "", "zz"]:
        assert list(objects.names("bucket", "", after)) == [name for name in everything if name > after]


@pytest.mark.parametrize("name", ["../x", "a/../x", "/x", "a//b", "a/./b", "x//", "a\0b"])
def test_escaping_or_invalid_object_name_is_rejected(objects: ObjectStore, name: str) -> None:
    with pytest.raises(ApiError) as raised:
        objects.buckets.check_name("bucket", name)
    assert raised.value.http == 400


@pytest.mark.parametrize("bucket", ["..", "UPPER", "a/b", "", "bucket/../other"])
def test_invalid_bucket_names_are_refused(objects: ObjectStore, bucket: str) -> None:
    with pytest.raises(ApiError):
        objects.buckets.create(bucket)
    assert objects.buckets.find(bucket) is None


def test_a_bucket_of_empty_folders_is_empty(objects: ObjectStore) -> None:
    objects.buckets.create("empty")
    (objects.buckets.tree.root / "empty" / "x" / "y").mkdir(parents=True)
    objects.buckets.delete("empty")
    assert objects.buckets.names() == ["bucket"]


def test_folders_without_end_end_a_list(objects: ObjectStore) -> None:
    names = ["d/" * 99 + "last", "d/" * 100 + "beyond", "d/" * 400 + "far"]
    with contextlib.chdir(objects.buckets.tree.root / "bucket"):
        for depth in range(400):
            for name in names:
                if name.count("/") == depth:
                    Path(name.rpartition("/")[2]).touch()
            Path("d").mkdir()
            os.chdir("d")
        Path("far").touch()
    assert list(objects.names("bucket", "d/")) == names[:1]
    assert list(objects.names("bucket", "d/", folders_as_prefixes=True)) == ["d/d/"]
    found, file = objects.open("bucket", names[0])
    with file:
        assert found.name == names[0]
    with pytest.raises(ApiError, match="has more than 100 parts"):
        objects.open("bucket", names[1])
    with pytest.raises(ApiError, match="is not empty"):
        objects.buckets.delete("bucket")


def test_a_file_beside_buckets_is_none(objects: ObjectStore) -> None:
    (objects.buckets.tree.root / "plain").touch()
    for name in ("", "x"):
        with pytest.raises(ApiError) as error:
            objects.open("plain", name)
        assert error.value.status == "NOT_FOUND"


def test_gcloud_learns_that_a_bucket_is_flat(tmp_path: Path) -> None:
    """It asks for both before it deletes a bucket."""
    (tmp_path / "gcs" / "bucket").mkdir(parents=True)
    (tmp_path / "uploads").mkdir()
    with ServedStorage(tmp_path) as client:
        layout = client.ask("GET", "/storage/v1/b/bucket/storageLayout").json()
        assert layout["hierarchicalNamespace"] == {"enabled": False}
        assert client.ask("GET", "/storage/v1/b/bucket/managedFolders").json() == {"kind": "storage#managedFolders"}
        assert client.ask("GET", "/storage/v1/b/nothing/managedFolders").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/storage/v1/b/Acme_Data", "Acme_Data"),
        ("GET", "/storage/v1/b/Acme_Data/o/a", "Acme_Data"),
        ("DELETE", "/storage/v1/b/a..b", "a..b"),
        ("POST", "/upload/storage/v1/b/Acme_Data/o?uploadType=media&name=a", "Acme_Data"),
        # As Google's client for Python writes gs://acme, and as a client does that quotes it.
        ("GET", "/storage/v1/b/gs://acme", "gs:"),
        ("GET", "/storage/v1/b/gs:%2F%2Facme/o/a", "gs://acme"),
        ("GET", "/download/storage/v1/b/gs:%2F%2Facme/o/a", "gs://acme"),
        ("POST", "/upload/storage/v1/b/gs:%2F%2Facme/o?uploadType=media&name=a", "gs://acme"),
    ],
)
def test_a_name_of_no_bucket_is_invalid(tmp_path: Path, method: str, path: str, name: str) -> None:
    (tmp_path / "gcs").mkdir()
    (tmp_path / "uploads").mkdir()
    with ServedStorage(tmp_path) as client:
        reply = client.ask(method, path)
    assert (reply.status_code, reply.json()["error"]["message"]) == (400, f"Invalid bucket name: '{name}'")
