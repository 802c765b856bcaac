"""What data is now: which objects and files a URI names, and what a bucket, a folder and BigQuery say of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from vertex_training.data import listing
from vertex_training.data.lock import Snapshot
from vertex_training.errors import DataUnreadable

from tests.standins.cloud_storage import cloud_storage

LOCAL, CLOUD = "//local/projects/p/locations/r", "//aiplatform.googleapis.com/projects/p/locations/us-central1"
NAMES = ["train/", "train/a.csv", "train/b.txt", "train/deep/c.csv", "training.csv"]


@pytest.mark.parametrize(
    ("uri", "names"),
    [
        ("gs://acme/train/", ["a.csv", "b.txt", "deep/c.csv"]),
        ("gs://acme/train/*", ["a.csv", "b.txt"]),
        ("gs://acme/train/*.csv", ["a.csv"]),
        ("gs://acme/train/**.csv", ["a.csv", "deep/c.csv"]),
        ("gs://acme/train/?.txt", ["b.txt"]),
        ("gs://acme/train/a.csv", ["a.csv"]),
        ("gs://acme/**", ["train/a.csv", "train/b.txt", "train/deep/c.csv", "training.csv"]),
    ],
)
def test_a_uri_names_objects_by_pattern(monkeypatch: pytest.MonkeyPatch, uri: str, names: list[str]) -> None:
    with cloud_storage() as standin:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", standin.url)
        for name in NAMES:
            standin.objects["acme", name] = name.encode()
        found = listing.take(uri, Path(), CLOUD)
    assert [*found.parts] == names
    assert (found.noun, found.count) == ("objects", len(names))
    assert all(part.fields.keys() == {"crc32c", "md5", "generation"} for part in found.parts.values())


def test_nothing_under_a_uri_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with cloud_storage() as standin:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", standin.url)
        with pytest.raises(DataUnreadable, match=r"^gs://acme/x/: there is nothing under this URI"):
            listing.take("gs://acme/x/", Path(), CLOUD)
        standin.refusal = "no access"
        with pytest.raises(DataUnreadable, match=r"Cloud Storage refuses: .*roles/storage.objectViewer"):
            listing.take("gs://acme/x/", Path(), CLOUD)


def test_a_bucket_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with cloud_storage() as standin:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", standin.url)
        monkeypatch.setattr(standin, "get", lambda *_: (404, {"error": {"code": 404, "message": "no bucket"}}))
        with pytest.raises(DataUnreadable, match=r"^gs://acme: there is no bucket of this name"):
            listing.take("gs://acme/x/", Path(), CLOUD)


def test_files_of_the_project_are_listed(tmp_path: Path) -> None:
    for name in ("a.csv", "deep/b.csv", "c.txt"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text(name)

    def take(path: str) -> Snapshot:
        return listing.take(path, tmp_path, LOCAL)

    whole = take("data/")
    assert [*whole.parts] == ["a.csv", "c.txt", "deep/b.csv"] and whole == Snapshot(
        "data/", "files", 3, 20, whole.digest
    )
    assert take("data").digest == whole.digest
    assert [*take("data/*.csv").parts] == ["a.csv"]
    (tmp_path / "data/a.csv").write_text("A.csv")
    assert take("data/").digest != whole.digest
    with pytest.raises(DataUnreadable, match="there is nothing"):
        take("elsewhere/")


def test_names_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / os.fsdecode(b"a\xff.csv")).write_text("")
    with pytest.raises(DataUnreadable, match=r"^data/: the name 'a\\udcff\.csv' is not UTF-8"):
        listing.take("data/", tmp_path, LOCAL)


def test_files_outside_the_project_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    for path in ("../data/", "link/*.csv"):
        (violation,) = listing.uri_violations(tmp_path, path)
        assert "leads out of" in violation[1]
    assert not [*listing.uri_violations(tmp_path, "gs://acme/..")]


MANY = """
import resource
from pathlib import Path
from google.cloud.storage._http import Connection
from vertex_training.data import listing

def most(count):
    pages = ({"items": [{"name": f"train/{at % 50}/{at + i:09}.tfrecord", "size": "1000", "generation": str(at + i + 1),
        "crc32c": f"{at + i:08}", "md5Hash": f"{at + i:024}"} for i in range(1000)]} for at in range(0, count, 1000))
    def answer(self, path, **_):
        if not path.endswith("/o"):  # the client asks for the bucket too
            return {}
        page = next(pages, None)
        return {**page, "nextPageToken": "more"} if page else {"items": []}
    Connection.api_request = answer
    found = listing.take("gs://acme/train/**", Path(), "//aiplatform.googleapis.com/projects/p/locations/r")
    assert found.count == count, found
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB
few = most(5_000)
print(most(100_000) - few)
"""


def test_objects_take_memory_of_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 objects take hardly more than 5,000 do."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 10 << 10
