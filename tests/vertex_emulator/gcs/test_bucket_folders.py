from pathlib import Path

import pytest

from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.bucket_folders import make_writable_folder, resolve_gs_uri


def test_a_uri_is_a_folder_below_its_bucket(tmp_path: Path) -> None:
    assert resolve_gs_uri(tmp_path, "gs://my-bucket/run/1/") == tmp_path / "my-bucket" / "run" / "1"


def test_folders_are_made_open_to_every_user(tmp_path: Path) -> None:
    made = make_writable_folder(tmp_path, "gs://my-bucket/run/model/")
    assert [each.stat().st_mode & 0o777 for each in (made, made.parent, made.parent.parent)] == [0o777] * 3


def test_folders_left_private_by_killed_process_are_opened(tmp_path: Path) -> None:
    (tmp_path / "my-bucket" / "run").mkdir(parents=True, mode=0o700)
    made = make_writable_folder(tmp_path, "gs://my-bucket/run/model/")
    assert [each.stat().st_mode & 0o777 for each in (made, made.parent, made.parent.parent)] == [0o777] * 3
    assert make_writable_folder(tmp_path, "gs://my-bucket/run/model/") == made


@pytest.mark.parametrize("uri", ["gs://my-bucket/run", "gs://my-bucket/run/model"])
def test_file_in_place_of_folder_is_named(tmp_path: Path, uri: str) -> None:
    (tmp_path / "my-bucket").mkdir()
    (tmp_path / "my-bucket" / "run").touch()
    with pytest.raises(InvalidBucketUri, match="my-bucket/run is a file"):
        make_writable_folder(tmp_path, uri)


@pytest.mark.parametrize(
    "uri",
    [
        "gs://../etc",
        "gs://my-bucket/../../etc",
        "gs://my-bucket/a/../b",
        "gs://my-bucket/./a",
        "gs://my-bucket/a//b",
        "gs:///etc",
        "gs://My_Bucket!/x",
        "gs://a..b/x",
        "/etc",
        "https://bucket/x",
        "gs://my-bucket/a\0b",
        f"gs://my-bucket/{'ä' * 128}",
    ],
)
def test_nothing_leads_out_of_the_bucket_folder(tmp_path: Path, uri: str) -> None:
    with pytest.raises(InvalidBucketUri):
        resolve_gs_uri(tmp_path, uri)


def test_link_left_by_container_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "gcs"
    (root / "my-bucket").mkdir(parents=True)
    (root / "my-bucket" / "out").symlink_to("/etc")
    with pytest.raises(InvalidBucketUri, match="symbolic link"):
        resolve_gs_uri(root, "gs://my-bucket/out/x")
