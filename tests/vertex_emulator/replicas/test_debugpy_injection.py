import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.jobs import IMAGE, custom_job, custom_job_spec, pool
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database.records import Replica
from vertex_emulator.faults import InjectedFault
from vertex_emulator.replicas.debugpy_injection import (
    add_debugger_to_spec_if_injected,
    ensure_debugger_files_and_get_folder,
)
from vertex_emulator.replicas.executor_protocol import ReplicaSpec

PACKAGE = {"pythonPackageSpec": {"executorImageUri": IMAGE, "packageUris": ["gs://b/p"], "pythonModule": "m"}}
SPEC = ReplicaSpec("42", Replica(0, 0), IMAGE, None, None, {"A": "1"}, "host", "cluster", {}, ["cluster"])


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder.open(tmp_path)


def add(data: DataFolder, fault: InjectedFault | None, task: Replica, *pools: Any) -> ReplicaSpec:
    job = custom_job(custom_job_spec(*pools or (pool(), pool())), fault=fault)
    return add_debugger_to_spec_if_injected(job, replace(SPEC, replica=task), data)


def test_a_debugged_replica_has_debugpy_and_its_setting(data: DataFolder) -> None:
    spec = add(data, InjectedFault("debug", wait=True), Replica(1, 0))
    assert spec.environment == {"A": "1", "VERTEX_EMULATOR_DEBUGGER": "25678,vertex-emulator-debugger,wait"}
    ((folder, mounted_at),) = spec.read_only_mounts.items()
    assert spec.python_path == f"{mounted_at}/startup"
    assert Path(folder, "startup", "sitecustomize.py").is_file()
    assert Path(folder, "libraries", "debugpy", "__init__.py").is_file()
    of_package = add(data, InjectedFault("debug"), Replica(0, 0), PACKAGE).environment
    assert of_package == {"A": "1", "VERTEX_EMULATOR_DEBUGGER_OF_MODULE": "25678,vertex-emulator-debugger,"}


def test_other_jobs_and_replicas_stay_as_they_are(data: DataFolder) -> None:
    only_second = InjectedFault("debug", replica="workerpool1-0")
    for fault, task in ((None, (0, 0)), (InjectedFault("oom"), (0, 0)), (only_second, (0, 0))):
        assert add(data, fault, Replica(*task)) == replace(SPEC, replica=Replica(*task))
    assert add(data, only_second, Replica(1, 0)).read_only_mounts
    assert add(data, InjectedFault("oom"), Replica(0, 0)).python_path is None


def test_the_files_are_copied_once_and_readable_for_all(data: DataFolder) -> None:
    before = os.umask(0o077)
    try:
        folder = ensure_debugger_files_and_get_folder(data)
    finally:
        os.umask(before)
    copied = [folder, *folder.rglob("*")]
    assert len(copied) > 100 and all(path.stat().st_mode & 0o444 == 0o444 for path in copied)
    assert ensure_debugger_files_and_get_folder(data) == folder
    assert [path.name for path in data.debugger.iterdir()] == [folder.name]
