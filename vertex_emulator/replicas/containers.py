"""A replica as a container of Docker's: its options, labels and status; how it ends; and the network of its job."""

import ipaddress
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vertex_api.jobspec import EGRESS, LOG_LIMIT_MB, PIDS_LIMIT
from vertex_emulator.database.records import Replica
from vertex_emulator.errors import NetworkUnavailable
from vertex_emulator.replicas import daemon
from vertex_emulator.replicas.size import Limits
from vertex_emulator.replicas.spec import ReplicaSpec
from vertex_emulator.times import parse_time

if TYPE_CHECKING:
    import docker

LABEL = "vertex-training.emulator"
"""The label with the emulator's id; others begin with it."""
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT")
Phase = Literal["created", "running", "exited"]
_PHASES: Mapping[str, Phase] = {"created": "created", "exited": "exited", "dead": "exited", "removing": "exited"}
_LOG_FILES, _LOG_SIZE = 5, "max-size"
_SEPARATORS = {"PYTHONPATH": os.pathsep, "JAVA_TOOL_OPTIONS": " "}
_REMOVAL_SECONDS = 60
_OVERLAP_SECONDS = 10


@dataclass(frozen=True)
class ContainerSettings:
    """What all containers of an emulator may use, beside their machine types: options of `vertex-emulator serve`.

    `pids_limit` counts processes and threads. `log_limit_mb` is the size (MiB, as Docker stores it) up to which no line
    of a replica's log is dropped. `egress` says whether containers reach other machines.
    """

    pids_limit: int = PIDS_LIMIT
    log_limit_mb: int = LOG_LIMIT_MB
    egress: bool = EGRESS


def environment(spec: ReplicaSpec, of_image: Callable[[str], Mapping[str, str]]) -> dict[str, str]:
    """The environment of a container: its leading lists come before what the spec, else the image, has.

    `of_image` returns the variables of an image, and is called only if they are needed.
    """
    found = {**spec.environment}
    inherited = {} if spec.leading.keys() <= found.keys() else of_image(spec.image)
    for name, first in spec.leading.items():
        found[name] = _SEPARATORS[name].join(filter(None, [first, found.get(name, inherited.get(name))]))
    return found


