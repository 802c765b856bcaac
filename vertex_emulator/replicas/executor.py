"""The executor of replicas: a replica is a Docker container, a job with several replicas has a network of its own.

Labels identify each replica, so a new process on the same data folder continues where another one was killed. Names
are deterministic: creating a container twice fails with a name conflict.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal

from vertex_emulator.database.records import Replica
from vertex_emulator.database.usage import Usage
from vertex_emulator.errors import ReplicaCannotStart
from vertex_emulator.replicas import containers, daemon, logs, size, streams, usage
from vertex_emulator.replicas.containers import LABEL, ContainerSettings, ReplicaStatus
from vertex_emulator.replicas.daemon import Images
from vertex_emulator.replicas.firewall import Firewall, forget_mac_address
from vertex_emulator.replicas.logs import LogLine
from vertex_emulator.replicas.remains import Remains
from vertex_emulator.replicas.size import Host
from vertex_emulator.replicas.spec import ReplicaSpec

if TYPE_CHECKING:
    import docker

_CALL_SECONDS, _PING_SECONDS = 60, 5
_DEFAULTS = ContainerSettings()


class Executor:
    """Runs replicas on the local Docker daemon; `emulator_id` tells one data folder's containers from another's.

    `on_pulled` gets the id of each job whose image has been pulled. Every method may raise ExecutorUnavailable, and
    every method can be repeated.
    """

    def __init__(
        self, emulator_id: str, on_pulled: Callable[[str], None], settings: ContainerSettings = _DEFAULTS
    ) -> None:
        self._id = emulator_id
        self._settings = settings
        self._lock = threading.Lock()
        self._connected: docker.APIClient | None = None
        self._streaming: docker.APIClient | None = None
        self._images = Images(self._call, on_pulled)
        self._firewall = Firewall(self._call, emulator_id)
        self._host: Host | None = None

    def ping(self) -> None:
        """Check that Docker answers soon, however long other calls wait for it."""
        daemon.connect(_PING_SECONDS).close()

    def host(self) -> Host:
        """The machine that containers run on."""
        if self._host is None:
            docker_info = self._call(lambda client: client.info())
            self._host = Host.parse(docker_info, size.nvidia_gpus())
        return self._host

    def ensure_image(self, job_id: str, image: str) -> bool:
        """Return whether the image is on the machine; if not, start to pull it. Raises ImageUnavailable."""
        return self._images.ensure(job_id, image)

    def lacks_image(self, image: str) -> bool:
        """Whether neither the machine nor the image's registry has an image; False if that is not known."""
        return self._images.lacks(image)

    def start(self, spec: ReplicaSpec) -> None:
        """Start a replica unless it was started before. Raises ReplicaCannotStart."""
        self._firewall.ensure()
        name = self.container_name(spec.job, spec.replica)
        network_name, hosts = "bridge" if self._settings.egress else "none", {spec.cluster_name: "127.0.0.1"}
        if len(spec.peers) > 1:
            network_name, labels = f"vertex-{self._id}-{spec.job}", self._labels(spec.job)
            hosts = containers.addresses(
                containers.ensure_network(self._call, network_name, labels, self._settings.egress), spec.peers
            )
        elif not self._settings.egress:
            hosts[spec.hostname] = "127.0.0.1"  # there Docker gives a container no address of its own
        if self._settings.egress:
            hosts |= spec.hosts
        if not self._call(lambda client: self._create(client, name, network_name, hosts, spec)):
            status = self._status(name)
            # Docker would run a container again that has ended already.
            if status is not None and status.phase != "created":
                return
        self._call(lambda client: _start(client, name))

    def _create(
        self, client: "docker.APIClient", name: str, network_name: str, hosts: dict[str, str], spec: ReplicaSpec
    ) -> bool:
        """Create a replica's container. Return False if it exists."""
        from docker.errors import APIError, ImageNotFound

        address = hosts[spec.cluster_name] if len(spec.peers) > 1 else None
        try:
            client.create_container(
                spec.image,
                name=name,
                entrypoint=list(spec.command) if spec.command is not None else None,
                command=list(spec.args) if spec.args is not None else None,
                environment=containers.environment(spec, self._images.variables),
                hostname=spec.hostname,
                labels=self._labels(spec.job) | containers.labels(spec.replica),
                host_config=containers.host_config(client, spec, network_name, hosts, self._settings),
                **containers.endpoint_options(client, network_name, address, self._firewall.mac_address(name)),
            )
        except ImageNotFound as error:
            raise ReplicaCannotStart(f"the image {spec.image} was removed: {daemon.error_text(error)}") from error
        except APIError as error:
            if error.status_code == 409:
                return False
            if error.status_code in (400, 404):
                raise ReplicaCannotStart(daemon.error_text(error)) from error
            raise
        return True

    def restart(self, job_id: str, replica: Replica) -> bool:
        """Start a replica's container that has exited again, with its files; return False if it cannot start."""
        name = self.container_name(job_id, replica)
        try:
            self._call(lambda client: _start(client, name))
        except ReplicaCannotStart:
            return False
        return True

    def container_name(self, job_id: str, replica: Replica) -> str:
        """The name of a replica's container, whether it exists or not."""
        return f"vertex-{self._id}-{job_id}-{replica.task_name}-{replica.attempt}"

    def statuses(self, job_id: str) -> Mapping[Replica, ReplicaStatus]:
        """The statuses of a job's containers."""
        found = {
            containers.replica_of(container["Labels"]): self._status(container["Id"])
            for container in self._list(self._job_filters(job_id))
        }
        return {replica: status for replica, status in found.items() if status is not None}

    def replica_at(self, address: str) -> tuple[str, Replica] | None:
        """The job and the replica whose running container has an IP address; None if no such container is ours."""
        for container in self._call(lambda client: client.containers(filters={"label": [f"{LABEL}={self._id}"]})):
            networks = container["NetworkSettings"]["Networks"].values()
            if any(network["IPAddress"] == address for network in networks):
                return container["Labels"][f"{LABEL}.job"], containers.replica_of(container["Labels"])
        return None

    def signal(self, job_id: str, replica: Replica, signal: Literal["SIGTERM", "SIGKILL"]) -> None:
        """Send a signal to a replica if it is running."""
        name = self.container_name(job_id, replica)
        with daemon.ignore(404, 409):
            self._call(lambda client: client.kill(name, signal))

    def read_log(self, job_id: str, replica: Replica, since_ns: int = 0) -> Iterator[LogLine]:
        """Read what a replica wrote so far at or after `since_ns`, in order of time; nothing if it is removed."""
        return logs.read_container(self._call, self.container_name(job_id, replica), since_ns)

    def log_limit(self, job_id: str, replica: Replica) -> int | None:
        """Up to which size (bytes) a replica's log loses no line; None without a limit, or if it is removed."""
        name = self.container_name(job_id, replica)
        container: Any = None
        with daemon.ignore(404):
            container = self._call(lambda client: client.inspect_container(name))
        return containers.log_limit(container["HostConfig"]) if container else None

    def remains(self, job_id: str, replica: Replica) -> Remains | None:
        """The files of a replica that has ended; None if its container is removed."""
        name = self.container_name(job_id, replica)
        found: Remains | None = self._call(lambda client: Remains.of(client, name))
        return found

    def usage(self, job_id: str, replica: Replica) -> Iterator[Usage]:
        """Yield what a replica has used so far, about once a second, until it ends."""
        with self._lock:
            client = self._streaming = self._streaming or daemon.connect(timeout=None)
        return usage.watch(client, self.container_name(job_id, replica))

    def connect_to_port(self, job_id: str, replica: Replica, port: int, ready_socket: str) -> streams.ExecStream:
        """Connect to a port of a replica once a program there has bound an abstract socket of that name.

        Raises ReplicaNotRunning.
        """
        name = self.container_name(job_id, replica)
        stream: streams.ExecStream = self._call(lambda client: streams.open_port(client, name, port, ready_socket))
        return stream

    @property
    def obstacle(self) -> str | None:
        """Why containers are not led to the emulator by names, None if they are; as far as that is known."""
        return self._firewall.obstacle

    def describe_networks(self) -> str:
        """Say in one line what containers reach."""
        obstacle = self._firewall.obstacle
        if obstacle is None:
            # Without egress there is no address for what answers them, either.
            if self._settings.egress:
                return "containers reach the internet, but not this machine, except the emulator"
            return "containers reach neither the internet nor this machine"
        reached = "the internet and" if self._settings.egress else "not the internet, but if they have peers"
        return f"containers reach {reached} this machine: {obstacle} (`vertex-training docs security`)"

    def gateway(self) -> str | None:
        """The address of this machine that containers can be allowed to reach; None if there is none."""
        return self._firewall.gateway() if self._settings.egress else None

    def lead_home(self, address: str, ports: Mapping[int, int]) -> None:
        """Let containers connect to ports of this machine, by its address and by HOME, from the next rules on."""
        self._firewall.lead_home(address, ports)

    def set_rules(self) -> str | None:
        """Set the rules of the firewall; return why they cannot be set."""
        return self._firewall.ensure()

    def remove(self, job_id: str) -> None:
        """Remove a job's containers, running or not, and its network."""
        for container in self._list(self._job_filters(job_id)):
            self._call(partial(containers.remove, container_id=container["Id"]))
            name = container["Names"][0].removeprefix("/")
            if mac_address := self._firewall.mac_address(name):
                forget_mac_address(mac_address)
        for found in self._call(lambda client: client.networks(filters=self._job_filters(job_id))):
            with daemon.ignore(404):
                self._call(methodcaller("remove_network", found["Id"]))

    def job_ids(self) -> set[str]:
        """The ids of jobs that have containers or networks."""
        labelled = {"label": [f"{LABEL}={self._id}", f"{LABEL}.job"]}
        found = self._list(labelled) + self._call(lambda client: client.networks(filters=labelled))
        return {resource["Labels"][f"{LABEL}.job"] for resource in found}

    def release_firewall(self) -> None:
        """Remove the rules of this machine's firewall unless there are containers."""
        if not self.job_ids():
            self._firewall.remove()

    def watch(self, on_begin: Callable[[], None]) -> Iterator[str]:
        """Call `on_begin` once the watch has begun; yield the job of each container that ends or runs out of memory."""
        return containers.watch_exits(self._id, on_begin)

    def _status(self, container: str) -> ReplicaStatus | None:
        from docker.errors import NotFound

        try:
            return ReplicaStatus.parse(self._call(lambda client: client.inspect_container(container))["State"])
        except NotFound:
            return None

    def _list(self, filters: Mapping[str, list[str]]) -> Any:
        return self._call(lambda client: client.containers(all=True, filters=filters))

    def _labels(self, job_id: str) -> dict[str, str]:
        return {LABEL: self._id, f"{LABEL}.job": job_id}

    def _job_filters(self, job_id: str) -> dict[str, list[str]]:
        return {"label": [f"{key}={value}" for key, value in self._labels(job_id).items()]}

    def _call(self, call: Callable[[Any], Any]) -> Any:
        with self._lock:
            client = self._connected = self._connected or daemon.connect(_CALL_SECONDS)
        with daemon.translate_errors():
            return call(client)


def _start(client: "docker.APIClient", container: str) -> None:
    from docker.errors import APIError

    try:
        client.start(container)
    except APIError as error:
        reason = daemon.error_text(error)
        # The container is the cause itself: no such executable, not executable, an impossible mount.
        if error.status_code in (400, 404) or "OCI runtime create failed" in reason:
            raise ReplicaCannotStart(reason) from error
        raise
