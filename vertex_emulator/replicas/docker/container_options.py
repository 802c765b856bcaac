"""The spec of a replica as arguments of the SDK's `create_container`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vertex_emulator.replicas.debugpy_injection_by_python_path import build_environment_with_python_path
from vertex_emulator.replicas.docker.resource_limit_options import build_limit_options
from vertex_emulator.replicas.docker.security_log_and_egress_options import build_security_log_and_egress_options
from vertex_emulator.replicas.executor_protocol import ReplicaSpec
from vertex_emulator.replicas.pids_log_and_egress_settings import ContainerSettings

if TYPE_CHECKING:
    import docker


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
        **build_security_log_and_egress_options(settings),
    )


def copy_environment_and_add_python_path(client: "docker.APIClient", spec: ReplicaSpec) -> dict[str, str]:
    """Build the environment of a replica; its image is inspected only if PYTHONPATH is changed."""
    if spec.python_path is None:
        return dict(spec.environment)
    return build_environment_with_python_path(spec, client.inspect_image(spec.image)["Config"] or {})
