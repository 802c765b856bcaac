"""The mounts of buckets, and of nfsMounts and lustreMounts of worker pools: folders of this machine.

`spec.build` adds the file of metrics, `debugger.py` and `inside/door.py` files of their own.

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
from vertex_emulator.gcs.files import ROOT, BucketTree, is_bucket

_MAX_PARTS = 100
_MAX_BUCKETS = 1_000
"""Further ones are read-only. 500 take a container no more time than one (Docker 20.10)."""
_PART = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.@+=~-]{1,255}")
_RULE = "here it is a folder, whose parts have letters, digits and _ . @ + = ~ - only"


@dataclass(frozen=True)
class Mount:
    """A file or folder on this machine, and where a container has it."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Share:
    """An NFS or Lustre mount of a worker pool: `server` and `path` name the folder, relative to the data folder.

    `field` is the path of the mount in its worker pool, `mount_path` the folder in the container, below `/mnt/nfs` or
    `/mnt/lustre` (Google's pages on mounting NFS and Lustre).
    """

    field: tuple[str | int, ...]
    kind: str
    server: str
    path: tuple[str, ...]
    mount_path: tuple[str, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the folder's path in the data folder."""
        return (self.kind, self.server, *self.path)

    def nests(self, other: "Share") -> bool:
        """Whether one of two different folders is in the other."""
        shorter, longer = sorted((self.parts, other.parts), key=len)
        return len(shorter) < len(longer) and longer[: len(shorter)] == shorter


def shares(pool: Mapping[str, Any]) -> list[Share]:
    """The shares of a canonical worker pool."""

    def parts(path: str) -> tuple[str, ...]:
        stripped = path.strip("/")
        return tuple(stripped.split("/")) if stripped else ()

    return [
        Share((f"{kind}Mounts", index), kind, mount[server], parts(mount[path]), parts(mount["mountPoint"]))
        for kind, server, path in (("nfs", "server", "path"), ("lustre", "instanceIp", "filesystem"))
        for index, mount in enumerate(pool.get(f"{kind}Mounts", ()))
    ]


def violations(kind: Kind, job: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Find the shares of a canonical job that cannot be folders of the data folder, or are in each other."""
    pools = job[kind.spec_field]["workerPoolSpecs"]
    found = [(index, share) for index, pool in enumerate(pools) for share in shares(pool)]
    for number, (index, share) in enumerate(found):
        at = (kind.spec_field, "workerPoolSpecs", index, *share.field)
        for parts in ((share.server,), share.path, share.mount_path):
            if len(parts) > _MAX_PARTS or not all(map(_PART.fullmatch, parts)):
                yield FieldProblem(at, f'"{"/".join(parts)[:100]}" cannot be used: {_RULE}')
        for other_index, other in found[:number]:
            if share.nests(other):
                yield FieldProblem(at, f"{describe_nesting(share, other)}; mount one of them")
            elif index == other_index and share.parts == other.parts:
                yield FieldProblem(at, "is mounted by this pool already; the emulator mounts a folder once")
            elif index == other_index and share.kind == other.kind and share.mount_path == other.mount_path:
                yield FieldProblem(at, f'another mount has the mountPoint "{"/".join(share.mount_path)}"')


def describe_nesting(share: Share, other: Share) -> str:
    """Say which two folders are in each other."""
    return f"{'/'.join(share.parts)} and {'/'.join(other.parts)} are one in the other, which the emulator cannot mount"


def buckets(data: DataFolder) -> list[Mount]:
    """Return how to mount `/gcs`: each bucket of the data folder, in a folder where a container makes no others.

    So a misspelt bucket is refused, as by Cloud Storage FUSE, and no container replaces a bucket by a link, which
    Docker would follow for the next one. A bucket that is made while the container runs is there, but read-only.
    """
    with BucketTree(data.buckets).scan(ROOT) as entries:
        found = sorted(entry.name for entry in entries if is_bucket(entry.name) and entry.is_dir(follow_symlinks=False))
    mounted = (Mount(str(data.buckets / name), f"/gcs/{name}") for name in found[:_MAX_BUCKETS])
    return [Mount(str(data.buckets), "/gcs", read_only=True), *mounted]


def make(pool: Mapping[str, Any], data: DataFolder) -> list[Mount]:
    """Create the folders of a pool's shares, and return how to mount them. Raises ReplicaCannotStart."""
    made = []
    for share in shares(pool):
        # Outside of all containers, so a user may make it a link to files elsewhere.
        root = data.root / share.kind / share.server
        folder = root.joinpath(*share.path)
        try:
            root.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(PermissionError):
                root.chmod(0o777)  # training code runs as any user
            BucketTree(root).mkdir_parts(share.path)
        except (OSError, InvalidBucketUri) as error:
            reason = error.strerror if isinstance(error, OSError) else "it goes through a file or a symbolic link"
            raise ReplicaCannotStart(f"{share.kind}Mounts: {folder} cannot be mounted: {reason}") from error
        made.append(Mount(str(folder), "/".join([f"/mnt/{share.kind}", *share.mount_path])))
    return made
