"""The command `shell`: a shell in a running replica, at this terminal or with what a pipe sends it."""

import contextlib
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from vertex_api.names import TERMINAL_STATES
from vertex_emulator.cli.emulator_requests import send_request
from vertex_emulator.cli.terminal_session import run_terminal_session
from vertex_emulator.data_folder import require_endpoint
from vertex_emulator.errors import EmulatorError, ReplicaNotRunning
from vertex_emulator.replicas.docker.daemon_connection_check import raise_unless_docker_daemon_listens
from vertex_emulator.replicas.docker.docker_client_creation import create_docker_client
from vertex_emulator.replicas.docker.exec_stream import ExecStream
from vertex_emulator.replicas.executor_protocol import STDOUT

_FIRST_TASK = "workerpool0-0"
_FIND_SHELL = ("/bin/sh", "-c", "command -v bash || command -v sh")
_SESSION = "VERTEX_EMULATOR_SHELL"  # in the environment of a shell and all that it starts
# Docker ends nothing when a connection is closed, and the daemon's numbers of processes are not the container's.
_HANG_UP = """\
for folder in /proc/[0-9]*; do
  grep -q "$0" "$folder/environ" 2>/dev/null && kill -HUP "${folder#/proc/}"
done
"""


def run_shell(data_path: Path, job: str, task: str | None = None, trial: int | None = None) -> int:
    """Run a shell in a replica of a job, given by id or full name; return the shell's exit code.

    A signal that ends this process, or a reader of its output that goes, hangs up the shell and what it has started, as
    the end of a terminal does.

    Raises EmulatorNotRunning, DockerMissing, ReplicaNotRunning, ExecutorUnavailable, EmulatorError for an unknown job,
    and BrokenPipeError if the reader has gone.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)  # gets the number 0, which a connection would get otherwise
    endpoint = require_endpoint(data_path)
    raise_unless_docker_daemon_listens()
    path = f"/vertex_emulator/jobs/{quote(job.rpartition('/')[2], safe='')}/replicas"
    container = require_running_container_name(send_request(endpoint, path), task, trial)
    with contextlib.closing(create_docker_client(timeout_seconds=60)) as client:
        shell = _require_shell_path(client, container)
        is_terminal = os.isatty(0) and os.isatty(1)
        session = {_SESSION: secrets.token_hex(8)}
        environment = session | ({"TERM": os.environ["TERM"]} if is_terminal and "TERM" in os.environ else {})
        try:
            return run_terminal_session(ExecStream(client, container, [shell], is_terminal, environment), is_terminal)
        except (KeyboardInterrupt, SystemExit, BrokenPipeError):
            with contextlib.suppress(EmulatorError, OSError):
                _run_for_exit_code_and_stdout(
                    client, container, ["/bin/sh", "-c", _HANG_UP, f"{_SESSION}={session[_SESSION]}"]
                )
            raise


def require_running_container_name(replicas_reply: Mapping[str, Any], task: str | None, trial: int | None) -> str:
    """Return the name of the running container that is meant, of a reply about a job's replicas.

    Raises ReplicaNotRunning, and says which tasks or trials there are.
    """
    name, replicas = replicas_reply["name"], replicas_reply["replicas"]
    if replicas_reply["state"] in TERMINAL_STATES:
        raise ReplicaNotRunning(f"{name} has ended in {replicas_reply['state']}, and its containers are gone")
    trials = sorted({replica["trial"] for replica in replicas} - {None})
    if trial is not None and trial not in trials:
        raise ReplicaNotRunning(
            f"{name} has no running trial {trial}{_render_choices_suffix('running trials', trials)}"
        )
    if trial is None and len(trials) > 1:
        raise ReplicaNotRunning(
            f"{name} has several running trials: choose one with --trial, of {_join_with_commas(trials)}"
        )
    chosen = [replica for replica in replicas if trial in (None, replica["trial"])]
    tasks = [replica["task"] for replica in chosen]
    if not chosen:
        raise ReplicaNotRunning(f"{name} is in {replicas_reply['state']} and has no running replica yet")
    task = task or _FIRST_TASK
    if task not in tasks:
        raise ReplicaNotRunning(f"{name} has no task {task}{_render_choices_suffix('tasks', tasks)}")
    container = chosen[tasks.index(task)]["container"]
    if container is None:
        running = [replica["task"] for replica in chosen if replica["container"]]
        raise ReplicaNotRunning(f"{task} of {name} does not run{_render_choices_suffix('running tasks', running)}")
    return str(container)


def _require_shell_path(client: Any, container: str) -> str:
    """Return the path of bash, else of sh, in a container. Raises ReplicaNotRunning if it has neither."""
    exit_code, output = _run_for_exit_code_and_stdout(client, container, _FIND_SHELL)
    if exit_code != 0:
        raise ReplicaNotRunning(f"the image of {container} has no shell: neither bash nor sh")
    return output.decode(errors="replace").strip()


def _run_for_exit_code_and_stdout(client: Any, container: str, command: Sequence[str]) -> tuple[int, bytes]:
    """Run a command in a container without input; return its exit code and what it writes to stdout."""
    stream = ExecStream(client, container, command)
    try:
        stream.close_input()
        output = b"".join(data for kind, data in stream.iterate_output_with_stream_numbers() if kind == STDOUT)
        return stream.wait_for_exit_code(), output
    finally:
        stream.close()


def _render_choices_suffix(label: str, choices: Sequence[Any]) -> str:
    return f"; {label}: {_join_with_commas(choices)}" if choices else ""


def _join_with_commas(choices: Sequence[Any]) -> str:
    return ", ".join(map(str, choices))
