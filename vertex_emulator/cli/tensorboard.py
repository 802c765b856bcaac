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

from vertex_emulator.cli.emulator import job_path, send, unserved
from vertex_emulator.cli.environment import SignalForwarding
from vertex_emulator.cli.output import discard, note
from vertex_emulator.data_folder import DataFolder, is_locked, require_endpoint
from vertex_emulator.errors import EmulatorError

_HOST = "127.0.0.1"
_DEFAULT_PORT = 6006  # TensorBoard's own
_POLL_SECONDS = 0.2
_LOOKUP_SECONDS = 5.0


def run(root: Path, job: str, port: int | None) -> int:
    """Run TensorBoard on the log folder of a job, or of each trial of a study, until it ends; return its exit code.

    The data folder has all that is needed, so neither an emulator nor Docker need run. `job` is an id or a name,
    `port` is free by default. Signals are passed on, SIGINT as SIGTERM: TensorBoard needs seconds to start, and a
    Ctrl-C in them would make it print a traceback. Raises EmulatorError for a job that does not exist or has no output
    directory, and if TensorBoard is not installed.
    """
    program = _program()
    found = _fetch_folders(root, job) if is_locked(DataFolder(root).lock) else _read_folders(root, job)
    if not found["folders"]:
        raise EmulatorError(
            f"{found['name']} has no folder of event files: its spec has no baseOutputDirectory, or nothing has started"
        )
    if port is not None and _is_in_use(port):
        raise EmulatorError(f"port {port} is in use; choose another with --port")
    port = port or _free_port()
    if not any(folder["hasEventFiles"] for folder in found["folders"]):
        note(f"no event files in {found['folders'][0]['uri']} yet; TensorBoard shows them once they are written")
    with (
        tempfile.TemporaryDirectory(prefix="vertex-emulator-tensorboard-") as runs,
        SignalForwarding(interrupt_signal=signal.SIGTERM) as signals,
    ):
        watch = _Watch(root, found["name"], Path(runs), port)
        watch.link(found["folders"])
        is_study = bool(found["folders"][0]["name"])
        log_folder = runs if is_study else found["folders"][0]["path"]
        with watch:
            options = ["--logdir", log_folder, "--host", _HOST, "--port", str(port)]
            return signals.run([*program, *options], os.environ)


class _Watch:
    """While TensorBoard runs: prints where, once it answers, and adds the trials that start."""

    def __init__(self, root: Path, job: str, runs: Path, port: int) -> None:
        self._root, self._job, self._runs, self._port = root, job, runs, port
        self._is_over = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def link(self, folders: Sequence[Mapping[str, Any]]) -> None:
        """Give each trial's folder a name in the folder of runs, which TensorBoard shows."""
        for folder in folders:
            link = self._runs / folder["name"]
            if folder["name"] and not link.is_symlink():
                link.symlink_to(folder["path"])

    def _watch(self) -> None:
        while not self._is_over.wait(_POLL_SECONDS):
            if _is_in_use(self._port):
                try:
                    sys.stdout.write(f"TensorBoard of {self._job}: http://{_HOST}:{self._port}/\n")
                    sys.stdout.flush()
                except BrokenPipeError:
                    discard()
                break
        while not self._is_over.wait(_LOOKUP_SECONDS):
            try:
                self.link(_fetch_folders(self._root, self._job)["folders"])
            except EmulatorError:
                continue  # the emulator may be restarted, or the job deleted


def _program() -> list[str]:
    if found := shutil.which("tensorboard"):
        return [found]
    if importlib.util.find_spec("tensorboard") is not None:
        return [sys.executable, "-m", "tensorboard.main"]
    raise EmulatorError(
        "tensorboard is not installed; pip install tensorboard, which needs neither TensorFlow nor Docker, or look at "
        "the scalars on the job's page"
    )


def _fetch_folders(root: Path, job: str) -> Any:
    return send(require_endpoint(root), job_path(job, "/log_folders"))


def _read_folders(root: Path, job: str) -> Any:
    """Return what the emulator would, from the data folder of one that does not run. Raises EmulatorError."""
    # Imported here, as a running emulator needs none of it.
    from vertex_emulator import event_files
    from vertex_emulator.gcs.files import BucketTree

    with unserved(root) as (data, database), database.read() as transaction:
        found = transaction.jobs.find(job)
        if found is None:
            raise EmulatorError(f"There is no job {job} in {root}; choose another folder with --data")
        folders = event_files.log_folders(transaction, found)
        return event_files.describe(BucketTree(data.buckets), found, folders)


def _free_port() -> int:
    if not _is_in_use(_DEFAULT_PORT):
        return _DEFAULT_PORT
    with socket.create_server((_HOST, 0)) as free:
        return int(free.getsockname()[1])


def _is_in_use(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((_HOST, port)) == 0
