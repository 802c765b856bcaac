"""The command `exec`: another command, with everything set that leads Google's clients to an emulator."""

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import vertex_emulator.python_startup.google_sdk_defaults
from vertex_emulator.cli.detached_emulator import start_emulator_unless_running
from vertex_emulator.cli.env_command import build_environment_variables
from vertex_emulator.cli.signal_forwarding import SignalForwarding
from vertex_emulator.cli.status_stop_reset_commands import count_unfinished_jobs, stop_emulator_and_describe
from vertex_emulator.data_folder import DataFolder, Endpoint
from vertex_emulator.errors import CommandNotRun, EmulatorError


def run_command_with_emulator(data_path: Path, project: str, region: str, command: Sequence[str]) -> int:
    """Run a command, with or without `--` before it, with the emulator of a data folder; return its exit code.

    Signals are passed on to the command. Raises CommandNotRun.
    """
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        raise CommandNotRun("which command? Write it after --, as in: vertex-emulator exec -- pytest", 2)
    executable = _require_executable(command[0])
    data = DataFolder(data_path.absolute())
    with SignalForwarding() as signals, _start_unless_running_and_stop_when_unused(data) as endpoint:
        environment = {
            **os.environ,
            **build_environment_variables(endpoint, data.root, project, region),
            "VERTEX_EMULATOR_DATA": str(data.root),
            "PYTHONPATH": _build_python_path_with_startup_folder(os.environ),
        }
        exit_code = signals.run_child([executable, *command[1:]], environment)
    return exit_code if exit_code >= 0 else 128 - exit_code


def _require_executable(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        if os.sep in name and Path(name).exists():
            raise CommandNotRun(f"{name} is not executable", 126)
        raise CommandNotRun(f"{name} is not found", 127)
    return found


@contextlib.contextmanager
def _start_unless_running_and_stop_when_unused(data: DataFolder) -> Iterator[Endpoint]:
    """Yield the endpoint of an emulator. One that is started here is stopped when no `exec` uses it any more."""
    try:
        DataFolder.open(data.root)
        exec_lock = (data.root / "exec.lock").open("w")
    except EmulatorError as error:
        raise CommandNotRun(str(error), 125) from error
    with exec_lock:
        fcntl.flock(exec_lock, fcntl.LOCK_SH)
        try:
            emulator = start_emulator_unless_running(data.root)
        except EmulatorError as error:
            raise CommandNotRun(str(error), 125) from error
        try:
            yield emulator.endpoint
        finally:
            if emulator.process is not None:
                _wait_for_other_execs(exec_lock)
                _stop_emulator_and_print_unfinished_job_count(data.root, emulator.endpoint)
                emulator.process.wait()


def _stop_emulator_and_print_unfinished_job_count(data_path: Path, endpoint: Endpoint) -> None:
    try:
        if unfinished := count_unfinished_jobs(endpoint):
            jobs = "1 job has" if unfinished == 1 else f"{unfinished} jobs have"
            _print_note_to_stderr(f"{jobs} not ended; containers keep running, and the next start finds them")
        stop_emulator_and_describe(data_path, only_if_idle=False)
    except EmulatorError as error:
        _print_note_to_stderr(str(error))


def _wait_for_other_execs(exec_lock: Any) -> None:
    try:
        fcntl.flock(exec_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _print_note_to_stderr("another `vertex-emulator exec` uses the emulator; waiting for its end")
        fcntl.flock(exec_lock, fcntl.LOCK_EX)


def _print_note_to_stderr(text: str) -> None:
    sys.stderr.write(f"vertex-emulator: {text}\n")


def _build_python_path_with_startup_folder(environ: Mapping[str, str]) -> str:
    (folder,) = vertex_emulator.python_startup.google_sdk_defaults.__path__
    return os.pathsep.join([folder, *([environ["PYTHONPATH"]] if environ.get("PYTHONPATH") else [])])
