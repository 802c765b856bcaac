"""The emulator as a process of its own, which outlives whoever starts it: what the command `start` leaves running.

It is detached, in a session of its own with all three streams redirected: otherwise a terminal or Pulumi's engine
kills it together with its parent, or waits for its pipes to close.
"""

import contextlib
import fcntl
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vertex_emulator
from vertex_emulator.data_folder import (
    EXIT_ALREADY_RUNNING,
    DataFolder,
    Endpoint,
    acquire_lock,
    find_endpoint,
    is_locked,
)
from vertex_emulator.errors import StartError

_START_SECONDS = 60.0
_PROGRAM = (sys.executable, "-m", "vertex_emulator")


@dataclass(frozen=True)
class DetachedEmulator:
    """A running emulator; `process` is `None` if it ran already."""

    endpoint: Endpoint
    process: "subprocess.Popen[bytes] | None"


def start_emulator_unless_running(
    data_path: Path, serve_options: Sequence[str] = (), program: Sequence[str] = _PROGRAM
) -> DetachedEmulator:
    """Return the emulator that serves a data folder, after starting it with options of `serve` if none does.

    Of several that start one at the same time, one does. Raises StartError with the reason that the emulator gives,
    and with its exit code.
    """
    data = DataFolder.open(data_path)
    with (data.root / "start.lock").open("w") as lock, data.emulator_log.open("ab") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        log_start = log.tell()
        process: subprocess.Popen[bytes] | None = None
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if endpoint := find_endpoint(data.root):
                return DetachedEmulator(endpoint, process)
            if process is None and not is_locked(data.lock):
                _remove_endpoint_of_killed_emulator(data)
                process = _start_detached_process([*program, "serve", "--data", str(data.root), *serve_options], log)
            if process is not None and (exit_code := process.poll()) is not None:
                if exit_code != EXIT_ALREADY_RUNNING:
                    raise StartError(_read_last_log_line_or_placeholder(data.emulator_log, log_start), exit_code)
                process = None  # a `serve` that somebody typed came first, or is about to end
            time.sleep(0.02)
        if process is not None:
            process.kill()
            process.wait()
    message = f"the emulator does not answer after {_START_SECONDS:.0f} s; its log is {data.emulator_log}"
    raise StartError(message)


def _remove_endpoint_of_killed_emulator(data: DataFolder) -> None:
    """Remove the address that a killed emulator left; it would count as the next one's as soon as that has the lock."""
    with contextlib.suppress(StartError), acquire_lock(data.lock):
        data.endpoint.unlink(missing_ok=True)


def _start_detached_process(command: Sequence[str], log: Any) -> "subprocess.Popen[bytes]":
    package_folder = Path(vertex_emulator.__file__).parents[1]
    # `python -m` puts the current folder first on the import path. In a checkout Python imports the emulator from
    # there; an installed one it finds anywhere, and modules of the user's project may have any name.
    is_installed = package_folder.name in ("site-packages", "dist-packages")
    return subprocess.Popen(
        command,
        cwd="/" if is_installed else package_folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # what to export
        stderr=log,
        start_new_session=True,
    )


def _read_last_log_line_or_placeholder(log_path: Path, start_offset: int) -> str:
    output = log_path.read_bytes()[start_offset:].decode(errors="replace")
    last_line = next((line for line in reversed(output.splitlines()) if line.strip()), "")
    return last_line.removeprefix("vertex-emulator: ") or "the emulator ends without a word"