def host_config(
    client: "docker.APIClient",
    spec: ReplicaSpec,
    network: str,
    hosts: Mapping[str, str],
    settings: ContainerSettings,
) -> Any:
    """Docker's HostConfig of a replica on a network; `hosts` are the addresses of the host names that it knows."""
    from docker.types import LogConfig

    options: dict[str, Any] = {
        "cap_drop": ["ALL"],
        "cap_add": list(CAPABILITIES),
        "security_opt": ["no-new-privileges"],
        "pids_limit": settings.pids_limit,
        # Docker drops the oldest file when it begins another, so the limit has to fit into the others.
        "log_config": LogConfig(
            type="json-file",
            config={_LOG_SIZE: str((settings.log_limit_mb << 20) // (_LOG_FILES - 1)), "max-file": str(_LOG_FILES)},
        ),
    }
    if not settings.egress:  # for jobs of several replicas, which have a network
        # Docker's resolver would ask the machine's name servers, some of them from outside the container's network.
        options["dns"] = ["127.0.0.1"]
        # It does not answer at all then, and a lookup would take ten seconds to fail.
        options["dns_opt"] = ["timeout:1", "attempts:1"]
    return client.create_host_config(
        binds=[f"{mount.source}:{mount.target}:{'ro' if mount.read_only else 'rw'}" for mount in spec.mounts],
        network_mode=network,
        extra_hosts=dict(hosts),
        **limit_options(spec.limits),
        **options,
    )


def limit_options(limits: Limits) -> dict[str, Any]:
    """Arguments of the SDK's `create_host_config`; without swap, which would only delay running out of memory."""
    from docker.types import DeviceRequest

    options: dict[str, Any] = {}
    if limits.cpus is not None:
        options["nano_cpus"] = limits.cpus * 10**9
    if limits.memory is not None:
        options["mem_limit"] = options["memswap_limit"] = limits.memory
    if limits.shared_memory is not None:
        options["shm_size"] = limits.shared_memory
    if limits.gpus:
        driver = "cdi" if "=" in limits.gpus[0] else "nvidia"
        options["device_requests"] = [
            DeviceRequest(driver=driver, device_ids=list(limits.gpus), capabilities=[["gpu"]])
        ]
    return options


def log_limit(host_config: Mapping[str, Any]) -> int | None:
    """Up to which size (bytes) no line of a container's log is dropped, by its HostConfig; None without a limit."""
    file_size = (host_config["LogConfig"].get("Config") or {}).get(_LOG_SIZE)
    return int(file_size) * (_LOG_FILES - 1) if file_size else None


def labels(replica: Replica) -> dict[str, str]:
    """The labels that tell a replica from others of its job."""
    return {
        f"{LABEL}.pool": str(replica.pool),
        f"{LABEL}.replica": str(replica.index),
        f"{LABEL}.attempt": str(replica.attempt),
    }


def replica_of(labels: Mapping[str, str]) -> Replica:
    """The replica that a container's labels name."""
    return Replica(*(int(labels[f"{LABEL}.{part}"]) for part in ("pool", "replica", "attempt")))


@dataclass(frozen=True)
class ReplicaStatus:
    """The state of a container; times in ns since 1970."""

    phase: Phase
    exit_code: int = 0
    out_of_memory: bool = False
    started: int | None = None
    finished: int | None = None

    @classmethod
    def parse(cls, state: Mapping[str, Any]) -> "ReplicaStatus":
        """Read the `State` of an inspected container."""
        phase = _PHASES.get(state["Status"], "running")
        return cls(
            phase=phase,
            exit_code=state["ExitCode"],
            out_of_memory=state["OOMKilled"],
            started=None if phase == "created" else parse_time(state["StartedAt"]),
            finished=parse_time(state["FinishedAt"]) if phase == "exited" else None,
        )


def remove(client: Any, container_id: str) -> None:
    """Remove a container; return once it is gone.

    A process that is killed while it removes a container leaves Docker at it. Until then the container is listed and
    has its network.
    """
    from docker.errors import APIError

    with daemon.ignore(404):
        try:
            client.remove_container(container_id, v=True, force=True)
        except APIError as error:
            if error.status_code != 409:  # 409: its removal has begun
                raise
            client.wait(container_id, timeout=_REMOVAL_SECONDS, condition="removed")


def watch_exits(emulator_id: str, on_begin: Callable[[], None]) -> Iterator[str]:
    """Yield the job of each container of an emulator that ends; `on_begin` is called once none is missed.

    Jobs of containers that ended shortly before come too: the daemon replies to the request before it collects events,
    and keeps some of those that it has sent to nobody. Raises ExecutorUnavailable.
    """
    watched = {"label": [f"{LABEL}={emulator_id}"], "type": ["container"], "event": ["die", "oom"]}
    # A client of its own: the stream occupies it, and no read on it may time out.
    client = daemon.connect(timeout=None)
    try:
        with daemon.translate_errors():
            events = client.events(since=int(time.time()) - _OVERLAP_SECONDS, filters=watched, decode=True)
        on_begin()
        with daemon.translate_errors():
            for event in events:
                yield event["Actor"]["Attributes"][f"{LABEL}.job"]
    finally:
        client.close()


_TRIES = 5
_FIRST_HOST = 2  # the first address is the gateway's


def ensure_network(call: daemon.Call, name: str, labels: Mapping[str, str], egress: bool) -> ipaddress.IPv4Network:
    """Create a job's network unless it exists; return its subnet. Raises NetworkUnavailable.

    It is a bridge on which the names of all replicas resolve before any of them runs. Docker's own names resolve only
    once a container runs, but on Vertex a replica may look for its peers as soon as it starts. So addresses are fixed
    when containers are created, and every container gets the whole list as /etc/hosts. Without `egress`, containers on
    it reach each other only.

    Docker accepts fixed addresses only in a requested subnet, and only Docker knows which subnets are free. So Docker
    chooses the subnet of a first network, which is then replaced by one that requests the same subnet.
    """
    options = {"driver": "bridge", "check_duplicate": True, "labels": dict(labels), "internal": not egress}
    for _ in range(_TRIES):
        known: ipaddress.IPv4Network | None = call(lambda client: _subnet(client, name))
        if known is not None:
            return known
        call(lambda client: _create(client, name, options))
    raise _no_subnet(name)


def _subnet(client: Any, name: str) -> ipaddress.IPv4Network | None:
    from docker.errors import NotFound

    try:
        network = client.inspect_network(name)
    except NotFound:
        return None
    return ipaddress.IPv4Network(network["IPAM"]["Config"][0]["Subnet"])


def _create(client: Any, name: str, options: Mapping[str, Any]) -> None:
    """Create a network in a subnet that Docker finds free; do nothing if its name or subnet is taken meanwhile."""
    from docker.errors import APIError
    from docker.types import IPAMConfig, IPAMPool

    probe = f"{name}-probe"
    try:
        client.create_network(probe, **options)
    except APIError as error:
        if "address pool" in daemon.error_text(error):
            raise _no_subnet(name) from error
        if error.status_code != 409:
            raise
    subnet = _subnet(client, probe)
    client.remove_network(probe)
    with daemon.ignore(403, 409):  # 403: another job has got the subnet meanwhile; 409: the network exists
        client.create_network(name, **options, ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=str(subnet))]))


def _no_subnet(name: str) -> NetworkUnavailable:
    advice = "remove unused networks with `docker network prune`"
    return NetworkUnavailable(f"Docker has no free subnet for {name}; {advice}")


def addresses(subnet: ipaddress.IPv4Network, hostnames: Sequence[str]) -> dict[str, str]:
    """Assign an address to each of a job's host names, in order."""
    return {name: str(subnet[_FIRST_HOST + i]) for i, name in enumerate(hostnames)}


def endpoint_options(client: Any, network: str, address: str | None, mac_address: str | None) -> dict[str, Any]:
    """Arguments of the SDK's `create_container` that give a container its addresses on a network."""
    from docker.utils import version_gte

    if network == "none":
        return {}
    if version_gte(client.api_version, "1.44"):
        endpoint = client.create_endpoint_config(ipv4_address=address, mac_address=mac_address)
        return {"networking_config": client.create_networking_config({network: endpoint})}
    options: dict[str, Any] = {} if mac_address is None else {"mac_address": mac_address}
    if address is not None:
        endpoint = client.create_endpoint_config(ipv4_address=address)
        options["networking_config"] = client.create_networking_config({network: endpoint})
    return options
