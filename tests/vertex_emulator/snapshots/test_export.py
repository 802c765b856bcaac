"""What of buckets is in an archive beside objects: empty folders, and links that lead nowhere else."""

import os
from pathlib import Path

import pytest

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.lineage import CHILD
from vertex_emulator.errors import EmulatorError
from vertex_emulator.snapshots.archive import stays_in_bucket
from vertex_emulator.snapshots.export import export
from vertex_emulator.snapshots.restore import restore


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder `run` of a bucket in the data folder `data`, with a file in one of its folders."""
    folder = DataFolder.open(tmp_path / "data").buckets / "models" / "run"
    (folder / "ckpt-5").mkdir(parents=True)
    (folder / "ckpt-5" / "weights").write_text("42")
    return folder


def exported(tmp_path: Path) -> str:
    """What `export` says about an archive of `data`; `other` is a data folder from it."""
    lines = [*export(tmp_path / "data", tmp_path / "x.tar.gz", redacts_env=True)]
    restore(tmp_path / "other", tmp_path / "x.tar.gz", None)
    return "\n".join(lines)


def test_empty_folders_and_links_come_back(run: Path, tmp_path: Path) -> None:
    (run / "cache" / "empty").mkdir(parents=True)
    (run / "latest").symlink_to("ckpt-5")
    (run / "ckpt-5" / "best").symlink_to("../latest/weights")
    (run / "later").symlink_to("./ckpt-6/")
    (run / "ckpt-5" / "first").symlink_to("/gcs/models/run/ckpt-1")
    (run / "bucket").symlink_to("/gcs/models")
    assert "left out" not in exported(tmp_path)
    other = tmp_path / "other" / "gcs" / "models" / "run"
    assert list((other / "cache").iterdir()) == [other / "cache" / "empty"]
    assert [os.readlink(other / name) for name in ("latest", "later")] == ["ckpt-5", "./ckpt-6/"]  # noqa: PTH115
    assert os.readlink(other / "ckpt-5" / "first") == "../ckpt-1"  # noqa: PTH115
    assert os.readlink(other / "bucket") == ".."  # noqa: PTH115
    assert (other / "ckpt-5" / "best").read_text() == "42"
    assert {path.stat().st_mode & 0o777 for path in (other, other / "cache" / "empty")} == {0o777}


def test_omissions_are_named_with_their_reason(run: Path, tmp_path: Path) -> None:
    (run / "up").symlink_to("../../other-bucket")
    (run / "path\x1b").symlink_to("/gcs/models/../other")
    os.mkfifo(run / "pipe")
    (run / os.fsdecode(b"\xff")).touch()
    (run.parents[1] / "file-beside-buckets").touch()
    (run.parents[1] / "linked").symlink_to("models")
    lines = exported(tmp_path)
    for text in (
        "'gs://file-beside-buckets' (it is in no bucket)",
        "'gs://linked' (a link to 'models', out of its bucket)",
        r"'gs://models/run/path\x1b' (a link to '/gcs/models/../other', out of its bucket)",
        "'gs://models/run/pipe' (it is a named pipe, not a regular file)",
        "'gs://models/run/up' (a link to '../../other-bucket', out of its bucket) and 1 more",
    ):
        assert text in lines
    other = tmp_path / "other" / "gcs"
    assert [path.name for path in other.iterdir()] == ["models"]
    assert [path.name for path in (other / "models" / "run").iterdir()] == ["ckpt-5"]


def test_experiments_and_their_curves_come_back(run: Path, tmp_path: Path) -> None:
    parent = "projects/1/locations/r"
    series = f"{parent}/tensorboards/1/experiments/e/runs/r/timeSeries/1"
    database = Database(DataFolder.open(tmp_path / "data").database)
    with database.write() as transaction:
        for name in (series.rsplit("/", 2 * up)[0] for up in (3, 2, 1, 0)):
            board = transaction.tensorboards.add(name, {"displayName": "board"})
        assert board is not None
        transaction.tensorboards.write(board, [{"step": 1, "scalar": {"value": 0.5}}])
        store = f"{parent}/metadataStores/default"
        metadata = {"a": [], "b": None}
        fields = [(store, {}), (f"{store}/contexts/e", {}), (f"{store}/contexts/e-r", {"metadata": metadata})]
        _, outer, inner = (transaction.lineage.add(*each) for each in fields)
        assert outer is not None and inner is not None
        transaction.lineage.connect(outer, inner, CHILD)
    database.close()
    assert "it has none" not in exported(tmp_path)
    database = Database(DataFolder.open(tmp_path / "other").database)
    with database.read() as transaction:
        assert [each.id for each in transaction.lineage.of(f"{store}/contexts", inside=outer.name)] == ["e-r"]
        found = transaction.lineage.get(inner.name)
        assert found is not None and (found.spec, found.etag) == ({"metadata": metadata}, inner.etag)
        assert transaction.tensorboards.points(board) == [{"step": 1, "scalar": {"value": 0.5}}]
    database.close()
    with pytest.raises(EmulatorError, match="has tensorboards and experiments and buckets"):
        restore(tmp_path / "other", tmp_path / "x.tar.gz", None)


@pytest.mark.parametrize("moment", ["listing buckets", "writing the archive"])
def test_a_swapped_folder_ends_an_export(run: Path, tmp_path: Path, moment: str) -> None:
    def replace_folder(action: str, done: int, _total: int) -> None:
        if action == moment and done > 1 and not run.is_symlink():  # the first that is found is the bucket
            run.rename(tmp_path / "moved")
            run.symlink_to(tmp_path / "moved")

    with pytest.raises(EmulatorError, match=r"x\.tar\.gz was not written: .* symbolic link \(\"run\"\)"):
        list(export(tmp_path / "data", tmp_path / "x.tar.gz", True, replace_folder))
    assert not list(tmp_path.glob("x.tar*"))


@pytest.mark.parametrize("target", ["x", "../x", "../..", "./../../x/y", "x/", "x//y", "..x/...", "../../x"])
def test_links_may_climb_to_their_bucket(target: str) -> None:
    assert stays_in_bucket("a/b/link", target)


@pytest.mark.parametrize(
    "target", ["", "/", "/gcs/models/x", "../../..", "../../../models/x", "x/..", "x/../y", "../x/../..", "a\0b"]
)
def test_links_may_not_leave_their_bucket(target: str) -> None:
    assert not stays_in_bucket("a/b/link", target)


def test_progress_grows_up_to_all(tmp_path: Path) -> None:
    bucket = DataFolder.open(tmp_path / "data").buckets / "models"
    bucket.mkdir()
    (bucket / "weights").write_bytes(bytes(5 << 20))
    (bucket / "empty").mkdir()
    reports: list[tuple[str, int, int]] = []
    list(export(tmp_path / "data", tmp_path / "x.tar.gz", True, lambda *report: reports.append(report)))
    restore(tmp_path / "other", tmp_path / "x.tar.gz", None, lambda *report: reports.append(report))
    for action in ("writing the archive", "unpacking the archive"):
        shares = [done / total for text, done, total in reports if text == action]
        assert shares == sorted(shares) and shares[-1] == 1
        assert any(0.4 < share < 0.6 for share in shares)
    assert ("listing buckets", 3, 0) in reports
