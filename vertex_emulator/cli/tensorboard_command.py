"""The command `tensorboard`: an installed TensorBoard on the event files of a job."""

import importlib.util
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

from vertex_emulator.cli.broken_pipe import discard_further_output
from vertex_emulator.cli.emulator_requests import send_request
from vertex_emulator.cli.signal_forwarding import SignalForwarding
from vertex_emulator.data_folder import require_endpoint
from vertex_emulator.errors import EmulatorError

_HOST = "127.0.0.1"
_DEFAULT_PORT = 6006  # TensorBoard's own
_POLL_SECONDS = 0.2
_SECONDS_BETWEEN_TRIAL_LOOKUPS = 5.0


def run_tensorboard(data_path: Path, job: str, port: int | None) -> int:
    """Run TensorBoard on the log folder of a job, or of each trial of a study, until it ends; return its exit code.

    `job` is an id or a full name, `port` is free by default. Signals are passed on, SIGINT as SIGTERM: TensorBoard
    needs seconds to start, and a Ctrl-C in them would make it print a traceback. Raises EmulatorError for a job that
    does not exist or has no output directory, and if TensorBoard is not installed.
    """
    program = _require_tensorboard_command()
    found = _fetch_event_file_folders_reply(data_path, job)
    if not found["folders"]:
        raise EmulatorError(
            f"{found['name']} has no folder of event files: its spec has no baseOutputDirectory, or nothing has started"
        )
    if port is not None and _is_port_in_use(port):
        raise EmulatorError(f"port {port} is in use; choose another with --port")
    port = port or _find_default_or_free_port()
    if not any(folder["hasEventFiles"] for folder in found["folders"]):
        _print_note_to_stderr(
            f"no event files in {found['folders'][0]['uri']} yet; TensorBoard shows them once they are written"
        )
    with (
        tempfile.TemporaryDirectory(prefix="vertex-emulator-tensorboard-") as runs,
        SignalForwarding(interrupt_signal=signal.SIGTERM) as signals,
    ):
        watch = _TensorboardWatch(data_path, job, Path(runs), port)
        watch.link_trial_folders(found["folders"])
        is_study = bool(found["folders"][0]["name"])
        log_folder = runs if is_study else found["folders"][0]["path"]
        with watch:
            options = ["--logdir", log_folder, "--host", _HOST, "--port", str(port)]
            exit_code = signals.run_child([*program, *options], os.environ)
    return exit_code if exit_code >= 0 else 128 - exit_code


class _TensorboardWatch:
    """While TensorBoard runs: prints where, once it answers, and adds the trials that start."""

    def __init__(self, data_path: Path, job: str, runs: Path, port: int) -> None:
        self._data_path, self._job, self._runs, self._port = data_path, job, runs, port
        self._is_over = Event()
        self._thread = Thread(target=self._print_address_and_link_new_trials, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def link_trial_folders(self, folders: Sequence[Mapping[str, Any]]) -> None:
        """Give each trial's folder a name in the folder of runs, which TensorBoard shows."""
        for folder in folders:
            link = self._runs / folder["name"]
            if folder["name"] and not link.is_symlink():
                link.symlink_to(folder["path"])

    def _print_address_and_link_new_trials(self) -> None:
        while not self._is_over.wait(_POLL_SECONDS):
            if _is_port_in_use(self._port):
                try:
                    sys.stdout.write(f"TensorBoard of {self._job}: http://{_HOST}:{self._port}/\n")
                    sys.stdout.flush()
                except BrokenPipeError:
                    discard_further_output()
                break
        while not self._is_over.wait(_SECONDS_BETWEEN_TRIAL_LOOKUPS):
            try:
                self.link_trial_folders(_fetch_event_file_folders_reply(self._data_path, self._job)["folders"])
            except EmulatorError:
                continue  # the emulator may be restarted, or the job deleted


def _require_tensorboard_command() -> list[str]:
    if found := shutil.which("tensorboard"):
        return [found]
    if importlib.util.find_spec("tensorboard") is not None:
        return [sys.executable, "-m", "tensorboard.main"]
    raise EmulatorError("tensorboard is not installed; pip install tensorboard, which needs no TensorFlow")


def _fetch_event_file_folders_reply(data_path: Path, job: str) -> Any:
    path = f"/vertex_emulator/jobs/{quote(job.rpartition('/')[2], safe='')}/log_folders"
    return send_request(require_endpoint(data_path), path)


def _find_default_or_free_port() -> int:
    if not _is_port_in_use(_DEFAULT_PORT):
        return _DEFAULT_PORT
    with socket.create_server((_HOST, 0)) as free:
        return int(free.getsockname()[1])


def _is_port_in_use(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((_HOST, port)) == 0


def _print_note_to_stderr(text: str) -> None:
    sys.stderr.write(f"vertex-emulator: {text}\n")
