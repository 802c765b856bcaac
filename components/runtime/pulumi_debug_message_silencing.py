"""Silencing of the Pulumi SDK's debug messages, unless somebody asked `pulumi` for debug output."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pulumi import log

_DEBUG_OPTION = re.compile(r"--debug\b|--verbose\b|-(?!-)\w*[dv]")
"""`--debug` and `-d` print debug messages, `--verbose` and `-v` from 3 on log them (Pulumi 3.259, `eventSink.Debugf`).

Short options may stand together (`-yd`), so an option with a `d` in its value counts too: at worst messages are sent
that nobody reads.
"""
_MAX_ANCESTORS = 8


def drop_sdk_debug_messages_unless_requested() -> None:
    """Stop the SDK from sending debug messages that the engine would drop.

    The SDK sends four of them a resource, each by an RPC that blocks the program: a quarter of a preview of 1,000
    jobs. Whether they are shown is read from the engine's command line. Where that is impossible (on Windows, in a
    program of the Automation API) they are sent.
    """
    arguments = find_pulumi_ancestor_arguments_or_none(os.getppid())
    if arguments is not None and not has_debug_option(arguments):
        log.debug = lambda *_message, **_options: None


def has_debug_option(arguments: Sequence[str]) -> bool:
    """Return whether the arguments of a `pulumi` command ask for debug output."""
    return any(_DEBUG_OPTION.match(argument) for argument in arguments)


def find_pulumi_ancestor_arguments_or_none(pid: int) -> list[str] | None:
    """Return the arguments of the `pulumi` that started the process `pid`, or `None` if none can be found."""
    for _ in range(_MAX_ANCESTORS):
        try:
            pid, command = _require_parent_pid_and_command(pid)
        except (OSError, ValueError, subprocess.SubprocessError):
            break
        if command and Path(command[0]).name == "pulumi":
            return command[1:]
    return None


def _require_parent_pid_and_command(pid: int) -> tuple[int, list[str]]:
    """Return a process's parent and its command line: from /proc, or from `ps`, which takes ten times as long."""
    process = Path(f"/proc/{pid}")
    if process.is_dir():
        # The fields after the program's name, which is in brackets: state, parent, ...
        parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        return int(parent), (process / "cmdline").read_text().rstrip("\0").split("\0")
    command = ["ps", "-ww", "-o", "ppid=", "-o", "args=", "-p", str(pid)]
    parent, *arguments = subprocess.run(command, check=True, capture_output=True, text=True, timeout=5).stdout.split()
    return int(parent), arguments
