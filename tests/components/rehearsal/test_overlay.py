"""Buckets of a run that show those of a stack's emulator: by a mount of Linux's, and by copies."""

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from vertex_training.rehearsal import overlay
from vertex_training.rehearsal.inputs import Inputs
from vertex_training.rehearsal.runner import RunRefused

from vertex_emulator.usage import touched

Show = Callable[[Path], Path]


@pytest.fixture(params=["mounted", "copied"])
def show(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Show]:
    """Shows the buckets of a folder in a new one; without the right to mount, both ways are the same."""
    if request.param == "copied":
        monkeypatch.setattr(overlay, "_mounted", lambda *_: False)
    buckets = tmp_path / "run, of: mine" / "gcs"
    buckets.mkdir(parents=True)
    lines: list[str] = []

    def shown(held: Path) -> Path:
        overlay.show(held, buckets, lines.append)
        assert os.path.ismount(buckets) == (request.param == "mounted" and os.geteuid() == 0 and held.exists())
        return buckets

    yield shown
    overlay.hide(buckets)
    assert not os.path.ismount(buckets)
    assert lines == []


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """What a stack's emulator holds, an hour old."""
    folder = tmp_path / "data, of: mine" / "gcs" / "acme-data" / "train"
    folder.mkdir(parents=True)
    for name in ("a.csv", "b.csv", "c.csv"):
        (folder / name).write_text("1,2\n")
        os.utime(folder / name, (time.time() - 3600,) * 2)
    return folder.parent.parent


def content(folder: Path) -> dict[str, object]:
    """All that is below a folder, with its times and modes."""
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def test_all_is_there_and_stays_as_it_is(show: Show, held: Path) -> None:
    before = content(held)
    train = show(held) / "acme-data" / "train"
    assert sorted(each.name for each in train.iterdir()) == ["a.csv", "b.csv", "c.csv"]
    with (train / "a.csv").open("r+") as file:
        file.write("other")
    (train / "b.csv").unlink()
    (train / "c.csv").rename(train / "moved.csv")
    (train / "new.csv").write_text("new")
    train.rename(train.with_name("renamed"))
    assert {each.name: each.read_text() for each in train.with_name("renamed").iterdir()} == {
        "a.csv": "other",
        "moved.csv": "1,2\n",
        "new.csv": "new",
    }
    shutil.rmtree(train.parent)
    assert content(held) == before


def test_a_bucket_that_is_read_is_known(show: Show, held: Path) -> None:
    buckets, since = show(held), time.time_ns() - 10**9  # the kernel's clock for files ticks slowly
    assert not touched(buckets, since, time.time_ns())
    (buckets / "acme-data" / "train" / "b.csv").read_text()
    assert [*touched(buckets, since, time.time_ns() + 10**9)] == ["acme-data"]


def test_of_many_files_each_bucket_has_some_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "_MAX_MARKED", 10)
    monkeypatch.setattr(overlay, "_MIN_MARKED", 3)
    for bucket in ("one", "two", "three", "four"):
        for name in range(5):
            (file := tmp_path / bucket / f"in-{name}" / "x").parent.mkdir(parents=True)
            file.touch()
            os.utime(file, (2, 1))
    overlay._mark_unread(tmp_path)
    marked = [path.parts[-3] for path in tmp_path.rglob("x") if path.stat().st_atime == 1]
    assert sorted(marked) == sorted(["one", "two", "three", "four"] * 3)


