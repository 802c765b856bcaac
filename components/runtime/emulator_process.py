"""The emulator's process: started if it is not running, and stopped, by the commands of `vertex-emulator`."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from vertex_api.client import Endpoint

from ..errors import EmulatorFailed
from .emulator_discovery import find_running_endpoint_or_none

_FOLDER = Path("/")
"""Where the emulator runs.

`python -m` puts this folder first on the import path, so it is not the user's project, whose modules may have any name.
"""


def get_data_folder() -> Path:
    """Return where the emulator keeps jobs, logs and buckets: `.emulator` in the project, or `VERTEX_EMULATOR_DATA`."""
    return Path(os.environ.get("VERTEX_EMULATOR_DATA") or ".emulator").absolute()


def start_emulator_unless_running(serve_options: Sequence[str] = ()) -> Endpoint:
    """Return the emulator's endpoint, after starting it with options if it is not running. Raises EmulatorFailed."""
    return find_running_endpoint_or_none(get_data_folder()) or _start_and_require_endpoint(serve_options)


def stop_emulator_and_print_outcome(*, only_if_idle: bool = False) -> None:
    """Stop the emulator, with `only_if_idle` unless jobs are active; print what happens. Raises EmulatorFailed."""
    done = _run_emulator_command_unchecked("stop", *(["--if-idle"] if only_if_idle else []))
    if done.stdout.strip():
        print(done.stdout.strip(), flush=True)  # noqa: T201
    if done.returncode:
        raise EmulatorFailed(f"the emulator does not stop: {_get_last_line_or_placeholder(done.stderr)}")


def _start_and_require_endpoint(serve_options: Sequence[str]) -> Endpoint:
    done = _run_emulator_command_unchecked("start", *serve_options)
    if done.returncode:
        raise EmulatorFailed(f"the emulator does not start: {_get_last_line_or_placeholder(done.stderr)}")
    if endpoint := find_running_endpoint_or_none(get_data_folder()):
        return endpoint
    raise EmulatorFailed(f"the emulator has ended right after its start; its log is {get_data_folder()}/emulator.log")


def _run_emulator_command_unchecked(verb: str, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        _build_emulator_command(verb, *options),
        cwd=_FOLDER,
        env=_copy_environment_without_pulumi(),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _build_emulator_command(verb: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "vertex_emulator", verb, f"--data={get_data_folder()}", *options]


def _copy_environment_without_pulumi() -> dict[str, str]:
    """Return the environment without the variables of Pulumi's plugins, which hold the stack's secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")}


def _get_last_line_or_placeholder(output: str) -> str:
    """Return the last line of a command's messages, without the command's name."""
    last_line = next((line for line in reversed(output.splitlines()) if line.strip()), "it says nothing")
    return last_line.removeprefix("vertex-emulator: ")
