"""The bucket folders, for reading and never beyond."""

import os
from pathlib import Path

import pytest

from vertex_emulator.errors import ApiError
from vertex_emulator.page import routes


@pytest.fixture
def buckets(tmp_path: Path) -> Path:
    folder = tmp_path / "gcs" / "models" / "run"
    folder.mkdir(parents=True)
    (folder / "weights.bin").write_bytes(b"12345")
    (folder / "a folder").mkdir()
    (tmp_path / "secret").write_text("no")
    return tmp_path / "gcs"


def test_folders_come_first_with_their_kind(buckets: Path) -> None:
    found = routes.list_folder(buckets, "gs://models/run/")
    shown = [(entry["name"], entry["kind"], entry["uri"]) for entry in found["entries"]]
    assert shown == [
        ("a folder", "folder", "gs://models/run/a folder"),
        ("weights.bin", "file", "gs://models/run/weights.bin"),
    ]
    assert found["entries"][1]["size"] == 5
    assert (found["path"], found["left_out"]) == (str(buckets / "models/run"), 0)


def test_the_root_lists_the_buckets(buckets: Path) -> None:
    assert [entry["uri"] for entry in routes.list_folder(buckets, "gs://")["entries"]] == ["gs://models"]


def test_large_folder_counts_omitted_files(buckets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MAX_LISTED", 1)
    found = routes.list_folder(buckets, "gs://models/run")
    assert ([entry["name"] for entry in found["entries"]], found["left_out"]) == (["a folder"], 1)


@pytest.mark.parametrize(
    "uri", ["gs://models/../../secret", "gs://models/run/../../../secret", "gs://../secret", "/etc/passwd", "gs:///etc"]
)
def test_no_uri_leads_out_of_the_buckets(buckets: Path, uri: str) -> None:
    for look in (routes.list_folder, routes.open_file):
        with pytest.raises(ApiError) as refusal:
            look(buckets, uri)
        assert refusal.value.http == 400
        assert refusal.value.violations[0][0] == "uri"


def test_link_is_shown_and_not_followed(buckets: Path) -> None:
    (buckets / "models/run/out").symlink_to(buckets.parent)
    (buckets / "models/run/secret").symlink_to(buckets.parent / "secret")
    kinds = {entry["name"]: entry["kind"] for entry in routes.list_folder(buckets, "gs://models/run")["entries"]}
    assert (kinds["out"], kinds["secret"]) == ("link", "link")
    for uri in ("gs://models/run/secret", "gs://models/run/out/secret"):
        with pytest.raises(ApiError, match="symbolic link"):
            routes.open_file(buckets, uri)


def test_name_that_is_not_utf8_is_escaped(buckets: Path) -> None:
    (buckets / "models/run" / os.fsdecode(b"caf\xe9")).touch()
    os.mkfifo(buckets / "models/run/pipe")
    shown = [
        (entry["name"], entry["kind"], entry["uri"])
        for entry in routes.list_folder(buckets, "gs://models/run")["entries"]
    ]
    assert ("caf\\xe9", "file", "") in shown
    assert ("pipe", "special", "gs://models/run/pipe") in shown


@pytest.mark.parametrize("uri", ["gs://models/none", "gs://models/run/a folder", "gs://none-such"])
def test_what_is_no_file_is_not_found(buckets: Path, uri: str) -> None:
    with pytest.raises(ApiError) as refusal:
        routes.open_file(buckets, uri)
    assert refusal.value.http == 404
