"""NFS shares and Lustre file systems in containers: folders of the data folder."""

from typing import Any

from tests.vertex_emulator.running import PARENT, RunningEmulator, custom_job, pool
from tests.vertex_emulator.test_studies import study

READ_AND_WRITE = """
import pathlib
print(pathlib.Path("/mnt/nfs/data/train/x.csv").read_text())
pathlib.Path("/mnt/nfs/data/model.bin").write_text("trained")
pathlib.Path("/mnt/lustre/scratch/y").write_text("fast")
"""


def test_a_job_reads_and_writes_its_shares(shared: RunningEmulator) -> None:
    share = shared.data / "nfs/10.0.0.2/exports/one"
    (share / "train").mkdir(parents=True)
    (share / "train/x.csv").write_text("1,2")
    mounts = {
        "nfsMounts": [{"server": "10.0.0.2", "path": "/exports/one", "mountPoint": "data"}],
        "lustreMounts": [
            {"instanceIp": "10.0.0.3", "filesystem": "fs", "volumeHandle": "v", "mountPoint": "scratch"},
        ],
    }
    job = shared.create(custom_job(pool(READ_AND_WRITE) | mounts))
    assert shared.ended(job)["state"] == "JOB_STATE_SUCCEEDED", shared.lines(job)
    assert shared.lines(job) == ["1,2"]
    assert (share / "model.bin").read_text() == "trained"
    assert (shared.data / "lustre/10.0.0.3/fs/y").read_text() == "fast"
    notes = shared.lines(job, 'resource.labels.task_name="service" AND severity="WARNING"')
    assert any("nfs/SERVER/PATH in the emulator's data folder" in note for note in notes)


def test_unfinished_jobs_mount_no_shares_within_each_other(shared: RunningEmulator) -> None:
    def mounting(path: str) -> Any:
        mount = {"server": "10.0.0.4", "path": path, "mountPoint": "data"}
        script = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(1)); signal.pause()"
        return pool(script) | {"nfsMounts": [mount]}

    outer = shared.create(custom_job(mounting("/a")))
    body = study("pass", trials=1, parallel=1)
    body["trialJobSpec"]["workerPoolSpecs"] = [mounting("/a/b")]
    error = shared.call("POST", f"v1/{PARENT}/hyperparameterTuningJobs", body, expect=400)["error"]
    assert error["status"] == "FAILED_PRECONDITION"
    assert "nfs/10.0.0.4/a/b and nfs/10.0.0.4/a are one in the other" in error["message"]
    assert f"wait for the end of {outer}" in error["message"]
    same = shared.create(custom_job(mounting("/a")))
    for job in (outer, same):
        shared.call("POST", f"v1/{job}:cancel", {})
        shared.ended(job)
    inner = shared.create(custom_job(mounting("/a/b")))
    shared.call("POST", f"v1/{inner}:cancel", {})
