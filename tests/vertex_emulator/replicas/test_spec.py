import json
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.jobs import custom_job, custom_job_spec, pool
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database.records import Replica, RestartHistory
from vertex_emulator.errors import ReplicaCannotStart
from vertex_emulator.faults import InjectedFault
from vertex_emulator.replicas.mounts import Mount
from vertex_emulator.replicas.size import Host
from vertex_emulator.replicas.spec import Home, ReplicaSpec, build

HOST = Host(cpus=8, memory=64 << 30, gpus=("0", "1"))


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    data = DataFolder.open(tmp_path)
    (data.buckets / "bkt").mkdir()
    return data


def package(*uris: str, **fields: Any) -> dict[str, Any]:
    """A worker pool of a Python package."""
    spec = {"executorImageUri": "trainer:1", "packageUris": list(uris), "pythonModule": "t.task", **fields}
    return {"machineSpec": {"machineType": "n1-standard-4"}, "pythonPackageSpec": spec}


def made(data: DataFolder, *pools: dict[str, Any], **spec: Any) -> ReplicaSpec:
    """What is started for the primary replica."""
    return build(custom_job(custom_job_spec(*pools, **spec)), Replica(0, 0), data, HOST)


def test_only_custom_containers_are_called_custom(data: DataFolder) -> None:
    assert made(data, pool()).environment["AIP_USE_CUSTOM_CONTAINER"] == "true"
    (data.buckets / "bkt" / "t.whl").touch()
    assert "AIP_USE_CUSTOM_CONTAINER" not in made(data, package("gs://bkt/t.whl")).environment


def test_references_are_expanded_in_module_arguments_only(data: DataFolder) -> None:
    (data.buckets / "bkt" / "$(RANK).whl").touch()
    spec = made(data, package("gs://bkt/$(RANK).whl", args=["$(RANK)", "$$(RANK)"]))
    assert spec.args is not None
    assert json.loads(spec.args[0]) == ["gs://bkt/$(RANK).whl"]
    assert spec.args[1:] == ["t.task", "0", "$(RANK)"]
    assert spec.image == "trainer:1"


@pytest.mark.parametrize("uri", ["gs://bkt/none.whl", "gs://bkt", "gs://bkt/../../x.whl", "gs://other-bucket/x.whl"])
def test_package_outside_buckets_is_named(data: DataFolder, uri: str) -> None:
    with pytest.raises(ReplicaCannotStart, match=uri.replace(".", r"\.")):
        made(data, package(uri))


def test_file_blocking_output_folder_is_named(data: DataFolder) -> None:
    (data.buckets / "bkt" / "run").touch()
    with pytest.raises(ReplicaCannotStart, match=r"AIP_MODEL_DIR.*bkt/run is a file"):
        made(data, pool(), baseOutputDirectory={"outputUriPrefix": "gs://bkt/run"})


def test_only_the_bucket_of_outputs_is_made(data: DataFolder) -> None:
    made(data, pool(), baseOutputDirectory={"outputUriPrefix": "gs://new/run"})
    assert sorted(path.name for path in data.buckets.rglob("*")) == ["bkt", "new"]


def test_only_buckets_can_be_written_to(data: DataFolder) -> None:
    """The folder of buckets is read-only, and nothing is mounted that a container may have put in place of one."""
    (data.buckets / "link").symlink_to("/etc")
    (data.buckets / "file").touch()
    (data.buckets / "No bucket:rw").mkdir()
    mounted = {mount.target: mount.read_only for mount in made(data, pool()).mounts}
    assert mounted == {"/gcs": True, "/gcs/bkt": False}


def test_parallel_replicas_and_trials_take_different_gpus(data: DataFolder) -> None:
    gpu = {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
    spec = custom_job_spec({**pool(), "machineSpec": gpu}, {**pool(), "machineSpec": gpu})
    jobs = [custom_job(spec), custom_job(spec, study="7", trial=1), custom_job(spec, study="7", trial=2)]
    taken = [[build(job, place, data, HOST).limits.gpus for place in job.requested_replicas] for job in jobs]
    assert taken == [[("0",), ("1",)], [("1",), ("0",)], [("0",), ("1",)]]


def test_what_is_mounted_and_set_is_added_up(data: DataFolder) -> None:
    """A trial with a share, a way home and a debugger: none of them replaces another, or a part of the pool's own."""
    share = {"server": "10.0.0.2", "path": "/share", "mountPoint": "data"}
    own = [{"name": "OWN", "value": "1"}, {"name": "STORAGE_EMULATOR_HOST", "value": "http://own"}]
    mounting = {**pool(env=own), "nfsMounts": [share]}
    history = RestartHistory(attempts={"workerpool0-0": 2})
    job = custom_job(custom_job_spec(mounting), study="7", trial=1, fault=InjectedFault("debug"), restarts=history)
    home = Home(
        {"SECRET": "2", "STORAGE_EMULATOR_HOST": "http://home"},
        {"storage.googleapis.com": "169.254.169.254"},
        [Mount("/trusted.pem", "/run/ca.pem", read_only=True)],
        leading={"JAVA_TOOL_OPTIONS": "-Da=1"},
    )
    spec = build(job, Replica(0, 0, 2), data, HOST, "acc", home)
    assert [mount.target for mount in spec.mounts] == [
        "/gcs",
        "/gcs/bkt",
        "/mnt/nfs/data",
        "/tmp/hypertune",
        "/opt/vertex-emulator",
        "/run/ca.pem",
    ]
    assert {"OWN", "SECRET", "RANK", "CLOUD_ML_HP_METRIC_TAG", "VERTEX_EMULATOR_DEBUGGER"} <= set(spec.environment)
    assert spec.environment["STORAGE_EMULATOR_HOST"] == "http://own"
    assert spec.leading == {"JAVA_TOOL_OPTIONS": "-Da=1", "PYTHONPATH": "/opt/vertex-emulator/startup"}
    assert spec.hosts == home.hosts
    assert spec.replica == Replica(0, 0, 2)
