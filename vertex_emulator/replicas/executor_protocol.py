"""The executor protocol between the scheduler and Docker, and the data that it exchanges."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from vertex_emulator.database.records import Replica

Phase = Literal["created", "running", "exited"]
STDOUT, STDERR = 1, 2
"""The streams that a program in a container writes."""


@dataclass(frozen=True)
class HostResources:
    """The machine that containers run on.

    `memory` in bytes; `gpus` are the names by which Docker hands them out; the others say whether its kernel lets
    Docker limit a container's processors and memory.
    """

    cpus: int
    memory: int
    gpus: tuple[str, ...] = ()
    can_limit_cpus: bool = True
    can_limit_memory: bool = True


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
    in the container. `hostname` is that of the container; `peers` are the names of all of the job's replicas in
    CLUSTER_SPEC, its own, `cluster_name`, among them. `python_path` is a folder that comes first on PYTHONPATH, before
    those of the environment or else of the image.
    """

    job: str
    replica: Replica
    image: str
    command: Sequence[str] | None
    args: Sequence[str] | None
    environment: Mapping[str, str]
    hostname: str
    cluster_name: str
    mounts: Mapping[str, str]
    peers: Sequence[str]
    resources: ResourceLimits = ResourceLimits()
    read_only_mounts: Mapping[str, str] = field(default_factory=dict)
    python_path: str | None = None


@dataclass(frozen=True)
class ReplicaStatus:
    """The state of a container; times in ns since 1970."""

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


class ByteStream(Protocol):
    """A connection to a program in a container."""

    def write(self, data: bytes) -> None:
        """Write to the program's input. Raises OSError once it has ended."""

    def close_input(self) -> None:
        """Let the program find the end of its input."""

    def iterate_output_with_stream_numbers(self) -> Iterator[tuple[int, bytes]]:
        """Yield what the program writes, each time with its stream, STDOUT or STDERR, until it ends."""

    def close(self) -> None:
        """Close the connection, which ends the program's input and output."""


class Executor(Protocol):
    """Runs replicas. Every method may raise ExecutorUnavailable, and every method can be repeated."""

    def ping(self) -> None:
        """Check that the executor answers."""

    def get_host_resources(self) -> HostResources:
        """Return the resources of the machine that containers run on."""

    def has_image_or_starts_pull(self, job_id: str, image: str) -> bool:
        """Return whether the image is on the machine; if not, start to pull it. Raises ImageUnavailable."""

    def is_image_missing_here_and_in_registry(self, image: str) -> bool:
        """Return whether neither the machine nor the image's registry has an image; False if that is not known."""

    def start_replica_unless_started(self, spec: ReplicaSpec) -> None:
        """Start a replica unless it was started before. Raises ReplicaCannotStart."""

    def try_to_start_exited_replica(self, job_id: str, replica: Replica) -> bool:
        """Start a replica's container that has exited again, with its files; return False if it cannot start."""

    def get_container_name(self, job_id: str, replica: Replica) -> str:
        """Return the name of a replica's container, whether it exists or not."""

    def get_replica_statuses(self, job_id: str) -> Mapping[Replica, ReplicaStatus]:
        """Return the statuses of a job's containers."""

    def signal_replica_if_running(self, job_id: str, replica: Replica, signal: Literal["SIGTERM", "SIGKILL"]) -> None:
        """Send a signal to a replica if it is running."""

    def iterate_log_lines_so_far(self, job_id: str, replica: Replica, since_ns: int = 0) -> Iterator[LogLine]:
        """Read what a replica wrote at or after `since_ns`, in order of time; nothing if it is removed."""

    def get_log_limit_bytes_or_none(self, job_id: str, replica: Replica) -> int | None:
        """Return up to which size a replica's log loses no line; None without a limit, or if it is removed."""

    def connect_to_port(self, job_id: str, replica: Replica, port: int, ready_socket: str) -> ByteStream:
        """Connect to a port of a replica once a program there has bound an abstract socket of that name.

        Raises ReplicaNotRunning.
        """

    def describe_reachable_networks(self) -> str:
        """Describe in one line what containers reach."""

    def find_gateway_address_or_none(self) -> str | None:
        """Find the address of this machine that containers can be allowed to reach; None if there is none."""

    def set_port_to_open_to_containers(self, address: str, port: int) -> None:
        """Set the one port of this machine that containers may connect to, from the next start of a replica on."""

    def remove_containers_and_network(self, job_id: str) -> None:
        """Remove a job's containers, running or not, and its network."""

    def list_ids_of_jobs_with_containers_or_network(self) -> set[str]:
        """List the ids of jobs that have containers or networks."""

    def iterate_job_ids_of_container_exits(self, on_begin: Callable[[], None]) -> Iterator[str]:
        """Call `on_begin` once the watch has begun; yield the job of each container that ends or runs out of memory."""
