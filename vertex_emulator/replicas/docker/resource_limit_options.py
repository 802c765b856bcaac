"""Resource limits as options of Docker's HostConfig."""

from typing import Any

from vertex_emulator.replicas.executor_protocol import ResourceLimits


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
