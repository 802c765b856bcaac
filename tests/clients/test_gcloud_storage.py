"""`gcloud storage` on the bucket folder."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from google.cloud import storage

from tests.clients.conftest import Gcloud
from tests.vertex_emulator.running import RunningEmulator


def test_files_go_to_a_bucket_and_come_back(gcloud: Gcloud, emulator: RunningEmulator, tmp_path: Path) -> None:
    small, large = tmp_path / "small.txt", tmp_path / "large.bin"
    small.write_text("small\n")
    large.write_bytes(os.urandom(9 << 20))  # beyond 8 MiB gcloud uploads resumably
    gcloud("storage", "buckets", "create", "gs://by-gcloud")
    gcloud("storage", "cp", str(small), str(large), "gs://by-gcloud/in/")
    assert (emulator.data / "gcs/by-gcloud/in/large.bin").read_bytes() == large.read_bytes()
    (emulator.data / "gcs/by-gcloud/from container").write_text("seen at once")
    listed = gcloud("storage", "ls", "gs://by-gcloud/**").stdout.split("\n")[:-1]
    assert listed == [f"gs://by-gcloud/{name}" for name in ("from container", "in/large.bin", "in/small.txt")]
    (tmp_path / "back").mkdir()
    gcloud("storage", "cp", "-r", "gs://by-gcloud", str(tmp_path / "back"))
    assert (tmp_path / "back/by-gcloud/in/large.bin").read_bytes() == large.read_bytes()
    gcloud("storage", "rm", "-r", "gs://by-gcloud")
    assert not (emulator.data / "gcs/by-gcloud").exists()


def test_objects_are_copied_moved_composed_and_changed(gcloud: Gcloud, client: storage.Client) -> None:
    bucket = client.create_bucket("gcloud-changes")
    bucket.blob("a.txt").upload_from_string("a")
    at = "gs://gcloud-changes"
    gcloud("storage", "cp", f"{at}/a.txt", f"{at}/copies/b.txt")
    gcloud("storage", "mv", f"{at}/copies/b.txt", f"{at}/b.txt")
    gcloud("storage", "objects", "compose", f"{at}/b.txt", f"{at}/a.txt", f"{at}/b.txt", f"{at}/c.txt")
    gcloud("storage", "objects", "update", f"{at}/c.txt", "--content-type=text/own", "--custom-metadata=epoch=3")
    assert [blob.name for blob in client.list_blobs(bucket)] == ["a.txt", "b.txt", "c.txt"]
    composed = bucket.get_blob("c.txt")
    assert (composed.content_type, composed.metadata) == ("text/own", {"epoch": "3"})
    assert composed.download_as_bytes() == b"aaa"


def test_folders_are_synchronized_without_needless_copies(
    gcloud: Gcloud, client: storage.Client, tmp_path: Path
) -> None:
    client.create_bucket("gcloud-rsync")
    for name in ("1", "deep/2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    gcloud("storage", "rsync", "-r", str(tmp_path), "gs://gcloud-rsync/there")
    first = {blob.name: blob.generation for blob in client.list_blobs("gcloud-rsync")}
    assert sorted(first) == ["there/1", "there/deep/2"]
    gcloud("storage", "rsync", "-r", str(tmp_path), "gs://gcloud-rsync/there")
    assert {blob.name: blob.generation for blob in client.list_blobs("gcloud-rsync")} == first


def test_gsutil_works_through_gcloud_storage(
    gcloud: Gcloud, environment: Mapping[str, str], client: storage.Client, tmp_path: Path
) -> None:
    bucket = client.create_bucket("by-gsutil")
    (tmp_path / "x.txt").write_text("by gsutil")
    command = ["gsutil", "-o", "GSUtil:use_gcloud_storage=True", "-h", "x-goog-meta-epoch:3", "cp"]
    paths = [str(tmp_path / "x.txt"), "gs://by-gsutil/x.txt"]
    done = subprocess.run([*command, *paths], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    blob = bucket.get_blob("x.txt")
    assert (blob.download_as_bytes(), blob.metadata["epoch"]) == (b"by gsutil", "3")
