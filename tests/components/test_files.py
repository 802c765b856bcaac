"""Digests of files that are cached: never another than what the files hold now, one by one and as a whole."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from vertex_training import files
from vertex_training.files import MAX_UNCACHED_FILES, digests
from vertex_training.images.autopackage import PackageContext
from vertex_training.images.context import BuildContext, DockerfileContext
from vertex_training.schema.shapes import Package

ROOT = Path(__file__).parents[2]
PATHS = [f"part/{index:03}" for index in range(files.MAX_UNCACHED_FILES + 10)]
FIRST, SECOND = PATHS[:2]


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "STABLE_AFTER_NS", 0)
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
    really = files._hash

    def noted(file: str) -> object:
        names.append(Path(file).name)
        return really(file)

    monkeypatch.setattr(files, "_hash", noted)
    return names


def true_digests(folder: Path, paths: list[str] = PATHS) -> dict[str, str]:
    """By another way."""

    def one(file: Path) -> str:
        if file.is_symlink():
            return "link:" + hashlib.sha256(str(file.readlink()).encode()).hexdigest()
        return "x:" * os.access(file, os.X_OK) + hashlib.sha256(file.read_bytes()).hexdigest()

    return {path: one(folder / path) for path in paths}


def test_files_that_do_not_change_are_read_once(folder: Path, read: list[str]) -> None:
    assert digests(folder, PATHS) == true_digests(folder)
    assert len(read) == len(PATHS)
    read.clear()
    assert digests(folder, PATHS) == true_digests(folder)
    assert list(digests(folder, PATHS)) == PATHS
    assert read == []


def same_size_and_time(file: Path) -> None:
    before = file.stat()
    file.write_text(file.read_text().replace("held", "HELD"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def another_inode(file: Path) -> None:
    other = file.with_name("other")
    other.write_text(file.read_text().replace("held", "HELD"))
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.replace(file)


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
    before = digests(folder, PATHS)
    CHANGES[change](folder / FIRST)
    read.clear()
    assert digests(folder, PATHS) == true_digests(folder) != before
    assert len(read) <= 2
    assert digests(folder, PATHS) == true_digests(folder)


def test_times_alone_change_no_digest(folder: Path) -> None:
    before = digests(folder, PATHS)
    (folder / FIRST).touch()
    assert digests(folder, PATHS) == before


def test_a_recently_changed_file_is_read_again(folder: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # Its next change may bear the same times.
    digests(folder, PATHS)
    monkeypatch.setattr(files, "STABLE_AFTER_NS", 3600 * 10**9)
    (folder / FIRST).write_text("other")
    for _ in range(2):
        read.clear()
        assert digests(folder, PATHS) == true_digests(folder)
        assert read == [Path(FIRST).name]


def test_a_file_from_the_future_is_read_again(folder: Path, read: list[str]) -> None:
    # A clock that was ahead, or is behind now, says nothing about which change came first.
    os.utime(folder / FIRST, (4_000_000_000, 4_000_000_000))
    digests(folder, PATHS)
    read.clear()
    digests(folder, PATHS)
    assert read == [Path(FIRST).name]


@pytest.mark.parametrize("seconds", [-(10**10), 0, 10**10])
def test_a_file_may_have_any_time(folder: Path, seconds: int) -> None:
    os.utime(folder / FIRST, (seconds, seconds))
    for _ in range(2):
        assert digests(folder, PATHS) == true_digests(folder)


def test_files_that_change_meanwhile_are_not_cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.read

    def read(descriptor: int, length: int) -> bytes:
        block = really(descriptor, length)
        if not block and os.fstat(descriptor).st_ino == inode:
            (folder / FIRST).write_text("other")
        return block

    # As if the file's own machine had a clock that is behind.
    monkeypatch.setattr(files, "STABLE_AFTER_NS", -(10**12))
    inode = (folder / FIRST).stat().st_ino
    monkeypatch.setattr(files.os, "read", read)
    before = digests(folder, PATHS)
    monkeypatch.setattr(files.os, "read", really)
    assert digests(folder, PATHS) == true_digests(folder) != before


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
    digests(folder, PATHS)
    [file] = cache_folder.iterdir()
    damaged = DAMAGE[damage](file.read_bytes())
    assert damaged != file.read_bytes()
    file.write_bytes(damaged)
    assert digests(folder, PATHS) == true_digests(folder)
    assert file.read_bytes() != damaged


def test_caches_of_earlier_releases_are_ignored(folder: Path, cache_folder: Path) -> None:
    # As they wrote it, and where.
    status = (folder / FIRST).stat()
    fields = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode)
    content = json.dumps({FIRST: "0" * 64}).encode() + b"\n" + array("q", fields).tobytes()
    cache_folder.mkdir(parents=True)
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
    (cache_folder / name).write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    for _ in range(2):
        assert digests(folder, PATHS) == true_digests(folder)


def test_an_unwritable_cache_is_ignored(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        assert digests(folder, PATHS) == true_digests(folder)


def test_files_of_another_image_stay_cached(folder: Path, cache_folder: Path, read: list[str]) -> None:
    one, other = PATHS[:-1], PATHS[1:]
    for paths in (one, other):
        digests(folder, paths)
    read.clear()
    assert digests(folder, one) == true_digests(folder, one)
    assert digests(folder, other) == true_digests(folder, other)
    assert read == []
    (folder / FIRST).unlink()
    (folder / SECOND).write_text("other")
    digests(folder, other)
    [file] = cache_folder.iterdir()
    assert FIRST.encode() not in file.read_bytes()


def test_the_oldest_cache_files_are_deleted(
    folder: Path, cache_folder: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_CACHE_FILES", 2)
    for name in ("two", "three", "four"):
        folder = folder.rename(folder.with_name(name))
        digests(folder, PATHS)
    assert len(list(cache_folder.iterdir())) == 2
    read.clear()
    digests(folder, PATHS)
    assert read == []


def test_several_processes_can_share_the_cache(folder: Path, cache_folder: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from vertex_training import files
files.STABLE_AFTER_NS = 0
for _ in range(20):
    for file in Path({str(cache_folder)!r}).glob("?" * 32):
        file.unlink(missing_ok=True)
    found = files.digests(Path(sys.argv[1]), {PATHS!r})
    assert found == {true_digests(folder)!r}
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, str(folder)]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[1] for process in processes] == [b"", b"", b""]
    assert digests(folder, PATHS) == true_digests(folder)
    assert len(list(cache_folder.iterdir())) == 1


def test_small_folders_leave_nothing_behind(folder: Path, cache_folder: Path) -> None:
    assert digests(folder, PATHS[:10]) == true_digests(folder, PATHS[:10])
    assert not cache_folder.exists()


Edit = Callable[[Path], object]
FEW_FILES = 20


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "STABLE_AFTER_NS", 0)
    monkeypatch.setattr(files, "MAX_UNCACHED_FILES", FEW_FILES)
    return tmp_path / "cache" / "vertex-training" / "contexts"


@pytest.fixture
def context(tmp_path: Path, cache: Path, request: pytest.FixtureRequest) -> BuildContext:
    """A context that is too large not to be remembered, with a minute on its files."""
    folder = tmp_path / "context"
    (folder / "part").mkdir(parents=True)
    for index in range(getattr(request, "param", FEW_FILES + 10)):
        (folder / "part" / f"{index:03}").write_text(f"held by {index}")
    (folder / "Dockerfile").write_text("FROM scratch\n")
    (folder / ".dockerignore").write_text("*.md\n")
    (folder / "notes.md").touch()
    (folder / "link").symlink_to("part/000")
    for file in folder.rglob("*"):
        os.utime(file, (1_600_000_000, 1_600_000_000), follow_symlinks=False)
    return DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each time that the digests of files were asked for."""
    calls: list[object] = []
    really = files.digests
    monkeypatch.setattr(
        files,
        "digests",
        lambda *given: calls.append(given) or really(*given),
    )
    return calls