def test_a_mount_copies_no_content(held: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (held / "acme-data" / "large").open("wb") as file:
        file.write(bytes(8 << 20))
    buckets = tmp_path / "run" / "gcs"
    buckets.mkdir(parents=True)
    monkeypatch.setattr(overlay, "_Copy", None if os.geteuid() == 0 else overlay._Copy)
    overlay.show(held, buckets, print)
    try:
        assert (buckets / "acme-data" / "large").stat().st_size == 8 << 20
        upper = (tmp_path / "run" / "gcs-upperdir").rglob("*")
        assert sum(each.lstat().st_blocks * 512 for each in upper if each.is_file()) < 1 << 20
    finally:
        overlay.hide(buckets)


@pytest.mark.parametrize("link", ["data, of: mine/gcs", "data, of: mine/gcs/acme-link", "data, of: mine/gcs/acme/file"])
def test_no_link_brings_other_files(show: Show, tmp_path: Path, link: str) -> None:
    (tmp_path / "mine" / "acme-keys").mkdir(parents=True)
    (tmp_path / "mine" / "acme-keys" / "key").write_text("canary")
    place, targets = tmp_path / link, {"gcs": "mine", "acme-link": "mine/acme-keys", "file": "mine/acme-keys/key"}
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / targets[place.name])
    (tmp_path / "data, of: mine" / "secrets.json").write_text("canary")
    try:
        buckets = show(tmp_path / "data, of: mine" / "gcs")
    except OSError as error:
        assert link.endswith("gcs") and error.filename
        return
    for folder, _, names in os.walk(buckets):
        assert [name for name in names if stat.S_ISREG(Path(folder, name).lstat().st_mode)] == []


def test_a_data_folder_that_a_link_leads_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VERTEX_EMULATOR_DATA", raising=False)
    (tmp_path / "other" / "gcs").mkdir(parents=True)
    (tmp_path / ".emulator").symlink_to("other")
    with pytest.raises(RunRefused, match=r"\.emulator: is a link, which may lead anywhere; remove it, or "):
        Inputs.of(None, is_without=False)
    assert Inputs.of(None, is_without=True).holds is None
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path / ".emulator"))
    assert Inputs.of(None, is_without=False).holds == tmp_path / ".emulator" / "gcs"


def test_without_an_emulator_buckets_are_empty(show: Show, tmp_path: Path) -> None:
    assert [*show(tmp_path / "none").iterdir()] == []


def test_a_copy_that_does_not_fit_is_refused(held: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "_mounted", lambda *_: False)
    with (held / "acme-data" / "holes").open("wb") as file:
        file.truncate(1 << 42)
    (tmp_path / "run").mkdir()
    with pytest.raises(RunRefused, match=r"/gcs: has 4398.0 GB, and there is room for .* GB; give --no-inputs"):
        Inputs("", None, held).put(tmp_path / "run" / "gcs", print)
    assert [*(tmp_path / "run" / "gcs").iterdir()] == []


def test_what_a_copy_leaves_out_is_said(held: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "_TOLD_BYTES", 8)
    buckets, lines = tmp_path / "copy", list[str]()
    buckets.mkdir()
    os.mkfifo(held / "acme-data" / "pipe")
    (held / "acme-data" / "latest").symlink_to("train/a.csv")
    deep = held / "acme-data"
    for _ in range(150):
        deep = deep / "d"
        deep.mkdir()
    opened = os.open

    def refuse(path: str, *args: int, **options: int) -> int:
        if path == "b.csv":
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *args, **options)

    monkeypatch.setattr(overlay, "_mounted", lambda *_: False)
    monkeypatch.setattr(os, "open", refuse)
    overlay.show(held, buckets, lines.append)
    monkeypatch.undo()
    assert lines == [
        f"copying 12 B of {held}; --no-inputs leaves them out",
        f"1 files of {held} cannot be read, and are left out",
    ]
    copied = {each.name for each in (buckets / "acme-data").iterdir()}
    assert copied == {"train", "latest", "d"}
    assert (buckets / "acme-data" / "latest").readlink() == Path("train/a.csv")
    assert (buckets / "acme-data" / "train" / "a.csv").stat().st_mode & 0o777 == 0o666


def test_content_comes_between_file_systems(held: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> int:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(overlay, "_mounted", lambda *_: False)
    monkeypatch.setattr(os, "copy_file_range", refuse, raising=False)
    (tmp_path / "copy").mkdir()
    overlay.show(held, tmp_path / "copy", print)
    assert content(held).keys() == content(tmp_path / "copy").keys()
    assert (tmp_path / "copy" / "acme-data" / "train" / "a.csv").read_text() == "1,2\n"
