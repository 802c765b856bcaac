"""The injection of debugpy into the Python of replicas, as `vertex-emulator inject debug` demands.

debugpy is the emulator's own. It runs in any Python 3.10 or later: the compiled parts of its wheel, for one version and
kind of machine, only make it faster. It listens in the container alone, on an address that nothing outside reaches.
"""

import hashlib
import importlib.util
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from vertex_emulator import programs
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.errors import DebuggerUnavailable
from vertex_emulator.replicas.mounts import Mount

CONTAINER_PORT = 25678
"""Where debugpy listens in each container: below the ports that Linux gives to outgoing connections."""
READY_SOCKET = "vertex-emulator-debugger"
"""The abstract socket that is bound in a container once debugpy takes connections: docs/gotchas.md, 2026-11-23."""
_TARGET = "/opt/vertex-emulator"
_STARTUP, _LIBRARIES = "startup", "libraries"
_VARIABLE = "VERTEX_EMULATOR_DEBUGGER"
_VARIABLE_FOR_MODULE = "VERTEX_EMULATOR_DEBUGGER_OF_MODULE"  # programs/package.py hands it on to the module


@dataclass(frozen=True)
class Injection:
    """What a debugger adds to a replica: nothing by default."""

    variables: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    leading: Mapping[str, str] = field(default_factory=dict)


def debugged_replicas(job: Job) -> list[Replica]:
    """The current replicas of a job that are debugged."""
    fault = job.fault
    if fault is None or fault.kind != "debug":
        return []
    return [replica for replica in job.current_replicas if fault.replica in (None, replica.task_name)]


def inject(job: Job, replica: Replica, data: DataFolder) -> Injection:
    """What is added to a replica, if it is debugged. Raises DebuggerUnavailable."""
    if job.fault is None or replica not in debugged_replicas(job):
        return Injection()
    is_package = "pythonPackageSpec" in job.spec["jobSpec"]["workerPoolSpecs"][replica.pool]
    variable = _VARIABLE_FOR_MODULE if is_package else _VARIABLE
    setting = f"{CONTAINER_PORT},{READY_SOCKET},{'wait' if job.fault.wait else ''}"
    mount = Mount(str(copy_files(data)), _TARGET, read_only=True)
    return Injection({variable: setting}, [mount], {"PYTHONPATH": f"{_TARGET}/{_STARTUP}"})


def copy_files(data: DataFolder) -> Path:
    """Copy what Python needs in containers to the data folder unless it is there, and return its folder.

    The machine's daemon mounts it: it does not have the files of an emulator that runs in a container itself. Raises
    DebuggerUnavailable.
    """
    debugpy = require_debugpy()
    startup = programs.startup_folder("debugger")
    digest = hashlib.sha256((startup / "sitecustomize.py").read_bytes()).hexdigest()[:12]
    target = data.debugger / f"debugpy-{_debugpy_version()}-{digest}"
    if target.is_dir():
        return target
    ignored = shutil.ignore_patterns("__pycache__")
    data.debugger.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=data.debugger) as partial:
        copy = Path(partial, "copy")
        shutil.copytree(debugpy, copy / _LIBRARIES / "debugpy", ignore=ignored)
        shutil.copytree(startup, copy / _STARTUP, ignore=ignored)
        # Containers read it, whatever their users are and whatever this user's umask is.
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        try:
            copy.rename(target)
        except OSError:
            if not target.is_dir():  # another replica's copy came first
                raise
    return target


def require_debugpy() -> Path:
    """Return the folder of the debugpy that is installed beside the emulator. Raises DebuggerUnavailable."""
    found = importlib.util.find_spec("debugpy")
    if found is None or not found.submodule_search_locations:
        raise DebuggerUnavailable("debugpy is not installed; pip install 'vertex-training[emulator]'")
    return Path(found.submodule_search_locations[0])


@cache
def _debugpy_version() -> str:
    from importlib.metadata import version

    return version("debugpy")
