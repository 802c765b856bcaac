"""Resource limits as options of Docker's HostConfig."""

from typing import Any

from vertex_emulator.replicas.executor_protocol import ResourceLimits


def build_limit_options(resources: ResourceLimits) -> dict[str, Any]:
    """Build arguments of the SDK's `create_host_config`; without swap, which would only delay running out of memory."""
    from docker.types import DeviceRequest

    options: dict[str, Any] = {}
    if resources.cpus is not None:
        options["nano_cpus"] = resources.cpus * 10**9
    if resources.memory is not None:
        options["mem_limit"] = options["memswap_limit"] = resources.memory
    if resources.shared_memory is not None:
        options["shm_size"] = resources.shared_memory
    if resources.gpus:
        driver = "cdi" if "=" in resources.gpus[0] else "nvidia"
        options["device_requests"] = [
            DeviceRequest(driver=driver, device_ids=list(resources.gpus), capabilities=[["gpu"]])
        ]
    return options
