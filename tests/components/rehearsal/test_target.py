"""The throw-away target: what it removes, whoever owns it, and what it leaves alone."""

import fcntl
from pathlib import Path

import docker
from vertex_training.rehearsal.target import remove_as_root, throw_away

from .declared import Write, left


def test_files_of_containers_are_removed(tmp_path: Path) -> None:
    (tmp_path / "gcs" / "bucket").mkdir(parents=True)
    (tmp_path / "gcs" / "bucket" / "-rf").touch()
    (tmp_path / ".hidden").touch()
    remove_as_root(tmp_path)
    assert [*tmp_path.iterdir()] == []
    mounted = [
        str(each.attrs.get("Mounts")) for each in docker.from_env().containers.list(all=True, ignore_removed=True)
    ]
    assert not any(str(tmp_path) in each for each in mounted)


def test_only_abandoned_folders_are_removed(project: Write, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    abandoned, used, linked = (temporary / f"vertex-training-run-{name}" for name in ("abandoned", "used", "linked"))
    for folder in (abandoned, used, tmp_path / "mine"):
        folder.mkdir(mode=0o700)
        (folder / "owner.lock").touch()
    linked.symlink_to(tmp_path / "mine")
    with (used / "owner.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with throw_away() as own:
            assert sorted(temporary.iterdir()) == sorted([linked, used, own])
    assert (tmp_path / "mine" / "owner.lock").exists()
    assert sorted(left(tmp_path)) == sorted([str(linked), str(used)])
