"""The spec of a replica as arguments of the SDK's `create_container`: environment, mounts, limits, security, logs."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vertex_emulator.replicas.executor_protocol import ReplicaSpec, ResourceLimits
from vertex_emulator.replicas.pids_log_and_egress_settings import ContainerSettings

if TYPE_CHECKING:
    import docker

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT")
_LOG_FILES = 5
_MB = 1 << 20
_LOG_SIZE = "max-size"


def build_host_config(
    client: "docker.APIClient",
    spec: ReplicaSpec,
    network: str,
    addresses_by_hostname: Mapping[str, str],
    settings: ContainerSettings,
) -> Any:
    """Build Docker's HostConfig of a replica on a network: mounts, known host names, and limits."""
    return client.create_host_config(
        binds=[
            *(f"{here}:{there}:rw" for here, there in spec.mounts.items()),
            *(f"{here}:{there}:ro" for here, there in spec.read_only_mounts.items()),
        ],
        network_mode=network,
        extra_hosts=dict(addresses_by_hostname),
        **build_limit_options(spec.resources),
        **_build_security_log_and_egress_options(settings),
    )


def copy_environment_and_add_python_path(client: "docker.APIClient", spec: ReplicaSpec) -> dict[str, str]:
    """Build the environment of a replica; its image is inspected only if PYTHONPATH is changed."""
    if spec.python_path is None:
        return dict(spec.environment)
    return build_environment_with_python_path(spec, client.inspect_image(spec.image)["Config"] or {})


def build_environment_with_python_path(spec: ReplicaSpec, image_config: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a container with the spec's folder before those that it, else its image, has."""
    image_variables = dict(text.split("=", 1) for text in image_config.get("Env") or ())
    inherited = spec.environment.get("PYTHONPATH", image_variables.get("PYTHONPATH", ""))
    folders = [*([spec.python_path] if spec.python_path else []), *([inherited] if inherited else [])]
    return {**spec.environment, "PYTHONPATH": os.pathsep.join(folders)}


def build_limit_options(limits: ResourceLimits) -> dict[str, Any]:
    """Build arguments of the SDK's `create_host_config`; without swap, which would only delay running out of memory."""
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


def _build_security_log_and_egress_options(settings: ContainerSettings) -> dict[str, Any]:
    """Build arguments of the SDK's `create_host_config`."""
    from docker.types import LogConfig

    options: dict[str, Any] = {
        "cap_drop": ["ALL"],
        "cap_add": list(CAPABILITIES),
        "security_opt": ["no-new-privileges"],
        "pids_limit": settings.pids_limit,
        # Docker drops the oldest file when it begins another, so the limit has to fit into the others.
        "log_config": LogConfig(
            type="json-file",
            config={_LOG_SIZE: str(settings.log_limit_mb * _MB // (_LOG_FILES - 1)), "max-file": str(_LOG_FILES)},
        ),
    }
    if not settings.egress:  # for jobs of several replicas, which have a network
        # Docker's resolver would ask the machine's name servers, some of them from outside the container's network.
        options["dns"] = ["127.0.0.1"]
        # It does not answer at all then, and a lookup would take ten seconds to fail.
        options["dns_opt"] = ["timeout:1", "attempts:1"]
    return options


def get_log_limit_bytes_or_none(host_config: dict[str, Any]) -> int | None:
    """Return up to which size no line of a container's log is dropped, by its HostConfig; None without a limit."""
    file_size = (host_config["LogConfig"].get("Config") or {}).get(_LOG_SIZE)
    return int(file_size) * (_LOG_FILES - 1) if file_size else None
