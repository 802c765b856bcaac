"""An import of more files, folders and links than the disk has inodes for."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.errors import EmulatorError
from vertex_emulator.snapshots.archive import Manifest
from vertex_emulator.snapshots.export import export
from vertex_emulator.snapshots.restore import FreeSpace, restore


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of a bucket with 50 empty folders, ten files and ten links."""
    bucket = DataFolder.open(tmp_path / "data").buckets / "models"
    for number in range(50):
        (bucket / f"f-{number}").mkdir(parents=True)
    for number in range(10):
        (bucket / f"f-{number}" / "file").touch()
        (bucket / f"f-{number}" / "link").symlink_to("file")
    list(export(tmp_path / "data", tmp_path / "x.tar.gz", redacts_env=False))
    return tmp_path / "x.tar.gz"


def set_free_inodes(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    statvfs = os.statvfs

    def report(folder: Path) -> os.statvfs_result:
        found = statvfs(folder)
        return os.statvfs_result((*found[:5], total, free, free, *found[8:]))

    monkeypatch.setattr(os, "statvfs", report)


def count_members(archive: Path) -> int:
    with tarfile.open(archive) as tar:
        return len(tar.getmembers()) - 1  # without the manifest


def test_more_members_than_inodes_are_refused(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = count_members(archive)
    set_free_inodes(monkeypatch, 1_000_000, members - 10)
    with pytest.raises(EmulatorError, match=rf"x\.tar\.gz needs {members} inodes .* has {members - 10} left"):
        restore(tmp_path / "other", archive, None)
    assert not any((tmp_path / "other" / "gcs").iterdir())


def test_folders_without_members_count_too(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = count_members(archive)
    deep = tmp_path / "deep.tar.gz"
    with tarfile.open(archive) as old, tarfile.open(deep, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for member in old:
            content = old.extractfile(member) if member.isreg() else None
            if member.name == "manifest.json":
                manifest = Manifest(members + 1, 10**6).dump()
                member.size, content = len(manifest), io.BytesIO(manifest)
            tar.addfile(member, content)
        last = tarfile.TarInfo("gcs/models/" + "d/" * 90 + "file")
        last.pax_headers = {"mtime": "1.000000000"}
        tar.addfile(last)
    set_free_inodes(monkeypatch, 1_000_000, members + 80)
    with pytest.raises(EmulatorError, match=rf"deep\.tar\.gz needs [0-9]+ inodes .* has {members + 80} left"):
        restore(tmp_path / "other", deep, None)


@pytest.mark.parametrize("total", [0, 1_000_000])
def test_archives_that_fit_are_imported(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int
) -> None:
    set_free_inodes(monkeypatch, total, count_members(archive) + 9 if total else 0)
    assert "10 objects" in restore(tmp_path / "other", archive, None)


def test_each_folder_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_free_inodes(monkeypatch, 10, 7)
    space = FreeSpace(tmp_path, "x")
    for name in ("gcs/b/", "gcs/b/a/x", "gcs/b/a/y", "gcs/b/c/", "gcs/b/c"):
        space.take(name)
    space.take("gcs/b/c/z")
    with pytest.raises(EmulatorError, match="needs 8 inodes"):
        space.take("gcs/b/d")
