"""What data is now: which objects and files a URI names, and what a bucket, a folder and BigQuery say of them."""

import subprocess
import sys
import textwrap
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


def test_files_outside_the_project_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    for path in ("../data/", "link/*.csv"):
        (violation,) = listing.uri_violations(tmp_path, path)
        assert "leads out of" in violation[1]
    assert not [*listing.uri_violations(tmp_path, "gs://acme/..")]


MANY = """
import resource, sys, time, tracemalloc
from pathlib import Path
from google.cloud.storage import Client  # what any call takes is not what a list takes
from vertex_training.data import listing
from vertex_training.runtime import storage

def peak(count):
    pages = ({"items": [{"name": f"train/{at % 50}/{at + i:09}.tfrecord", "size": "1000", "generation": str(at + i),
        "crc32c": f"{at + i:08}", "md5Hash": f"{at + i:024}"} for i in range(1000)]} for at in range(0, count, 1000))
    def answer(self, **_):
        page = next(pages, None)
        return {**page, "nextPageToken": "more"} if page else {"items": []}
    Client._connection = property(lambda self: type("C", (), {"api_request": answer})())
    tracemalloc.start()
    found = listing.take("gs://acme/train/**", Path(), "//aiplatform.googleapis.com/projects/p/locations/r")
    assert found.count == count, found
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most
small, large = peak(20_000), peak(100_000)
print(large, small, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_objects_take_memory_of_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 objects take no more than 20,000 do, and far less than 100 MB."""
    with cloud_storage() as standin:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", standin.url)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(MANY)], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    large, small, _ = map(int, done.stdout.split())
    assert large < 20 << 20 and large < 1.2 * small
