"""The command `schedules`: its options, and the requests that it sends."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vertex_emulator.errors import EmulatorError

_EPILOG = """\
NAME is the schedule's id, PROJECT_STACK_NAME of a stack's, or its last part if no other schedule ends with that, or the
full resource name.

examples:
  vertex-emulator schedules list
  vertex-emulator schedules fire nightly
  vertex-emulator schedules pause my-project_local_nightly
  vertex-emulator schedules resume nightly
"""
_ACTIONS = {
    "fire": "begin a run of a schedule now, paused or not",
    "pause": "begin no runs of a schedule until it is resumed; runs under way go on",
    "resume": "begin runs of a paused schedule again, from now on",
}
_HEADINGS = ("SCHEDULE", "CRON", "TIME ZONE", "NEXT", "LAST RUN")
_MAX_NAMED_SCHEDULES = 10


def add_schedules_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the subparsers of `vertex-emulator`; `common` has the options of all commands."""
    parser = commands.add_parser(
        "schedules",
        help="list schedules, or fire, pause or resume one",
        description="List the schedules of a running emulator, or fire, pause or resume one. Stacks create them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("list", parents=[common], help="show all schedules with their next times and last runs")
    show.add_argument("--json", action="store_true", help="print a JSON array of the schedules, with their last runs")
    for action, text in _ACTIONS.items():
        one = actions.add_parser(action, parents=[common], help=text, description=f"{text[0].upper()}{text[1:]}.")
        one.add_argument("name", metavar="NAME", help="a schedule's id, or its last part")


def list_or_change_schedules_and_render_lines(data_path: Path, options: argparse.Namespace) -> list[str]:
    """List schedules, or fire, pause or resume one as the options say, and render lines for the terminal.

    Raises EmulatorNotRunning and EmulatorError.
    """
    # Imported here because every command builds these options and few send requests.
    from vertex_emulator.cli.emulator_requests import send_request
    from vertex_emulator.data_folder import require_endpoint

    endpoint = require_endpoint(data_path)
    schedules = send_request(endpoint, "/vertex_emulator/schedules")["schedules"]
    if options.action == "list":
        return [json.dumps(schedules, indent=2)] if options.json else _render_table_lines(schedules)
    name = require_schedule(schedules, options.name)["name"]
    changed = send_request(endpoint, f"/vertex_emulator/{name}:{options.action}", {})
    return [_describe_change(changed, options.action)]


def require_schedule(schedules: Sequence[Mapping[str, Any]], name_or_suffix: str) -> Mapping[str, Any]:
    """Return the schedule that a name means: the resource name, the id, or what the id ends with after `_` or `-`.

    Raises EmulatorError if it means none or several.
    """
    meanings = (
        lambda schedule: schedule["name"] == name_or_suffix,
        lambda schedule: _get_id(schedule) == name_or_suffix,
        lambda schedule: _get_id(schedule).endswith((f"_{name_or_suffix}", f"-{name_or_suffix}")),
    )
    found = next(filter(None, ([each for each in schedules if is_meant(each)] for is_meant in meanings)), [])
    if len(found) == 1:
        return found[0]
    if found:
        several = f"more than one schedule: {_render_names(found)}"
        raise EmulatorError(f'"{name_or_suffix}" is {several}; write one of these names')
    known = f"the schedules are {_render_names(schedules)}" if schedules else "there are none"
    raise EmulatorError(f'there is no schedule "{name_or_suffix}"; {known}')


def _render_names(schedules: Sequence[Mapping[str, Any]]) -> str:
    ids = [_get_id(each) for each in schedules]
    names = [each["name"] if ids.count(id_) > 1 else id_ for each, id_ in zip(schedules, ids, strict=True)]
    more = len(names) - _MAX_NAMED_SCHEDULES
    return ", ".join([*names[:_MAX_NAMED_SCHEDULES], *([f"and {more} more"] if more > 0 else [])])


def _get_id(schedule: Mapping[str, Any]) -> str:
    return str(schedule["name"]).rpartition("/")[2]


def _describe_change(schedule: Mapping[str, Any], action: str) -> str:
    next_time = f", next at {schedule['nextTimes'][0]}" if schedule["nextTimes"] else ""
    match action:
        case "fire":
            return f"fired {_get_id(schedule)}: run {schedule['runs'][0]['runId']}"
        case "pause":
            return f"paused {_get_id(schedule)}"
        case _:
            return f"resumed {_get_id(schedule)}{next_time}"


def _render_table_lines(schedules: Sequence[Mapping[str, Any]]) -> list[str]:
    if not schedules:
        return ["no schedules"]
    rows = [_HEADINGS, *map(_build_table_row, schedules)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _build_table_row(schedule: Mapping[str, Any]) -> tuple[str, ...]:
    next_time = "paused" if schedule["paused"] else next(iter(schedule["nextTimes"]), "none")
    last = schedule["runs"][0] if schedule["runs"] else None
    last_run = f"{last['scheduleTime']} {last['state'].lower()}" if last else "none"
    return (_get_id(schedule), schedule["cron"], schedule["timeZone"], next_time, last_run)
