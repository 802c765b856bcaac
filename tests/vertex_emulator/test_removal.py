"""The removal of folders, whatever containers have made of them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.pruning import clear
from vertex_emulator.removal import remove_tree


def nest_folders(folder: Path, depth: int = 1_500, name: str = "d") -> None:
    """Nest folders in a folder, more than Python recurses by default, with a file in the last one."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=descriptor)
        inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("last", os.O_CREAT, dir_fd=descriptor))
    os.close(descriptor)


def remove_while(folder: Path, monkeypatch: pytest.MonkeyPatch, before_unlink: Callable[[str], object]) -> OSError:
    """Remove a folder, and return the error with which that ends; `before_unlink` gets the name of each file in it."""
    unlink = os.unlink

    def unlink_later(name: str, **options: int) -> None:
        before_unlink(name)
        unlink(name, **options)

    with monkeypatch.context() as patch, pytest.raises(OSError) as caught:
        patch.setattr(os, "unlink", unlink_later)
        remove_tree(folder)
    return caught.value


def test_folders_that_nest_without_end_are_removed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "link").symlink_to(tmp_path / "kept")
    nest_folders(folder / "a" / "b", name="d" * 200)
    remove_tree(folder)
    assert [*tmp_path.rglob("*")] == [tmp_path / "kept", tmp_path / "kept" / "file"]


def test_what_cannot_be_removed_keeps_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/b/closed", "a/b/file", "a/c/file", "file"):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def deny(name: str) -> None:
        if name == "closed":
            raise PermissionError(1, "denied", name)

    error = remove_while(tmp_path / "folder", monkeypatch, deny)
    assert (error.filename, error.strerror) == (str(tmp_path / "folder" / "a" / "b" / "closed"), "denied")
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["folder", "a", "b", "closed"]


def test_moved_folders_lead_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner, other = tmp_path / "folder" / "a" / "b", tmp_path / "other"
    for folder in (inner, other / "kept"):
        folder.mkdir(parents=True)
    (inner / "file").touch()
    error = remove_while(tmp_path / "folder", monkeypatch, lambda _: inner.rename(other / "b"))
    assert error.filename == str(inner)
    assert sorted(path.name for path in other.iterdir()) == ["b", "kept"]


@pytest.mark.parametrize(
    "remove",
    [
        lambda data: data.remove_job("1"),
        lambda data: clear(data.root),
    ],
    ids=["job", "reset"],
)
def test_trial_folders_may_nest_without_end(tmp_path: Path, remove: Callable[[DataFolder], object]) -> None:
    data = DataFolder.open(tmp_path / "data")
    nest_folders(data.create_metric_folder("1"))
    remove(data)
    assert not (data.trials / "1").exists()