def true_digest(context: BuildContext, scratch: Path) -> str:
    """That of a copy of which nothing is remembered."""
    copy = scratch / f"copy-{len(list(scratch.iterdir()))}"
    pipes = lambda at, names: [name for name in names if stat.S_ISFIFO(Path(at, name).lstat().st_mode)]  # noqa: E731
    shutil.copytree(context.folder, copy, symlinks=True, ignore=pipes)
    return replace(context, folder=copy)._compute_digest()


def test_an_unchanged_context_is_not_read_again(context: BuildContext, asked: list[object]) -> None:
    first = replace(context).digest
    assert len(asked) == 1
    assert replace(context).digest == first == context._compute_digest()
    assert len(asked) == 2, "by the check itself"


@pytest.mark.parametrize("context", [MAX_UNCACHED_FILES + 10], indirect=True)
def test_the_digest_of_a_large_context_is_stable(context: BuildContext) -> None:
    # Another digest would rebuild every image of every user.
    for _ in range(2):
        assert replace(context, build_args={"A": "1"}).tag == "5e4ffa911394cff1"


def swap_files(one: Path, other: Path) -> None:
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def replace_file(file: Path, put: Callable[[Path], object]) -> None:
    file.unlink()
    put(file)


EDITS: dict[str, Edit] = {
    "other bytes": lambda folder: (folder / "part/000").write_text("other"),
    "other bytes, of the same size at the same time": lambda folder: same_size_and_time(folder / "part/000"),
    "another file of the same size and time": lambda folder: another_inode(folder / "part/000"),
    "two files that swap their names": lambda folder: swap_files(folder / "part/000", folder / "part/001"),
    "an executable bit": lambda folder: (folder / "part/000").chmod(0o755),
    "a link in place of a file": lambda folder: replace_file(
        folder / "part/000", lambda file: file.symlink_to("../part/001")
    ),
    "a link that leads elsewhere": lambda folder: replace_file(
        folder / "link", lambda file: file.symlink_to("part/001")
    ),
    "a folder in place of a file": lambda folder: replace_file(
        folder / "part/000", lambda file: [file.mkdir(), (file / "below").touch()]
    ),
    "an empty folder in place of a file": lambda folder: replace_file(folder / "part/000", Path.mkdir),
    "a pipe in place of a file": lambda folder: replace_file(folder / "part/000", os.mkfifo),
    "a new file": lambda folder: (folder / "part/new").touch(),
    "a file less": lambda folder: (folder / "part/000").unlink(),
    "another name": lambda folder: (folder / "part/000").rename(folder / "part/other"),
    "another folder": lambda folder: (folder / "part").rename(folder / "parts"),
    "a file that is ignored from now on": lambda folder: (folder / ".dockerignore").write_text("*.md\npart/000\n"),
    "a file that is no longer ignored": lambda folder: (folder / ".dockerignore").write_text(""),
    "an ignore file of the Dockerfile's own": lambda folder: (folder / "Dockerfile.dockerignore").touch(),
    "the Dockerfile": lambda folder: (folder / "Dockerfile").write_text("FROM other\n"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_context_change_is_detected(context: BuildContext, tmp_path: Path, edit: str) -> None:
    before = replace(context).digest
    assert replace(context).digest == before
    EDITS[edit](context.folder)
    for _ in range(2):
        assert replace(context).digest == true_digest(context, tmp_path) != before


NO_EDITS: dict[str, Edit] = {
    "a time": lambda folder: (folder / "part/000").touch(),
    "an ignored file": lambda folder: (folder / "notes.md").write_text("other"),
    "who may read": lambda folder: (folder / "part/000").chmod(0o600),
    "a file that is written anew": lambda folder: (folder / "part/000").write_text("held by 0"),
    "an empty folder": lambda folder: (folder / "empty").mkdir(),
}


@pytest.mark.parametrize("edit", NO_EDITS)
def test_the_digest_ignores_what_the_image_ignores(context: BuildContext, edit: str) -> None:
    before = replace(context).digest
    NO_EDITS[edit](context.folder)
    for _ in range(2):
        assert replace(context).digest == before


def test_build_options_are_part_of_the_digest(context: BuildContext) -> None:
    (context.folder / "other.Dockerfile").write_text("FROM other\n")
    ways = [
        context,
        replace(context, build_args={"A": "1"}),
        replace(context, build_args={"A": "2"}),
        replace(context, target="slim"),
        replace(context, platform="linux/arm64"),
        replace(context, dockerfile="other.Dockerfile"),
        replace(context, secret_ids=("token",)),
    ]
    first = [replace(way).digest for way in ways]
    assert [replace(way).digest for way in ways] == first == [way._compute_digest() for way in ways]
    assert len({*first}) == len(ways)


def test_the_digest_covers_the_generated_dockerfile(context: BuildContext) -> None:
    package: Package = {"path": ".", "script": "part/000", "baseImage": "one"}
    one = PackageContext(context.folder, "Dockerfile", {}, None, "linux/amd64", package=package)
    other = replace(one, package={**package, "baseImage": "other"})
    for way in (one, other, replace(one, package={**package, "script": "Dockerfile"}), one):
        assert replace(way).digest == replace(way)._compute_digest()
    assert one.digest != other.digest


def test_a_recent_change_prevents_caching(context: BuildContext, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its next change may bear the same times.
    monkeypatch.setattr(files, "STABLE_AFTER_NS", 3600 * 10**9)
    (context.folder / "part/000").write_text("other")
    assert replace(context).digest
    assert not cache.exists()


def test_a_change_during_hashing_prevents_caching(
    context: BuildContext, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = BuildContext._compute_digest

    def digest(self: BuildContext) -> str:
        found = really(self)
        (context.folder / "part/000").write_text("other")
        return found

    # As if the file's own machine had a clock that is behind.
    monkeypatch.setattr(files, "STABLE_AFTER_NS", -(10**12))
    monkeypatch.setattr(BuildContext, "_compute_digest", digest)
    before = replace(context).digest
    monkeypatch.setattr(BuildContext, "_compute_digest", really)
    assert not cache.exists()
    assert replace(context).digest == true_digest(context, tmp_path) != before


CONTEXT_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing in it": lambda held: b"",
    "its end missing": lambda held: held[:-1],
    "another digit": lambda held: held[:-1] + (b"0" if held[-1:] != b"0" else b"1"),
    "no text": lambda held: bytes(range(256)),
}


@pytest.mark.parametrize("damage", CONTEXT_DAMAGE)
def test_a_damaged_cache_file_is_ignored(context: BuildContext, cache: Path, damage: str) -> None:
    before = replace(context).digest
    [file] = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(CONTEXT_DAMAGE[damage](whole))
    assert replace(context).digest == before
    assert file.read_bytes() == whole


def test_without_a_cache_the_digest_is_the_same(
    context: BuildContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        assert replace(context).digest == true_digest(context, tmp_path)
