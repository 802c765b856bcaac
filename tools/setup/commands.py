"""Running other programs: within a time limit, with their output at hand when they fail."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

QUOTED_LINES = 8
GRACE_SECONDS = 10


class CommandFailed(Exception):
    """A program could not be started, failed, or took too long; the message ends with its last lines."""


def run(
    *command: str | Path,
    limit: float,
    progress: Callable[[float], None] = lambda _: None,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Run `command` and return its standard output, stripped.

    `limit` is in seconds; `progress` is called about twice a second with the seconds passed. Raises
    CommandFailed. Whatever ends the wait early (the limit, Ctrl-C) ends the program and its children too.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd=folder, start_new_session=True
            )
        except OSError as error:
            raise CommandFailed(f"{command[0]}: {error.strerror}") from error
        code = _wait(process, limit, progress)
        stdout, stderr = _read(out), _read(err)
    if code is None:
        raise CommandFailed(f"`{_name(command)}` was stopped after {limit:g} s" + quote(stdout + stderr))
    if code != 0:
        raise CommandFailed(f"`{_name(command)}` ended with exit code {code}" + quote(stdout + stderr))
    return stdout.strip()


def quote(output: str) -> str:
    """The last lines of a program's output, indented, to be appended to a message."""
    lines = [line for line in output.splitlines() if line.strip()][-QUOTED_LINES:]
    return "".join(f"\n    {line}" for line in lines)


def _wait(process: subprocess.Popen[bytes], limit: float, progress: Callable[[float], None]) -> int | None:
    started = time.monotonic()
    try:
        while (passed := time.monotonic() - started) < limit:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=min(0.5, limit - passed))
            progress(time.monotonic() - started)
        return None
    finally:
        if process.poll() is None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks first, so that a program can undo its mounts and temporary files."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read().decode(errors="replace")


def _name(command: Sequence[str | Path]) -> str:
    """Program and first argument, enough to recognise it: `docker pull`, `go build`."""
    return " ".join([Path(command[0]).name, *(str(part) for part in command[1:2])])
