"""What runs replicas: the seam between the scheduler and Docker."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from vertex_emulator.database.records import Replica

Phase = Literal["created", "running", "exited"]


@dataclass(frozen=True)
class HostResources:
    """The machine that containers run on.

    `memory` in bytes; `gpus` are the names by which Docker hands them out; the others say whether its kernel lets
    Docker limit a container's processors and memory.
    """

    cpus: int
    memory: int
    gpus: tuple[str, ...] = ()
    limits_cpus: bool = True
    limits_memory: bool = True


@dataclass(frozen=True)
class ResourceLimits:
    """What a container may use of its host.

    `cpus` None leaves it all processors, `memory` (bytes) None all memory. `shared_memory` is the size of `/dev/shm` in
    bytes, None for Docker's own. `gpus` are names of the host's.
    """

    cpus: int | None = None
    memory: int | None = None
    shared_memory: int | None = None
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReplicaSpec:
    """A container to start.

    `command` None keeps the image's ENTRYPOINT, `args` None its CMD. `mounts` maps folders on this machine to folders
    in the container. `peers` are the host names of all of the job's replicas, its own among them.
    """

    job: str
    replica: Replica
    image: str
    command: Sequence[str] | None
    args: Sequence[str] | None
    environment: Mapping[str, str]
    hostname: str
    mounts: Mapping[str, str]
    peers: Sequence[str]
    resources: ResourceLimits = ResourceLimits()


@dataclass(frozen=True)
class ReplicaStatus:
    """What became of a container; times in nanoseconds since 1970."""

    phase: Phase
    exit_code: int = 0
    out_of_memory: bool = False
    started: int | None = None
    finished: int | None = None


@dataclass(frozen=True)
class LogLine:
    """One line that a container wrote: `at` in nanoseconds since 1970, `stream` is `o` (stdout) or `e` (stderr)."""

    at: int
    stream: str
    text: str


class Executor(Protocol):
    """Runs replicas. Every method may raise ExecutorUnavailable; every method can be repeated."""

    def ping(self) -> None:
        """Return when the executor answers."""

    def get_host_resources(self) -> HostResources:
        """The machine that containers run on."""

    def ensure_image(self, job: str, image: str) -> bool:
        """Whether the image is here; if not, its pull is under way. Raises ImageUnavailable."""

    def start_replica(self, spec: ReplicaSpec) -> None:
        """Make sure that the replica was started. Raises ReplicaCannotStart."""

    def get_statuses(self, job: str) -> Mapping[Replica, ReplicaStatus]:
        """The containers of a job."""

    def signal_replica(self, job: str, replica: Replica, signal: Literal["SIGTERM", "SIGKILL"]) -> None:
        """Signal a replica; nothing happens when it no longer runs."""

    def read_log(self, job: str, replica: Replica, since: int = 0) -> Iterator[LogLine]:
        """What a replica wrote at or after `since`, in order of time; nothing when it is gone."""

    def remove_job(self, job: str) -> None:
        """Remove all that a job holds: containers, running or not, and its network."""

    def list_jobs(self) -> set[str]:
        """Ids of the jobs that hold anything."""

    def watch_jobs(self) -> Iterator[str | None]:
        """Ids of jobs whose containers change, as it happens; None first, once the watch has begun."""
