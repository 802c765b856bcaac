"""Options of Docker's HostConfig for security, logs and egress: what limits a hostile container (docs/security.md)."""

from typing import Any

from vertex_emulator.replicas.pids_log_and_egress_settings import ContainerSettings

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT")
_LOG_FILES = 5
_MB = 1 << 20
_LOG_SIZE = "max-size"


def build_security_log_and_egress_options(settings: ContainerSettings) -> dict[str, Any]:
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
