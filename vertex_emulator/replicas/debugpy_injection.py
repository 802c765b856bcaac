"""The injection of debugpy into the Python of replicas, as `vertex-emulator inject debug` demands.

debugpy is the emulator's own. It runs in any Python 3.10 or later: the compiled parts of its wheel, for one version and
kind of machine, only make it faster. It listens in the container alone, on an address that nothing outside reaches.
"""

import hashlib
import importlib.util
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import vertex_emulator.python_startup.debugpy_start
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.errors import DebuggerUnavailable
from vertex_emulator.replicas.executor_protocol import ReplicaSpec

CONTAINER_PORT = 25678
"""Where debugpy listens in each container: below the ports that Linux gives to outgoing connections."""
READY_SOCKET_NAME = "vertex-emulator-debugger"
"""The abstract socket that is bound in a container once debugpy takes connections: docs/gotchas.md, 2026-11-23."""
_FOLDER_IN_CONTAINER = "/opt/vertex-emulator"
_STARTUP, _LIBRARIES = "startup", "libraries"
_VARIABLE = "VERTEX_EMULATOR_DEBUGGER"
_VARIABLE_FOR_MODULE = "VERTEX_EMULATOR_DEBUGGER_OF_MODULE"  # package_runner.py hands it on to the module


def list_debugged_replicas(job: Job) -> list[Replica]:
    """List the current replicas of a job that are debugged."""
    fault = job.fault
    if fault is None or fault.kind != "debug":
        return []
    return [replica for replica in job.current_replicas if fault.replica in (None, replica.task_name)]


def add_debugger_to_spec_if_injected(job: Job, spec: ReplicaSpec, data_folder: DataFolder) -> ReplicaSpec:
    """Return the spec of a replica, with the debugger if the job's replica is debugged. Raises DebuggerUnavailable."""
    if job.fault is None or spec.replica not in list_debugged_replicas(job):
        return spec
    is_package = "pythonPackageSpec" in job.spec["jobSpec"]["workerPoolSpecs"][spec.replica.pool]
    variable = _VARIABLE_FOR_MODULE if is_package else _VARIABLE
    setting = f"{CONTAINER_PORT},{READY_SOCKET_NAME},{'wait' if job.fault.wait else ''}"
    return replace(
        spec,
        environment={**spec.environment, variable: setting},
        read_only_mounts={str(ensure_debugger_files_and_get_folder(data_folder)): _FOLDER_IN_CONTAINER},
        python_path=f"{_FOLDER_IN_CONTAINER}/{_STARTUP}",
    )


def ensure_debugger_files_and_get_folder(data_folder: DataFolder) -> Path:
    """Copy what Python needs in containers to the data folder unless it is there, and return that folder.

    The machine's daemon mounts it: it does not have the files of an emulator that runs in a container itself. Raises
    DebuggerUnavailable.
    """
    debugpy = require_debugpy_folder()
    startup = Path(vertex_emulator.python_startup.debugpy_start.__path__[0])
    digest = hashlib.sha256((startup / "sitecustomize.py").read_bytes()).hexdigest()[:12]
    target = data_folder.debugger / f"debugpy-{_read_debugpy_version()}-{digest}"
    if target.is_dir():
        return target
    ignored = shutil.ignore_patterns("__pycache__")
    data_folder.debugger.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=data_folder.debugger) as partial:
        shutil.copytree(debugpy, Path(partial, "copy", _LIBRARIES, "debugpy"), ignore=ignored)
        shutil.copytree(startup, Path(partial, "copy", _STARTUP), ignore=ignored)
        _make_readable_for_every_user(Path(partial, "copy"))
        try:
            Path(partial, "copy").rename(target)
        except OSError:
            if not target.is_dir():  # another replica's copy came first
                raise
    return target


def require_debugpy_folder() -> Path:
    """Return the folder of the debugpy that is installed beside the emulator. Raises DebuggerUnavailable."""
    found = importlib.util.find_spec("debugpy")
    if found is None or not found.submodule_search_locations:
        raise DebuggerUnavailable("debugpy is not installed; pip install 'vertex-training[emulator]'")
    return Path(found.submodule_search_locations[0])


@cache
def _read_debugpy_version() -> str:
    from importlib.metadata import version

    return version("debugpy")


def _make_readable_for_every_user(folder: Path) -> None:
    """Let containers read a folder, whatever their users are and whatever this user's umask is."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
