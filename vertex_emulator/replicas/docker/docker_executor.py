"""Docker as the executor: a replica is a container, a job with several replicas has a network of its own.

Labels identify each replica, so a new process on the same data folder continues where another one was killed. Names
are deterministic: creating a container twice fails with a name conflict.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal

from vertex_emulator.database.records import Replica
from vertex_emulator.errors import ReplicaCannotStart
from vertex_emulator.replicas.docker import container_exit_events, container_options
from vertex_emulator.replicas.docker.arp_cache import remove_arp_entries_if_possible
from vertex_emulator.replicas.docker.container_isolation_firewall import ContainerIsolationFirewall
from vertex_emulator.replicas.docker.container_labels import LABEL, build_replica_from_labels, build_replica_labels
from vertex_emulator.replicas.docker.container_log_reading import iterate_container_log_lines
from vertex_emulator.replicas.docker.container_removal import remove_container_and_wait_until_gone
from vertex_emulator.replicas.docker.container_status import build_replica_status
from vertex_emulator.replicas.docker.docker_client_creation import create_docker_client
from vertex_emulator.replicas.docker.docker_error_handling import (
    get_docker_error_text,
    ignore_api_errors,
    is_container_at_fault,
    translate_connection_errors,
)
from vertex_emulator.replicas.docker.exec_stream import open_port_stream
from vertex_emulator.replicas.docker.host_resources import build_host_resources, list_nvidia_gpu_ids
from vertex_emulator.replicas.docker.image_puller import ImagePuller
from vertex_emulator.replicas.docker.job_network_and_addresses import (
    build_endpoint_options,
    ensure_network_and_get_subnet,
    map_hostnames_to_addresses,
)
from vertex_emulator.replicas.executor_protocol import (
    ByteStream,
    HostResources,
    LogLine,
    ReplicaSpec,
    ReplicaStatus,
)
from vertex_emulator.replicas.pids_log_and_egress_settings import ContainerSettings

if TYPE_CHECKING:
    import docker

_CALL_SECONDS = 60
_DEFAULTS = ContainerSettings()


class DockerExecutor:
    """Executor on the local Docker daemon; `emulator_id` tells one data folder's containers from another's."""

    def __init__(
        self, emulator_id: str, on_pulled: Callable[[str], None], settings: ContainerSettings = _DEFAULTS
    ) -> None:
        self._id = emulator_id
        self._settings = settings
        self._lock = threading.Lock()
        self._connected: docker.APIClient | None = None
        self._images = ImagePuller(self._connect_and_call, on_pulled)
        self._firewall = ContainerIsolationFirewall(self._connect_and_call, emulator_id)
        self._host: HostResources | None = None

    def ping(self) -> None:
        self._connect_and_call(lambda client: client.ping())

    def get_host_resources(self) -> HostResources:
        if self._host is None:
            docker_info = self._connect_and_call(lambda client: client.info())
            self._host = build_host_resources(docker_info, list_nvidia_gpu_ids())
        return self._host

    def has_image_or_starts_pull(self, job_id: str, image: str) -> bool:
        return self._images.has_image_or_starts_pull(job_id, image)

    def is_image_missing_here_and_in_registry(self, image: str) -> bool:
        return self._images.is_image_missing_here_and_in_registry(image)

    def start_replica_unless_started(self, spec: ReplicaSpec) -> None:
        name = self.get_container_name(spec.job, spec.replica)
        network, hosts = "bridge" if self._settings.egress else "none", {spec.cluster_name: "127.0.0.1"}
        if len(spec.peers) > 1:
            network, labels = f"vertex-{self._id}-{spec.job}", self._build_job_labels(spec.job)
            subnet = ensure_network_and_get_subnet(self._connect_and_call, network, labels, self._settings.egress)
            hosts = map_hostnames_to_addresses(subnet, spec.peers)
        elif not self._settings.egress:
            hosts[spec.hostname] = "127.0.0.1"  # there Docker gives a container no address of its own
        self._firewall.add_rules_if_possible()
        is_new = self._connect_and_call(
            lambda client: self._create_container_and_return_whether_new(client, network, hosts, spec)
        )
        if not is_new:
            status = self._get_replica_status_or_none(name)
            # Docker would run a container again that has ended already.
            if status is not None and status.phase != "created":
                return
        self._connect_and_call(lambda client: self._start_container(client, name))

    def try_to_start_exited_replica(self, job_id: str, replica: Replica) -> bool:
        name = self.get_container_name(job_id, replica)
        try:
            self._connect_and_call(lambda client: self._start_container(client, name))
        except ReplicaCannotStart:
            return False
        return True

    def get_container_name(self, job_id: str, replica: Replica) -> str:
        return f"vertex-{self._id}-{job_id}-{replica.task_name}-{replica.attempt}"

    def get_replica_statuses(self, job_id: str) -> Mapping[Replica, ReplicaStatus]:
        statuses = {
            build_replica_from_labels(container["Labels"]): self._get_replica_status_or_none(container["Id"])
            for container in self._list_containers(self._build_job_filters(job_id))
        }
        return {replica: status for replica, status in statuses.items() if status is not None}

    def signal_replica_if_running(self, job_id: str, replica: Replica, signal: Literal["SIGTERM", "SIGKILL"]) -> None:
        name = self.get_container_name(job_id, replica)
        with ignore_api_errors(404, 409):
            self._connect_and_call(lambda client: client.kill(name, signal))

    def iterate_log_lines_so_far(self, job_id: str, replica: Replica, since_ns: int = 0) -> Iterator[LogLine]:
        return iterate_container_log_lines(self._connect_and_call, self.get_container_name(job_id, replica), since_ns)

    def get_log_limit_bytes_or_none(self, job_id: str, replica: Replica) -> int | None:
        name = self.get_container_name(job_id, replica)
        container: Any = None
        with ignore_api_errors(404):
            container = self._connect_and_call(lambda client: client.inspect_container(name))
        return container_options.get_log_limit_bytes_or_none(container["HostConfig"]) if container else None

    def connect_to_port(self, job_id: str, replica: Replica, port: int, ready_socket: str) -> ByteStream:
        name = self.get_container_name(job_id, replica)
        stream: ByteStream = self._connect_and_call(lambda client: open_port_stream(client, name, port, ready_socket))
        return stream

    def describe_reachable_networks(self) -> str:
        obstacle = self._firewall.describe_obstacle_or_none()
        if obstacle is None:
            others = "the internet, but not" if self._settings.egress else "neither the internet nor"
            return f"containers reach {others} this machine"
        reached = "the internet and" if self._settings.egress else "not the internet, but if they have peers"
        return f"containers reach {reached} this machine: {obstacle} (docs/security.md)"

    def find_gateway_address_or_none(self) -> str | None:
        return self._firewall.find_gateway_address_or_none() if self._settings.egress else None

    def set_port_to_open_to_containers(self, address: str, port: int) -> None:
        self._firewall.set_port_to_open_to_containers(address, port)

    def remove_firewall_rules_unless_containers_remain(self) -> None:
        """Remove the rules of this machine's firewall unless there are containers."""
        if not self.list_ids_of_jobs_with_containers_or_network():
            self._firewall.remove_rules()

    def remove_containers_and_network(self, job_id: str) -> None:
        for container in self._list_containers(self._build_job_filters(job_id)):
            self._connect_and_call(partial(remove_container_and_wait_until_gone, container_id=container["Id"]))
            name = container["Names"][0].removeprefix("/")
            if mac_address := self._firewall.build_mac_address_or_none(name):
                remove_arp_entries_if_possible(mac_address)
        for network in self._connect_and_call(lambda client: client.networks(filters=self._build_job_filters(job_id))):
            with ignore_api_errors(404):
                self._connect_and_call(methodcaller("remove_network", network["Id"]))

    def list_ids_of_jobs_with_containers_or_network(self) -> set[str]:
        labelled = {"label": [f"{LABEL}={self._id}", f"{LABEL}.job"]}
        containers = self._list_containers(labelled)
        networks_of_jobs = self._connect_and_call(lambda client: client.networks(filters=labelled))
        return {resource["Labels"][f"{LABEL}.job"] for resource in containers + networks_of_jobs}

    def iterate_job_ids_of_container_exits(self, on_begin: Callable[[], None]) -> Iterator[str]:
        return container_exit_events.iterate_job_ids_of_container_exits(self._id, on_begin)

    def _create_container_and_return_whether_new(
        self, client: "docker.APIClient", network: str, addresses_by_hostname: dict[str, str], spec: ReplicaSpec
    ) -> bool:
        """Create a replica's container. Return False if it exists."""
        from docker.errors import APIError, ImageNotFound

        name = self.get_container_name(spec.job, spec.replica)
        address = addresses_by_hostname[spec.cluster_name] if len(spec.peers) > 1 else None
        mac_address = self._firewall.build_mac_address_or_none(name)
        try:
            client.create_container(
                spec.image,
                name=name,
                entrypoint=list(spec.command) if spec.command is not None else None,
                command=list(spec.args) if spec.args is not None else None,
                environment=container_options.copy_environment_and_add_python_path(client, spec),
                hostname=spec.hostname,
                labels=self._build_job_labels(spec.job) | build_replica_labels(spec.replica),
                host_config=container_options.build_host_config(
                    client, spec, network, addresses_by_hostname, self._settings
                ),
                **build_endpoint_options(client, network, address, mac_address),
            )
        except ImageNotFound as error:
            raise ReplicaCannotStart(f"the image {spec.image} was removed: {get_docker_error_text(error)}") from error
        except APIError as error:
            if error.status_code == 409:
                return False
            if error.status_code in (400, 404):
                raise ReplicaCannotStart(get_docker_error_text(error)) from error
            raise
        return True

    def _start_container(self, client: "docker.APIClient", container_name: str) -> None:
        from docker.errors import APIError

        try:
            client.start(container_name)
        except APIError as error:
            if is_container_at_fault(error):
                raise ReplicaCannotStart(get_docker_error_text(error)) from error
            raise

    def _get_replica_status_or_none(self, container_name_or_id: str) -> ReplicaStatus | None:
        from docker.errors import NotFound

        try:
            state = self._connect_and_call(lambda client: client.inspect_container(container_name_or_id))["State"]
        except NotFound:
            return None
        return build_replica_status(state)

    def _list_containers(self, filters: Mapping[str, list[str]]) -> Any:
        return self._connect_and_call(lambda client: client.containers(all=True, filters=filters))

    def _build_job_labels(self, job_id: str) -> dict[str, str]:
        return {LABEL: self._id, f"{LABEL}.job": job_id}

    def _build_job_filters(self, job_id: str) -> dict[str, list[str]]:
        return {"label": [f"{key}={value}" for key, value in self._build_job_labels(job_id).items()]}

    def _connect_and_call(self, call: Callable[[Any], Any]) -> Any:
        with self._lock:
            client = self._connected = self._connected or create_docker_client(_CALL_SECONDS)
        with translate_connection_errors():
            return call(client)
