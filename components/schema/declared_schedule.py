"""DeclaredSchedule: when jobs run again, and which jobs those are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.schedules import Overlap


@dataclass(frozen=True)
class DeclaredSchedule:
    """One valid schedule, with its defaults. `job_names` are in the order in which a run submits the jobs."""

    name: str
    cron: str
    job_names: tuple[str, ...]
    time_zone: str = "UTC"
    paused: bool = False
    overlap: Overlap = "skip"

    @classmethod
    def from_canonical(cls, name: str, fields: Mapping[str, Any]) -> "DeclaredSchedule":
        """Return the schedule of a canonical `declaration_types.Schedule`."""
        options = {"time_zone": "timeZone", "paused": "paused", "overlap": "overlap"}
        given = {argument: fields[key] for argument, key in options.items() if key in fields}
        return cls(name, fields["cron"], tuple(list_job_names(fields)), **given)


def list_job_names(fields: Any) -> list[str]:
    """Return the names of jobs in a schedule as it is written, valid or not."""
    if not isinstance(fields, Mapping):
        return []
    names = fields.get("jobs")
    return [name for name in [fields.get("job"), *(names if isinstance(names, list) else [])] if isinstance(name, str)]
