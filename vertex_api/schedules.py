"""Schedules: the request that a target runs, and what is filled in when a run starts."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

Overlap = Literal["skip", "allow"]
"""What a schedule does if its last run is still under way at its next time."""


@dataclass(frozen=True)
class ScheduledJob:
    """A job of a schedule: its name there, its `collection` as in the API's URLs, and the `body` of its create request.

    `allow` are the places of what it has although rules of the service refuse it.
    In the body, `RUN_ID` stands for the run's id, and `${jobs.NAME.RESULT}` for a result of an earlier job of the run.
    It has no other `${`.
    """

    name: str
    collection: str
    body: Mapping[str, Any]
    allow: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the job as the emulator's schedules take it."""
        fields = {"name": self.name, "collection": self.collection, "body": self.body}
        return fields | ({"allow": [*self.allow]} if self.allow else {})


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

    def to_json(self) -> dict[str, Any]:
        """Return the schedule without its id, as the emulator's admin resource takes it."""
        fields = {"cron": self.cron, "timeZone": self.time_zone, "paused": self.paused, "overlap": self.overlap}
        return {**fields, "jobs": [job.to_json() for job in self.jobs]}


RUN_ID = "${run.id}"
"""Stands for the id of a run in the requests of a schedule: in output folders and display names."""
SCHEDULE_LABEL = "pulumi_schedule"
"""The label of all jobs of a schedule, with the schedule's id as its value."""
NAME_LABEL = "pulumi_name"
"""The label with the name of a job in its stack, or in its schedule."""
RUN_ID_LENGTH = 28
"""Characters of a run's id, such as `2026-11-22T02-00-00-1a2b3c4d`."""
RESULTS_TABLE = "jobs"
"""The table of the results of earlier jobs of a run: `${jobs.NAME.RESULT}`."""
_SUFFIX_LENGTH = 8
_REFERENCE = re.compile(r"\$\{([^}]*)\}")


def new_run_id(schedule_time: datetime, suffix: str) -> str:
    """Return the id of a run: its time in UTC, to the second, and the first eight characters of the execution's id.

    `schedule_time` has a time zone.
    """
    return f"{schedule_time.astimezone(UTC):%Y-%m-%dT%H-%M-%S}-{suffix[:_SUFFIX_LENGTH]}"


def fill_run_id(body: Any, run_id: str) -> Any:
    """Return a request with the id of a run in place of every `RUN_ID`."""
    return _fill(body, {RUN_ID[2:-1]: run_id})


def fill_results(body: Any, values_by_result: Mapping[str, Any]) -> Any:
    """Return a request with results of earlier jobs filled in, by `NAME.RESULT`; unknown ones stay as they are.

    A text that is one reference and nothing else takes the value with its type.
    """
    return _fill(body, {f"{RESULTS_TABLE}.{name}": value for name, value in values_by_result.items()})


def result_references(body: Any) -> list[str]:
    """Return the results of earlier jobs that a request refers to, as `NAME.RESULT`, each once and in order."""
    found: dict[str, None] = {}
    _collect(body, found)
    return [name.removeprefix(f"{RESULTS_TABLE}.") for name in found if name.startswith(f"{RESULTS_TABLE}.")]


def _fill(value: Any, values_by_reference: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _fill(child, values_by_reference) for key, child in value.items()}
    if isinstance(value, list):
        return [_fill(child, values_by_reference) for child in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    if (lone := _REFERENCE.fullmatch(value)) and lone[1] in values_by_reference:
        return values_by_reference[lone[1]]
    return _REFERENCE.sub(lambda match: _as_text(values_by_reference.get(match[1], match[0])), value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _collect(value: Any, found: dict[str, None]) -> None:
    if isinstance(value, str):
        found.update(dict.fromkeys(_REFERENCE.findall(value)))
    elif isinstance(value, Mapping | list):
        for child in value.values() if isinstance(value, Mapping) else value:
            _collect(child, found)
