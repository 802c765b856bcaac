"""The schedules that a preview adds, changes or removes, and why: by the resources of either target."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..preview.reports import parse_schedule_lines
from ..runtime import DYNAMIC_TYPE
from ..schedules.lines import is_next_times
from .image_and_package_changes import get_nouns_and_names_by_uri
from .input_changes import InputChange, find_input_changes, find_value_changes, format_short_value_or_none
from .job_changes import Cause, find_causes
from .preview_document import Diagnostic, Step

_EMULATOR_SCHEDULE = f"{DYNAMIC_TYPE}EmulatorSchedule"
_SCHEDULER_JOB = "gcp:cloudscheduler/job:Job"
_WORKFLOW = "gcp:workflows/workflow:Workflow"
_STATUS = f"{DYNAMIC_TYPE}ScheduleStatus"
_SUFFIXES = {_EMULATOR_SCHEDULE: "", _SCHEDULER_JOB: "-scheduler", _WORKFLOW: "-workflow", _STATUS: ""}
"""The types of a schedule's resources, and what their names have after the schedule's."""
_COMPONENT = "vertex-training:index:Schedule$"
_FIELDS = {"schedule": "cron", "jobs": "requests"}
"""What declarations, and this review, call inputs of these resources."""
_BODY = "body"
_SOURCE = "sourceContents"


@dataclass(frozen=True)
class ScheduleFinding:
    """A schedule that is `new`, `changed` or `removed`. `cron`, `time_zone` and `is_paused` are those after the update.

    Of a schedule that is removed they are those before it. `next_times` and `cost` are what the preview says of them.
    """

    name: str
    change: str
    cron: str
    time_zone: str
    is_paused: bool
    causes: tuple[Cause, ...] = ()
    next_times: str = ""
    cost: str = ""


def is_part_of_schedule(step: Step) -> bool:
    """Return whether a step is of one of the resources that a schedule consists of."""
    return step.type in _SUFFIXES and _COMPONENT in step.urn


def find_changed_schedules(
    reviewed_steps: Iterable[Step], all_steps: Iterable[Step], diagnostics: Iterable[Diagnostic]
) -> list[ScheduleFinding]:
    """Find the schedules among `reviewed_steps` that a preview changes.

    `all_steps` and `diagnostics` are those of the whole preview.
    """
    all_steps, diagnostics = list(all_steps), list(diagnostics)
    next_times = {each.name: each.message.strip() for each in diagnostics if is_next_times(each.message)}
    costs = parse_schedule_lines(each.message for each in diagnostics)
    uris = get_nouns_and_names_by_uri(all_steps)
    parts: dict[str, list[Step]] = {}
    for step in reviewed_steps:
        if is_part_of_schedule(step) and step.type != _STATUS and step.op != "same":
            parts.setdefault(_get_schedule_name(step), []).append(step)
    times = {_get_schedule_name(step): step.new_or_old_inputs for step in all_steps if _has_cron_inputs(step)}
    findings = [
        _build_schedule_finding(name, group, times.get(name, {}), uris) for name, group in sorted(parts.items())
    ]
    return [replace(each, next_times=next_times.get(each.name, ""), cost=costs.get(each.name, "")) for each in findings]


def _get_schedule_name(step: Step) -> str:
    return step.name.removesuffix(_SUFFIXES[step.type])


def _has_cron_inputs(step: Step) -> bool:
    return step.type in (_EMULATOR_SCHEDULE, _SCHEDULER_JOB) and is_part_of_schedule(step)


def _build_schedule_finding(
    name: str,
    steps: Iterable[Step],
    cron_inputs: Mapping[str, Any],
    nouns_and_names_by_uri: Mapping[str, tuple[str, str]],
) -> ScheduleFinding:
    steps = list(steps)
    change = "changed"
    if all(step.old_inputs is None for step in steps):
        change = "new"
    elif all(step.new_inputs is None for step in steps):
        change = "removed"
    changes = [each for step in steps for each in _find_input_changes_at_declared_paths(step)]
    causes = find_causes(changes, nouns_and_names_by_uri) or (Cause("request"),)
    return ScheduleFinding(
        name,
        change,
        format_short_value_or_none(cron_inputs.get("cron") or cron_inputs.get("schedule")) or "",
        format_short_value_or_none(cron_inputs.get("timeZone")) or "",
        cron_inputs.get("paused") is True,
        causes if change == "changed" else (),
    )


def _find_input_changes_at_declared_paths(step: Step) -> list[InputChange]:
    changes = []
    for change in find_input_changes(step):
        changes += _find_changes_in_workflow_source(change) if change.path == (_SOURCE,) else [change]
    return [replace(change, path=_get_declared_path(change.path)) for change in changes]


def _get_declared_path(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return a path as declarations have it: that of a job's field begins after the `body` of its request."""
    if _BODY in path[:-1]:
        return path[len(path) - path[::-1].index(_BODY) :]
    return (_FIELDS.get(str(path[0]), path[0]), *path[1:])


def _find_changes_in_workflow_source(change: InputChange) -> list[InputChange]:
    """Return what differs in the source of a workflow, which is JSON with the requests of the jobs in it."""
    try:
        return find_value_changes(json.loads(change.old_value), json.loads(change.new_value))
    except (TypeError, ValueError):
        return [change]  # not known in this preview
