from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.jobs import custom_job_spec, pool
from vertex_api.names import CUSTOM_JOB
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.errors import ReplicaCannotStart
from vertex_emulator.replicas import mounts
from vertex_emulator.replicas.mounts import Mount


def nfs(path: str = "/share", mount_point: str = "data", server: str = "10.0.0.2") -> dict[str, str]:
    return {"server": server, "path": path, "mountPoint": mount_point}


def lustre(filesystem: str = "fs", mount_point: str = "data", ip: str = "10.0.0.3") -> dict[str, str]:
    return {"instanceIp": ip, "filesystem": filesystem, "volumeHandle": "v", "mountPoint": mount_point}


def with_mounts(*mounts: dict[str, str]) -> dict[str, Any]:
    """A worker pool with NFS mounts and Lustre mounts."""
    return {
        **pool(),
        "nfsMounts": [mount for mount in mounts if "server" in mount],
        "lustreMounts": [mount for mount in mounts if "instanceIp" in mount],
    }


def problems(*pools: dict[str, Any]) -> list[str]:
    found = mounts.violations(CUSTOM_JOB, custom_job_spec(*pools))
    return [f"{problem.place.removeprefix('jobSpec.workerPoolSpecs')}: {problem.message}" for problem in found]


def test_mounts_are_folders_of_data_folder(tmp_path: Path) -> None:
    data = DataFolder.open(tmp_path)
    mounted = with_mounts(nfs("/exports/set-1/", "in"), nfs("/", "all/of", "files.example"), lustre())
    assert problems(mounted) == []
    assert mounts.make(mounted, data) == [
        Mount(f"{tmp_path}/nfs/10.0.0.2/exports/set-1", "/mnt/nfs/in"),
        Mount(f"{tmp_path}/nfs/files.example", "/mnt/nfs/all/of"),
        Mount(f"{tmp_path}/lustre/10.0.0.3/fs", "/mnt/lustre/data"),
    ]
    for folder in ("nfs/10.0.0.2/exports/set-1", "nfs/files.example", "lustre/10.0.0.3/fs"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o777


@pytest.mark.parametrize(
    "mount",
    [
        nfs("/../gcs"),
        nfs("/a/../../b"),
        nfs("/a//b"),
        nfs("/a/."),
        nfs("/a:/etc:rw"),
        nfs("/a\0b"),
        nfs("/" + "a/" * 101),
        nfs(server=".."),
        nfs(server="../gcs"),
        nfs(server="/etc"),
        nfs(server="fd00::1"),
        nfs(mount_point="../../gcs"),
        nfs(mount_point="x:ro"),
        lustre(".."),
        lustre("a/../.."),
        lustre(ip="."),
        lustre(mount_point=".."),
    ],
)
def test_no_mount_leads_out_of_its_folder(mount: dict[str, str]) -> None:
    (found,) = problems(with_mounts(mount))
    assert "Mounts[0]: " in found and "cannot be used: here it is a folder" in found


def test_shares_within_each_other_are_not_mounted() -> None:
    """A container of one could lead the mount of the other anywhere, by a symbolic link."""
    assert problems(with_mounts(nfs("/a")), with_mounts(nfs("/a/b"))) == [
        "[1].nfsMounts[0]: nfs/10.0.0.2/a/b and nfs/10.0.0.2/a are one in the other, which the emulator cannot mount; "
        "mount one of them"
    ]
    assert problems(with_mounts(nfs("/a/b", "x"), nfs("/", "y"))) != []
    assert problems(with_mounts(nfs("/a", "x"), nfs("/ab", "y"), nfs("/a/b", "z", "10.0.0.9"))) == []
    assert problems(with_mounts(nfs("/a")), with_mounts(nfs("/a/"))) == []


def test_pool_mounts_folder_once_and_at_its_own_place() -> None:
    assert "is mounted by this pool already" in problems(with_mounts(nfs("/a", "x"), nfs("/a/", "y")))[0]
    assert 'another mount has the mountPoint "x"' in problems(with_mounts(nfs("/a", "x"), nfs("/b", "/x/")))[0]
    assert problems(with_mounts(nfs("/a", "x"), lustre("a", "x"))) == []


@pytest.mark.parametrize("kind", ["link", "file"])
def test_share_leads_through_no_link_or_file(tmp_path: Path, kind: str) -> None:
    data = DataFolder.open(tmp_path / "data")
    (tmp_path / "outside").mkdir()
    (tmp_path / "data/nfs/10.0.0.2").mkdir(parents=True)
    blocked = tmp_path / "data/nfs/10.0.0.2/a"
    blocked.symlink_to(tmp_path / "outside") if kind == "link" else blocked.touch()
    with pytest.raises(ReplicaCannotStart, match=r"nfsMounts: .*/nfs/10.0.0.2/a/b cannot be mounted"):
        mounts.make(with_mounts(nfs("/a/b")), data)
    assert list((tmp_path / "outside").iterdir()) == []


def test_user_link_stands_for_server(tmp_path: Path) -> None:
    data = DataFolder.open(tmp_path / "data")
    (tmp_path / "real").mkdir()
    (tmp_path / "data/nfs").mkdir()
    (tmp_path / "data/nfs/10.0.0.2").symlink_to(tmp_path / "real")
    mounts.make(with_mounts(nfs("/a")), data)
    assert (tmp_path / "real/a").is_dir()
