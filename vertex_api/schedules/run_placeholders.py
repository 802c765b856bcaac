"""Runs of a schedule: their ids, and the placeholders in requests that are filled in when a run starts."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

RUN_ID = "${run.id}"
"""Stands for the id of a run in the requests of a schedule: in output folders and display names."""
SCHEDULE_LABEL = "pulumi_schedule"
"""The label of all jobs of a schedule, with the schedule's id as its value."""
JOB_LABEL = "pulumi_name"
"""The label with the name that a job has in its schedule."""
RUN_ID_LENGTH = 28
"""Characters of a run's id, such as `2026-11-22T02-00-00-1a2b3c4d`."""
RESULTS_TABLE = "jobs"
"""The table of the results of earlier jobs of a run: `${jobs.NAME.RESULT}`."""
_SUFFIX_LENGTH = 8
_REFERENCE = re.compile(r"\$\{([^}]*)\}")


def build_run_id(schedule_time: datetime, suffix: str) -> str:
    """Return the id of a run: its time in UTC, to the second, and the first eight characters of the execution's id.

    `schedule_time` has a time zone.
    """
    return f"{schedule_time.astimezone(UTC):%Y-%m-%dT%H-%M-%S}-{suffix[:_SUFFIX_LENGTH]}"


def copy_with_run_id(body: Any, run_id: str) -> Any:
    """Return a request with the id of a run in place of every `RUN_ID`."""
    return _copy_with_values(body, {RUN_ID[2:-1]: run_id})


def copy_with_results(body: Any, values_by_result: Mapping[str, Any]) -> Any:
    """Return a request with results of earlier jobs filled in, by `NAME.RESULT`; unknown ones stay as they are.

    A text that is one reference and nothing else takes the value with its type.
    """
    return _copy_with_values(body, {f"{RESULTS_TABLE}.{name}": value for name, value in values_by_result.items()})


def list_result_references(body: Any) -> list[str]:
    """Return the results of earlier jobs that a request refers to, as `NAME.RESULT`, each once and in order."""
    found: dict[str, None] = {}
    _add_references(body, found)
    return [name.removeprefix(f"{RESULTS_TABLE}.") for name in found if name.startswith(f"{RESULTS_TABLE}.")]


def _copy_with_values(value: Any, values_by_reference: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy_with_values(child, values_by_reference) for key, child in value.items()}
    if isinstance(value, list):
        return [_copy_with_values(child, values_by_reference) for child in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    if (lone := _REFERENCE.fullmatch(value)) and lone[1] in values_by_reference:
        return values_by_reference[lone[1]]
    return _REFERENCE.sub(lambda match: _format_as_text_or_json(values_by_reference.get(match[1], match[0])), value)


def _format_as_text_or_json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _add_references(value: Any, found: dict[str, None]) -> None:
    if isinstance(value, str):
        found.update(dict.fromkeys(_REFERENCE.findall(value)))
    elif isinstance(value, Mapping | list):
        for child in value.values() if isinstance(value, Mapping) else value:
            _add_references(child, found)
