"""The nfsMounts and lustreMounts of worker pools: their problems, and the folders that stand for them.

The folder of a share is `nfs/SERVER/PATH` or `lustre/IP/FILESYSTEM` in the data folder.

A container may replace folders in a share by symbolic links, and Docker follows links in what it mounts. So no share is
mounted that lies within another one which an unfinished job mounts.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.names import Kind
from vertex_api.validation.shape import FieldProblem
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.errors import InvalidBucketUri, ReplicaCannotStart
from vertex_emulator.gcs.files import BucketTree

_MAX_PARTS = 100
_PART = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.@+=~-]{1,255}")
_RULE = "here it is a folder, whose parts have letters, digits and _ . @ + = ~ - only"
_MOUNT_ROOTS = {"nfsMounts": "/mnt/nfs", "lustreMounts": "/mnt/lustre"}  # Google's pages on mounting NFS and Lustre


@dataclass(frozen=True)
class SharedFolder:
    """A mount of a worker pool: `server` and `path` name the folder, relative to the data folder.

    `field` is the path of the mount in its worker pool, `mount_path` the folder in the container.
    """

    field: tuple[str | int, ...]
    kind: str
    server: str
    path: tuple[str, ...]
    mount_path: tuple[str, ...]

    @property
    def path_parts_in_data_folder(self) -> tuple[str, ...]:
        """The parts of the folder's path in the data folder."""
        return (self.kind, self.server, *self.path)

    def is_ancestor_or_descendant_of(self, other: "SharedFolder") -> bool:
        """Return whether one of two different folders is in the other."""
        shorter, longer = sorted((self.path_parts_in_data_folder, other.path_parts_in_data_folder), key=len)
        return len(shorter) < len(longer) and longer[: len(shorter)] == shorter


def list_shared_folders(pool: Mapping[str, Any]) -> list[SharedFolder]:
    """List the mounts of a canonical worker pool."""
    nfs = (("nfs", mount["server"], mount["path"], mount["mountPoint"]) for mount in pool.get("nfsMounts", ()))
    lustre = (
        ("lustre", mount["instanceIp"], mount["filesystem"], mount["mountPoint"])
        for mount in pool.get("lustreMounts", ())
    )
    return [
        SharedFolder((f"{kind}Mounts", index), kind, server, _split_into_parts(path), _split_into_parts(mount_point))
        for mounts in (nfs, lustre)
        for index, (kind, server, path, mount_point) in enumerate(mounts)
    ]


def iterate_shared_folder_field_problems(kind: Kind, job: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Find the mounts of a canonical job that cannot be folders of the data folder, or are in each other."""
    pools = job[kind.spec_field]["workerPoolSpecs"]
    shares = [(index, share) for index, pool in enumerate(pools) for share in list_shared_folders(pool)]
    for number, (index, share) in enumerate(shares):
        at = (kind.spec_field, "workerPoolSpecs", index, *share.field)
        for parts in ((share.server,), share.path, share.mount_path):
            if len(parts) > _MAX_PARTS or not all(map(_PART.fullmatch, parts)):
                yield FieldProblem(at, f'"{"/".join(parts)[:100]}" cannot be used: {_RULE}')
        for other_index, other in shares[:number]:
            if share.is_ancestor_or_descendant_of(other):
                yield FieldProblem(at, f"{describe_nesting_problem(share, other)}; mount one of them")
            elif index == other_index and share.path_parts_in_data_folder == other.path_parts_in_data_folder:
                yield FieldProblem(at, "is mounted by this pool already; the emulator mounts a folder once")
            elif index == other_index and share.kind == other.kind and share.mount_path == other.mount_path:
                yield FieldProblem(at, f'another mount has the mountPoint "{"/".join(share.mount_path)}"')


def describe_nesting_problem(share: SharedFolder, other: SharedFolder) -> str:
    """Return the text that says which two folders are in each other."""
    share_path, other_path = "/".join(share.path_parts_in_data_folder), "/".join(other.path_parts_in_data_folder)
    return f"{share_path} and {other_path} are one in the other, which the emulator cannot mount"


def make_folders_and_map_to_mount_points(pool: Mapping[str, Any], data_folder: DataFolder) -> dict[str, str]:
    """Create the folders of a pool's mounts; return folders in the container by folder on this machine.

    Raises ReplicaCannotStart.
    """
    mounts = {}
    for share in list_shared_folders(pool):
        # Outside of all containers, so a user may make it a link to files elsewhere.
        root = data_folder.root / share.kind / share.server
        folder = root.joinpath(*share.path)
        try:
            root.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(PermissionError):
                root.chmod(0o777)  # training code runs as any user
            BucketTree(root).mkdir_parts(share.path)
        except (OSError, InvalidBucketUri) as error:
            reason = error.strerror if isinstance(error, OSError) else "it goes through a file or a symbolic link"
            raise ReplicaCannotStart(f"{share.kind}Mounts: {folder} cannot be mounted: {reason}") from error
        mounts[str(folder)] = "/".join([_MOUNT_ROOTS[f"{share.kind}Mounts"], *share.mount_path])
    return mounts


def _split_into_parts(path: str) -> tuple[str, ...]:
    stripped = path.strip("/")
    return tuple(stripped.split("/")) if stripped else ()
