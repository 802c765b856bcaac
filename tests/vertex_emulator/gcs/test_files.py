"""Access to buckets that containers change at the same time."""

import ctypes
import errno
import fcntl
import os
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.vertex_emulator.gcs.served import ServedStorage
from tests.vertex_emulator.other_user import NOBODY, needs_root, reachable_folder
from tests.vertex_emulator.running import PATIENCE_SECONDS
from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.files import ROOT, BucketTree, split_uri


@pytest.fixture
def tree(tmp_path: Path) -> BucketTree:
    (tmp_path / "gcs").mkdir()
    return BucketTree(tmp_path / "gcs")


def count_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def modes(*folders: Path) -> list[int]:
    return [stat.S_IMODE(folder.stat().st_mode) for folder in folders]


@contextmanager
def exchanged(first: Path, second: Path) -> Iterator[None]:
    """Exchange two paths again and again while the block runs, as a container can."""
    ended = threading.Event()
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE

    def repeat() -> None:
        rename = ctypes.CDLL(None).renameat2
        while not ended.is_set():
            assert rename(here, bytes(first), here, bytes(second), exchange) == 0

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_uri_is_path_below_its_bucket(tree: BucketTree) -> None:
    assert split_uri("gs://my-bucket/run/1/") == ("my-bucket", "run", "1")
    assert tree.path("gs://my-bucket/run/1/") == tree.root / "my-bucket" / "run" / "1"
    assert tree.path(ROOT) == tree.root


def test_made_folders_are_open_to_every_user(tree: BucketTree) -> None:
    tree.mkdir("gs://my-bucket/run/model/")
    made = tree.root / "my-bucket/run/model"
    assert modes(made, made.parent, made.parent.parent) == [0o777] * 3


def test_folders_left_private_are_opened(tree: BucketTree) -> None:
    made = tree.root / "my-bucket/run/model"
    made.parent.mkdir(parents=True, mode=0o700)
    for _ in range(2):
        tree.mkdir("gs://my-bucket/run/model/")
        assert modes(made, made.parent, made.parent.parent) == [0o777] * 3


def test_a_file_comes_from_another_file_system(
    tree: BucketTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, replace = tmp_path / "new", os.replace
    new.write_bytes(b"42")
    new.chmod(0o666)
    os.utime(new, ns=(1, 1_234_567_891))

    def refuse(source: Path, name: str, **options: int) -> None:
        if source == new:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        replace(source, name, **options)

    monkeypatch.setattr(os, "replace", refuse)
    tree.move_in(new, "gs://my-bucket/run/x")
    found = (tree.root / "my-bucket/run/x").stat()
    assert (found.st_size, found.st_mtime_ns, stat.S_IMODE(found.st_mode)) == (2, 1_234_567_891, 0o666)
    assert not new.exists() and [each.name for each in tree.root.iterdir()] == ["my-bucket"]


@pytest.mark.parametrize("uri", ["gs://my-bucket/run", "gs://my-bucket/run/model"])
def test_file_in_place_of_folder_is_named(tree: BucketTree, uri: str) -> None:
    (tree.root / "my-bucket").mkdir()
    (tree.root / "my-bucket" / "run").touch()
    with pytest.raises(InvalidBucketUri, match="my-bucket/run is a file"):
        tree.mkdir(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "gs://",
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
        "gs://my-bucket/\udcff",
        f"gs://my-bucket/{'ä' * 128}",
        f"gs://my-bucket/{'a/' * 513}",
    ],
)
def test_invalid_uri_is_rejected_by_every_method(tree: BucketTree, uri: str) -> None:
    for method in (
        tree.check,
        tree.open,
        tree.mkdir,
        tree.unlink,
        tree.rmdir,
    ):
        with pytest.raises(InvalidBucketUri):
            method(uri)
    assert list(tree.root.iterdir()) == []


