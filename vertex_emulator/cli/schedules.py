"""The command `schedules`: list them, or fire, pause or resume one."""

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vertex_emulator.cli.emulator import send
from vertex_emulator.data_folder import require_endpoint
from vertex_emulator.errors import EmulatorError

_HEADINGS = ("SCHEDULE", "CRON", "TIME ZONE", "NEXT", "LAST RUN")
_MAX_NAMED_SCHEDULES = 10


def run(root: Path, options: Namespace) -> list[str]:
    """List schedules, or fire, pause or resume one as the options say, and render lines for the terminal.

    Raises EmulatorNotRunning and EmulatorError.
    """
    endpoint = require_endpoint(root)
    schedules = send(endpoint, "/vertex_emulator/schedules")["schedules"]
    if options.action == "list":
        return [json.dumps(schedules, indent=2)] if options.json else _table(schedules)
    resource = find(schedules, options.name)["name"]
    changed = send(endpoint, f"/vertex_emulator/{resource}:{options.action}", {})
    match options.action:
        case "fire":
            return [f"fired {_id(changed)}: run {changed['runs'][0]['runId']}"]
        case "pause":
            return [f"paused {_id(changed)}"]
        case _:
            next_time = f", next at {changed['nextTimes'][0]}" if changed["nextTimes"] else ""
            return [f"resumed {_id(changed)}{next_time}"]


def find(schedules: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """Return the schedule that a name means: the resource name, the id, or what the id ends with after `_` or `-`.

    Raises EmulatorError if it means none or several.
    """
    meanings = (
        lambda schedule: schedule["name"] == name,
        lambda schedule: _id(schedule) == name,
        lambda schedule: _id(schedule).endswith((f"_{name}", f"-{name}")),
    )
    found = next(filter(None, ([each for each in schedules if is_meant(each)] for is_meant in meanings)), [])
    if len(found) == 1:
        return found[0]
    if found:
        several = f"more than one schedule: {_names(found)}"
        raise EmulatorError(f'"{name}" is {several}; write one of these names')
    known = f"the schedules are {_names(schedules)}" if schedules else "there are none"
    raise EmulatorError(f'there is no schedule "{name}"; {known}')


def _names(schedules: Sequence[Mapping[str, Any]]) -> str:
    ids = [_id(each) for each in schedules]
    names = [each["name"] if ids.count(id_) > 1 else id_ for each, id_ in zip(schedules, ids, strict=True)]
    more = len(names) - _MAX_NAMED_SCHEDULES
    return ", ".join([*names[:_MAX_NAMED_SCHEDULES], *([f"and {more} more"] if more > 0 else [])])


def _id(schedule: Mapping[str, Any]) -> str:
    return str(schedule["name"]).rpartition("/")[2]


def _table(schedules: Sequence[Mapping[str, Any]]) -> list[str]:
    if not schedules:
        return ["no schedules"]
    rows = [_HEADINGS, *map(_row, schedules)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(schedule: Mapping[str, Any]) -> tuple[str, ...]:
    next_time = "paused" if schedule["paused"] else next(iter(schedule["nextTimes"]), "none")
    last = schedule["runs"][0] if schedule["runs"] else None
    last_run = f"{last['scheduleTime']} {last['state'].lower()}" if last else "none"
    return (_id(schedule), schedule["cron"], schedule["timeZone"], next_time, last_run)
