"""Running other programs within a time limit, and the errors of a set-up."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

MAX_QUOTED_LINES = 8
GRACE_SECONDS = 10
SecondsCallback = Callable[[float], None]


class CommandFailed(Exception):
    """A program could not be started, failed, or took too long; the message ends with its last lines."""


class SetupError(Exception):
    """A step failed; the message says why and what the user can do about it."""


def run_program(
    *command: str | Path,
    limit: float,
    progress: SecondsCallback = lambda _: None,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Run `command` and return its standard output, stripped. Raises CommandFailed.

    `limit` is in seconds; `progress` is called about twice a second with the seconds passed. At the limit, and on
    Ctrl-C, the program and its children are ended.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd=folder, start_new_session=True
            )
        except OSError as error:
            raise CommandFailed(f"{command[0]}: {error.strerror}") from error
        code = _await_exit_code_or_terminate_and_return_none(process, limit, progress)
        for output in (out, err):
            output.seek(0)
        stdout, stderr = (output.read().decode(errors="replace") for output in (out, err))
    if code != 0:
        name = " ".join([Path(command[0]).name, *map(str, command[1:2])])
        outcome = f"was stopped after {limit:g} s" if code is None else f"ended with exit code {code}"
        raise CommandFailed(f"`{name}` {outcome}{render_last_lines(stdout + stderr)}")
    return stdout.strip()


def render_last_lines(program_output: str) -> str:
    """Return the last lines of a program's output, each on an indented line of its own, to append to a message."""
    lines = [line for line in program_output.splitlines() if line.strip()][-MAX_QUOTED_LINES:]
    return "".join(f"\n    {line}" for line in lines)


def _await_exit_code_or_terminate_and_return_none(
    process: subprocess.Popen[bytes], timeout: float, progress: SecondsCallback
) -> int | None:
    started = time.monotonic()
    try:
        while (passed := time.monotonic() - started) < timeout:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=min(0.5, timeout - passed))
            progress(time.monotonic() - started)
        return None
    finally:
        if process.poll() is None:
            _terminate_with_children(process)


def _terminate_with_children(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM first, so that a program can undo its mounts and temporary files."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
