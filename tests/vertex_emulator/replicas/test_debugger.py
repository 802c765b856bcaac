import os
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.jobs import IMAGE, custom_job, custom_job_spec, pool
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database.records import Replica
from vertex_emulator.faults import InjectedFault
from vertex_emulator.replicas import debugger
from vertex_emulator.replicas.debugger import Injection

PACKAGE = {"pythonPackageSpec": {"executorImageUri": IMAGE, "packageUris": ["gs://b/p"], "pythonModule": "m"}}


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder.open(tmp_path)


def inject(data: DataFolder, fault: InjectedFault | None, task: Replica, *pools: Any) -> Injection:
    job = custom_job(custom_job_spec(*pools or (pool(), pool())), fault=fault)
    return debugger.inject(job, task, data)


def test_debugged_replica_has_debugpy_and_its_setting(data: DataFolder) -> None:
    injection = inject(data, InjectedFault("debug", wait=True), Replica(1, 0))
    assert injection.variables == {"VERTEX_EMULATOR_DEBUGGER": "25678,vertex-emulator-debugger,wait"}
    (mount,) = injection.mounts
    assert mount.read_only
    assert injection.leading == {"PYTHONPATH": f"{mount.target}/startup"}
    assert Path(mount.source, "startup", "sitecustomize.py").is_file()
    assert Path(mount.source, "libraries", "debugpy", "__init__.py").is_file()
    of_package = inject(data, InjectedFault("debug"), Replica(0, 0), PACKAGE).variables
    assert of_package == {"VERTEX_EMULATOR_DEBUGGER_OF_MODULE": "25678,vertex-emulator-debugger,"}


def test_other_jobs_and_replicas_stay_as_they_are(data: DataFolder) -> None:
    only_second = InjectedFault("debug", replica="workerpool1-0")
    for fault in (None, InjectedFault("oom"), only_second):
        assert inject(data, fault, Replica(0, 0)) == Injection()
    assert inject(data, only_second, Replica(1, 0)).mounts


def test_files_are_copied_once_and_readable_for_all(data: DataFolder) -> None:
    before = os.umask(0o077)
    try:
        folder = debugger.copy_files(data)
    finally:
        os.umask(before)
    copied = [folder, *folder.rglob("*")]
    assert len(copied) > 100 and all(path.stat().st_mode & 0o444 == 0o444 for path in copied)
    assert debugger.copy_files(data) == folder
    assert [path.name for path in data.debugger.iterdir()] == [folder.name]
