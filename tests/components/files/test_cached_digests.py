"""Digests of files that are remembered: never another than what the file holds now."""

import hashlib
import json
import os
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
from vertex_training.files import cache_files, cached_digests, stat_signatures
from vertex_training.files.cached_digests import get_cached_or_compute_file_digests

from tests.components.files.unnoticeable_edits import another_inode, same_size_and_time

ROOT = Path(__file__).parents[3]
PATHS = [f"part/{index:03}" for index in range(cached_digests.MAX_UNCACHED_FILES + 10)]
FIRST, SECOND = PATHS[:2]


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(stat_signatures, "STABLE_AFTER_NS", 0)
    return tmp_path / "cache" / "vertex-training" / "digests"


@pytest.fixture
def folder(tmp_path: Path, cache_folder: Path) -> Path:
    """A folder that is too large not to be remembered, with a minute on its files."""
    folder = tmp_path / "context"
    (folder / "part").mkdir(parents=True)
    for path in PATHS:
        (folder / path).write_text(f"held by {path}")
        os.utime(folder / path, (1_600_000_000, 1_600_000_000))
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read."""
    names: list[str] = []
    really = cached_digests._compute_signature_and_digest

    def noted(file: str) -> object:
        names.append(Path(file).name)
        return really(file)

    monkeypatch.setattr(cached_digests, "_compute_signature_and_digest", noted)
    return names


def true_digests(folder: Path, paths: list[str] = PATHS) -> dict[str, str]:
    """By another way."""

    def one(file: Path) -> str:
        if file.is_symlink():
            return "link:" + hashlib.sha256(str(file.readlink()).encode()).hexdigest()
        return "x:" * os.access(file, os.X_OK) + hashlib.sha256(file.read_bytes()).hexdigest()

    return {path: one(folder / path) for path in paths}


def test_files_that_do_not_change_are_read_once(folder: Path, read: list[str]) -> None:
    assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder)
    assert len(read) == len(PATHS)
    read.clear()
    assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder)
    assert list(get_cached_or_compute_file_digests(folder, PATHS)) == PATHS
    assert read == []


def link(file: Path) -> None:
    file.unlink()
    file.symlink_to("../Dockerfile")


CHANGES: dict[str, Callable[[Path], object]] = {
    "other bytes": lambda file: file.write_text("other"),
    "other bytes, of the same size at the same time": same_size_and_time,
    "other bytes, of an older time": lambda file: [file.write_text("other"), os.utime(file, (1_500_000_000,) * 2)],
    "another file of the same size and time": another_inode,
    "an executable bit": lambda file: file.chmod(0o755),
    "a link in its place": link,
    "no bytes": lambda file: os.truncate(file, 0),
    "the bytes of its neighbour": lambda file: (
        (file.parent / "001").replace(file) and (file.parent / "001").write_text("new")
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_detected(folder: Path, read: list[str], change: str) -> None:
    before = get_cached_or_compute_file_digests(folder, PATHS)
    CHANGES[change](folder / FIRST)
    read.clear()
    assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder) != before
    assert len(read) <= 2
    assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder)


def test_times_alone_change_no_digest(folder: Path) -> None:
    before = get_cached_or_compute_file_digests(folder, PATHS)
    (folder / FIRST).touch()
    assert get_cached_or_compute_file_digests(folder, PATHS) == before


def test_a_recently_changed_file_is_read_again(folder: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # Its next change may bear the same times.
    get_cached_or_compute_file_digests(folder, PATHS)
    monkeypatch.setattr(stat_signatures, "STABLE_AFTER_NS", 3600 * 10**9)
    (folder / FIRST).write_text("other")
    for _ in range(2):
        read.clear()
        assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder)
        assert read == [Path(FIRST).name]


def test_a_file_from_the_future_is_read_again(folder: Path, read: list[str]) -> None:
    # A clock that was ahead, or is behind now, says nothing about which change came first.
    os.utime(folder / FIRST, (4_000_000_000, 4_000_000_000))
    get_cached_or_compute_file_digests(folder, PATHS)
    read.clear()
    get_cached_or_compute_file_digests(folder, PATHS)
    assert read == [Path(FIRST).name]


@pytest.mark.parametrize("seconds", [-(10**10), 0, 10**10])
def test_a_file_may_have_any_time(folder: Path, seconds: int) -> None:
    os.utime(folder / FIRST, (seconds, seconds))
    for _ in range(2):
        assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder)


def test_a_file_changed_while_read_is_not_cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.read

    def read(descriptor: int, length: int) -> bytes:
        block = really(descriptor, length)
        if not block and os.fstat(descriptor).st_ino == inode:
            (folder / FIRST).write_text("other")
        return block

    # As if the file's own machine had a clock that is behind.
    monkeypatch.setattr(stat_signatures, "STABLE_AFTER_NS", -(10**12))
    inode = (folder / FIRST).stat().st_ino
    monkeypatch.setattr(cached_digests.os, "read", read)
    before = get_cached_or_compute_file_digests(folder, PATHS)
    monkeypatch.setattr(cached_digests.os, "read", really)
    assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder) != before


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing in it": lambda held: b"",
    "its end missing": lambda held: held[:-100],
    "zeros at its end": lambda held: held[:-100] + bytes(100),
    "a digit of a digest": lambda held: held.replace(true, b"0" * 64),
    "no text": lambda held: bytes(range(256)),
    "a list": lambda held: b"[]",
}
true = hashlib.sha256(f"held by {FIRST}".encode()).hexdigest().encode()


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_is_ignored(folder: Path, cache_folder: Path, damage: str) -> None:
    get_cached_or_compute_file_digests(folder, PATHS)
    [file] = cache_folder.iterdir()
    damaged = DAMAGE[damage](file.read_bytes())
    assert damaged != file.read_bytes()
    file.write_bytes(damaged)
    assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder)
    assert file.read_bytes() != damaged


def test_a_cache_of_an_earlier_release_is_ignored(folder: Path, cache_folder: Path) -> None:
    # As they wrote it, and where.
    status = (folder / FIRST).stat()
    fields = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode)
    content = json.dumps({FIRST: "0" * 64}).encode() + b"\n" + array("q", fields).tobytes()
    cache_folder.mkdir(parents=True)
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
    (cache_folder / name).write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    for _ in range(2):
        assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder)


def test_an_unwritable_cache_is_ignored(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder)


def test_files_of_another_image_stay_cached(folder: Path, cache_folder: Path, read: list[str]) -> None:
    one, other = PATHS[:-1], PATHS[1:]
    for paths in (one, other):
        get_cached_or_compute_file_digests(folder, paths)
    read.clear()
    assert get_cached_or_compute_file_digests(folder, one) == true_digests(folder, one)
    assert get_cached_or_compute_file_digests(folder, other) == true_digests(folder, other)
    assert read == []
    (folder / FIRST).unlink()
    (folder / SECOND).write_text("other")
    get_cached_or_compute_file_digests(folder, other)
    [file] = cache_folder.iterdir()
    assert FIRST.encode() not in file.read_bytes()


def test_the_oldest_cache_files_are_deleted(
    folder: Path, cache_folder: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_files, "MAX_FILES", 2)
    for name in ("two", "three", "four"):
        folder = folder.rename(folder.with_name(name))
        get_cached_or_compute_file_digests(folder, PATHS)
    assert len(list(cache_folder.iterdir())) == 2
    read.clear()
    get_cached_or_compute_file_digests(folder, PATHS)
    assert read == []


def test_several_processes_can_share_the_cache(folder: Path, cache_folder: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from vertex_training.files import cached_digests, stat_signatures
stat_signatures.STABLE_AFTER_NS = 0
for _ in range(20):
    for file in Path({str(cache_folder)!r}).glob("?" * 32):
        file.unlink(missing_ok=True)
    found = cached_digests.get_cached_or_compute_file_digests(Path(sys.argv[1]), {PATHS!r})
    assert found == {true_digests(folder)!r}
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, str(folder)]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[1] for process in processes] == [b"", b"", b""]
    assert get_cached_or_compute_file_digests(folder, PATHS) == true_digests(folder)
    assert len(list(cache_folder.iterdir())) == 1


def test_small_folders_leave_nothing_behind(folder: Path, cache_folder: Path) -> None:
    assert get_cached_or_compute_file_digests(folder, PATHS[:10]) == true_digests(folder, PATHS[:10])
    assert not cache_folder.exists()
