"""The settings of all containers of an emulator: options of `vertex-emulator serve`."""

from dataclasses import dataclass

from vertex_api.jobspec import EGRESS, LOG_LIMIT_MB, PIDS_LIMIT


@dataclass(frozen=True)
class ContainerSettings:
    """What a container may use, beside the resources of its machine type.

    `pids_limit` counts processes and threads. `log_limit_mb` is the size (MiB, as Docker stores it) up to which no line
    of a replica's log is dropped. `egress` says whether containers reach other machines.
    """

    pids_limit: int = PIDS_LIMIT
    log_limit_mb: int = LOG_LIMIT_MB
    egress: bool = EGRESS