def test_link_is_followed_by_no_method(tree: BucketTree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    (outside / "x").write_text("of the host")
    (tree.root / "my-bucket").mkdir()
    (tree.root / "my-bucket" / "out").symlink_to(outside)
    (tree.root / "my-bucket" / "inside").symlink_to(tree.root / "my-bucket")
    new = tmp_path / "new"
    new.touch()
    for uri in ("gs://my-bucket/out/x", "gs://my-bucket/inside/out/x"):
        for method in (
            tree.check,
            tree.stat,
            tree.open,
            tree.mkdir,
            tree.unlink,
            tree.rmdir,
            lambda uri: tree.move_in(new, uri),
            lambda uri: tree.scan(uri).__enter__(),
        ):
            with pytest.raises(InvalidBucketUri, match="symbolic link"):
                method(uri)
    assert [path.name for path in outside.iterdir()] == ["x"]
    assert modes(outside) == [0o700]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two paths")
def test_swapped_folder_leads_nowhere_else(tree: BucketTree, tmp_path: Path) -> None:
    outside, new = tmp_path / "outside", tmp_path / "new"
    (outside / "model").mkdir(parents=True)
    outside.chmod(0o700)
    (outside / "model").chmod(0o700)
    (outside / "secret").write_text("of the host")
    bucket = tree.root / "my-bucket"
    (bucket / "run").mkdir(parents=True)
    (bucket / "link").symlink_to(outside)

    attempts = refused = 0
    deadline = time.monotonic() + PATIENCE_SECONDS
    with exchanged(bucket / "run", bucket / "link"):
        while attempts < 2000 or (not refused and time.monotonic() < deadline):
            attempts += 1
            try:
                tree.mkdir("gs://my-bucket/run/model")
                new.touch()
                tree.move_in(new, "gs://my-bucket/run/new")
                tree.unlink("gs://my-bucket/run/new")
                tree.open("gs://my-bucket/run/secret").close()
            except InvalidBucketUri:
                refused += 1
            except FileNotFoundError:
                continue
            else:
                raise AssertionError("it has opened the file outside")
    assert refused
    assert modes(outside, outside / "model") == [0o700, 0o700]
    assert sorted(path.name for path in outside.iterdir()) == ["model", "secret"]


def test_only_regular_files_are_opened(tree: BucketTree) -> None:
    bucket = tree.root / "my-bucket"
    bucket.mkdir()
    os.mkfifo(bucket / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(bucket / "socket"))
    for name, kind in (("pipe", "a named pipe"), ("socket", "a socket"), ("", "a folder")):
        with pytest.raises(FileNotFoundError, match=f"it is {kind}, not a regular file"):
            tree.open(f"gs://my-bucket/{name}")


def test_no_descriptor_stays_open(tree: BucketTree) -> None:
    (tree.root / "my-bucket").mkdir()
    (tree.root / "my-bucket/link").symlink_to("/etc")
    os.mkfifo(tree.root / "my-bucket/pipe")
    before = count_descriptors()
    for name in ("link", "pipe", "none", "pipe/x", "a/b"):
        with suppress(InvalidBucketUri, OSError):
            tree.open(f"gs://my-bucket/{name}")
        with suppress(InvalidBucketUri, OSError):
            tree.mkdir(f"gs://my-bucket/{name}")
        with suppress(InvalidBucketUri, OSError), tree.scan(f"gs://my-bucket/{name}"):
            pass
    assert count_descriptors() == before


@pytest.fixture
def ordinary_user() -> Iterator[BucketTree]:
    """Run as an ordinary user, in a bucket folder where a container's root has closed a folder."""
    with reachable_folder(0o777) as folder:
        closed = folder / "my-bucket/closed"
        closed.mkdir(parents=True)
        (closed / "model").touch()
        closed.parent.chmod(0o777)
        closed.chmod(0o700)
        os.seteuid(NOBODY)
        try:
            yield BucketTree(folder)
        finally:
            os.seteuid(0)


@needs_root
def test_closed_folder_is_permission_error(ordinary_user: BucketTree) -> None:
    tree, uri = ordinary_user, "gs://my-bucket/closed/model"
    for method in (tree.stat, tree.open, tree.mkdir, tree.unlink):
        with pytest.raises(PermissionError):
            method(uri)
    tree.check(uri)
    assert tree.has_objects("gs://my-bucket/closed")
    assert [*tree.names("my-bucket", folders_as_prefixes=True)] == ["closed/"]
    tree.mkdir("gs://my-bucket/open/model")
    assert modes(tree.root / "my-bucket/open/model") == [0o777]


def test_folders_that_vanish_meanwhile_are_made_again(tree: BucketTree, monkeypatch: pytest.MonkeyPatch) -> None:
    make_folder, removals = os.mkdir, iter(range(7))

    def make_and_lose(name: str, *, dir_fd: int) -> None:
        make_folder(name, dir_fd=dir_fd)
        if name == "model" and next(removals, None) is not None:
            os.rmdir(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", make_and_lose)
    tree.mkdir("gs://my-bucket/run/model")
    assert (tree.root / "my-bucket/run/model").is_dir()
    assert next(removals, None) is None


def test_folders_that_always_vanish_are_one_error(tree: BucketTree, monkeypatch: pytest.MonkeyPatch) -> None:
    new = tree.root.parent / "new"
    new.touch()
    monkeypatch.setattr(os, "mkdir", lambda name, *, dir_fd: None)
    for create in (tree.mkdir, lambda uri: tree.move_in(new, uri)):
        with pytest.raises(InvalidBucketUri, match='run/new" cannot be created: its folders are removed'):
            create("gs://my-bucket/run/new")
    assert new.exists()


def test_a_lease_keeps_nobody_waiting(tree: BucketTree) -> None:
    """Linux lets an opener wait for 45 s for a lease that its holder keeps, and a container can take it again."""
    path = tree.root / "my-bucket" / "leased"
    path.parent.mkdir()
    path.touch()
    (tree.root.parent / "uploads").mkdir()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        fcntl.fcntl(os.open(path, os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
        os.write(writer, b"held")
        signal.pause()
    try:
        assert os.read(reader, 4) == b"held"
        with pytest.raises(BlockingIOError):
            tree.open("gs://my-bucket/leased")
        with ServedStorage(tree.root.parent) as storage:
            reply = storage.ask("GET", "/storage/v1/b/my-bucket/o/leased?alt=media")
        assert (reply.status_code, reply.json()["error"]["status"]) == (503, "UNAVAILABLE")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)
    tree.open("gs://my-bucket/leased").close()
