"""The records of schedules and their runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from vertex_api.schedules.schedule_request_types import ScheduledJob, ScheduleRequest
from vertex_emulator.names import Location

RunState = Literal["RUNNING", "SUCCEEDED", "FAILED", "SKIPPED"]


@dataclass(frozen=True)
class Schedule:
    """A schedule. Times are ns since 1970; each of its times up to `handled_until` has its run, or needs none."""

    sequence: int
    location: Location
    request: ScheduleRequest
    created: int
    handled_until: int

    @property
    def name(self) -> str:
        """The resource name, with the project's number."""
        return f"{self.location.name}/schedules/{self.request.id}"


@dataclass(frozen=True)
class SubmittedJob:
    """A job of a run: its resource name, and once it has succeeded, where its model is, if anywhere."""

    resource_name: str
    has_succeeded: bool = False
    model_dir: str | None = None


@dataclass(frozen=True)
class ScheduleRun:
    """A run of a schedule at a `time` (ns since 1970).

    `jobs` are those of the schedule when the run began, none once it has ended. `submitted` has jobs by their names in
    the schedule. A run that failed or was skipped has a `reason`.
    """

    sequence: int
    schedule: int
    run_id: str
    time: int
    state: RunState
    reason: str | None = None
    jobs: tuple[ScheduledJob, ...] = ()
    submitted: Mapping[str, SubmittedJob] = field(default_factory=dict)
