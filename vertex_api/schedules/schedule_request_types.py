"""ScheduleRequest: a schedule as its target runs it, with the requests of its jobs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Overlap = Literal["skip", "allow"]
"""What a schedule does if its last run is still under way at its next time."""


@dataclass(frozen=True)
class ScheduledJob:
    """A job of a schedule: its name there, its `collection` as in the API's URLs, and the `body` of its create request.

    In the body, `RUN_ID` stands for the run's id, and `${jobs.NAME.RESULT}` for a result of an earlier job of the run.
    It has no other `${`.
    """

    name: str
    collection: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class ScheduleRequest:
    """A schedule: when it runs, and its jobs in the order in which a run submits them.

    `id` names its Pulumi project, stack and schedule. `cron` and `time_zone` are valid.
    """

    id: str
    cron: str
    time_zone: str
    paused: bool
    overlap: Overlap
    jobs: tuple[ScheduledJob, ...]

    def build_json_fields_without_id(self) -> dict[str, Any]:
        """Return the schedule without its id, as the emulator's admin resource takes it."""
        fields = {"cron": self.cron, "timeZone": self.time_zone, "paused": self.paused, "overlap": self.overlap}
        return {**fields, "jobs": [asdict(job) for job in self.jobs]}
