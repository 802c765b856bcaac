"""The emulator's process: started if it is not running, and stopped.

It is detached, in a session of its own with all three streams redirected: otherwise Pulumi's engine kills it together
with the provider, or waits for its pipes to close.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from vertex_api.client import Endpoint

from ..errors import EmulatorFailed
from .emulator_discovery import find_running_endpoint

START_SECONDS = 15.0
_FOLDER = Path(__file__).parents[2] if __name__.startswith("components.") else Path("/")
"""Where the emulator runs: from a checkout Python imports it there, from an installed package it imports it anywhere.

`python -m` puts this folder first on the import path, so it is not the user's project, whose modules may have any name.
"""


def get_data_folder() -> Path:
    """Return where the emulator keeps jobs, logs and buckets: `.emulator` in the project, or `VERTEX_EMULATOR_DATA`."""
    return Path(os.environ.get("VERTEX_EMULATOR_DATA") or ".emulator").absolute()


def start_emulator(serve_options: Sequence[str] = ()) -> Endpoint:
    """Return the emulator's endpoint, after starting it with options if it is not running. Raises EmulatorFailed."""
    return find_running_endpoint(get_data_folder()) or _start_or_find_under_lock(serve_options)


def stop_emulator_and_print_outcome(*, only_if_idle: bool = False) -> None:
    """Stop the emulator, with `only_if_idle` unless jobs are active; print what happens. Raises EmulatorFailed."""
    command = _build_command("stop", *(["--if-idle"] if only_if_idle else []))
    environment = _copy_environment_without_pulumi()
    done = subprocess.run(command, cwd=_FOLDER, env=environment, capture_output=True, text=True, check=False)
    if done.stdout.strip():
        print(done.stdout.strip(), flush=True)  # noqa: T201
    if done.returncode:
        raise EmulatorFailed(f"the emulator does not stop: {_get_last_line_or_placeholder(done.stderr)}")


def _start_or_find_under_lock(serve_options: Sequence[str]) -> Endpoint:
    data = get_data_folder()
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EmulatorFailed(f"the emulator's folder {data} cannot be created: {error.strerror}") from error
    with (data / "start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if endpoint := find_running_endpoint(data):
            return endpoint
        log = data / "emulator.log"
        with log.open("ab") as stream:
            log_start = stream.tell()
            process = subprocess.Popen(
                _build_command("serve", *serve_options),
                cwd=_FOLDER,
                env=_copy_environment_without_pulumi(),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if endpoint := find_running_endpoint(data):
                return endpoint
            if process.poll() is not None:
                output = log.read_bytes()[log_start:].decode(errors="replace")
                raise EmulatorFailed(f"the emulator does not start: {_get_last_line_or_placeholder(output)}")
            time.sleep(0.05)
        process.kill()
        raise EmulatorFailed(f"the emulator does not answer after {START_SECONDS:.0f} s; its log is {log}")


def _build_command(verb: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "vertex_emulator", verb, f"--data={get_data_folder()}", *options]


def _copy_environment_without_pulumi() -> dict[str, str]:
    """Return the environment without the variables of Pulumi's plugins, which hold the stack's secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")}


def _get_last_line_or_placeholder(output: str) -> str:
    return next((line for line in reversed(output.splitlines()) if line.strip()), "it says nothing")
