"""What replicas use: read while they run, stored, told and warned about; and the buckets that a job touches."""

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.fakes import Emulator
from tests.vertex_emulator.running import RunningEmulator, custom_job, pool, until
from tests.vertex_emulator.scheduling.steps import CHIEF, log_texts, submit
from vertex_emulator import usage as usages
from vertex_emulator.database.records import Replica
from vertex_emulator.database.usage import Usage
from vertex_emulator.replicas import usage
from vertex_emulator.replicas.containers import ReplicaStatus
from vertex_emulator.scheduling.meter import Meter

GIB = 1 << 30
HUNGRY = """
import os, time
data = bytearray(300 << 20)
data[::4096] = bytes(len(data[::4096]))
end = time.process_time() + 2
while time.process_time() < end: pass
del data
open('/gcs/made-by-it/file', 'w').close()
os.remove('/gcs/made-by-it/old')
open('/gcs/read-by-it/old').read()
time.sleep(1)
"""


def frame(memory: dict[str, Any], cpu: int = 5) -> dict[str, Any]:
    """A frame of Docker's stats."""
    networks = {"eth0": {"rx_bytes": 10, "tx_bytes": 1}, "eth1": {"rx_bytes": 20, "tx_bytes": 2}}
    return {"memory_stats": memory, "cpu_stats": {"cpu_usage": {"total_usage": cpu}}, "networks": networks}


def test_memory_is_read_without_file_cache() -> None:
    first = {"usage": 100, "limit": 400, "stats": {"total_inactive_file": 30, "inactive_file": 1}}
    assert usage.parse(frame(first)) == Usage(70, 400, 5, 30, 3)
    second = {"usage": 100, "limit": 400, "stats": {"inactive_file": 20}}
    assert usage.parse(frame(second)) == Usage(80, 400, 5, 30, 3)
    assert usage.parse({**frame(second), "networks": None}) == Usage(80, 400, 5)
    assert usage.parse(frame({})) is None


class Readings:
    """An executor that gives readings of replicas, each list once."""

    def __init__(self, *lists: list[Usage]) -> None:
        self.lists = [*lists]

    def usage(self, _job_id: str, _replica: Replica) -> Iterator[Usage]:
        return iter(self.lists.pop(0))


def read(emulator: Emulator, job_id: str, *lists: list[Usage], statuses: Any = None) -> Usage:
    """What a meter makes of the readings of a job's first replica, which is started once for each list."""
    meter = Meter(emulator.database, Readings(*lists))  # type: ignore[arg-type]
    meter.start()
    for _ in lists:
        meter.follow(job_id, [CHIEF])
        for thread in threading.enumerate():
            if thread.name == f"meter {job_id} {CHIEF.task_name}":
                thread.join()
    return meter.finish(emulator.job(job_id), statuses or {})[CHIEF]


def test_the_highest_memory_counts(emulator: Emulator) -> None:
    job_id = submit(emulator)
    readings = [Usage(memory, 100 * GIB, cpu) for memory, cpu in ((5, 1), (9, 2), (7, 3))]
    assert read(emulator, job_id, readings) == Usage(9, 100 * GIB, 3)


def test_a_second_start_adds_processor_time(emulator: Emulator) -> None:
    job_id = submit(emulator)
    lists = [[Usage(5, GIB, 40, 4, 2), Usage(5, GIB, 60, 6, 3)], [Usage(6, GIB, 10, 1, 1), Usage(6, GIB, 50, 2, 2)]]
    assert read(emulator, job_id, *lists) == Usage(6, GIB, 110, 8, 5)


def test_an_earlier_process_is_continued(emulator: Emulator) -> None:
    job_id = submit(emulator)
    with emulator.database.write() as transaction:
        transaction.usage.put(job_id, {CHIEF: Usage(9, GIB, 40)})
    assert read(emulator, job_id, [Usage(5, GIB, 70)]) == Usage(9, GIB, 70)


def test_scarce_memory_is_warned_about_once(emulator: Emulator) -> None:
    job_id = submit(emulator)
    read(emulator, job_id, [Usage(memory * GIB, 15 * GIB) for memory in (2, 13, 14, 15)])
    assert [text for text in log_texts(emulator, job_id) if "GiB" in text] == [
        "workerpool0-0 uses 14 of the 15 GiB of memory that it has here: beyond that it is killed. Take a machine type "
        "with more memory, or smaller batches."
    ]


def test_out_of_memory_is_the_limit(emulator: Emulator) -> None:
    job_id, killed = submit(emulator), ReplicaStatus("exited", out_of_memory=True)
    assert read(emulator, job_id, [Usage(5, 8 * GIB, 2)], statuses={CHIEF: killed}) == Usage(8 * GIB, 8 * GIB, 2)
    meter = Meter(emulator.database, emulator.machine)  # type: ignore[arg-type]
    unread = meter.finish(emulator.job(job_id), {CHIEF: killed})[CHIEF]
    assert unread.peak_memory == unread.memory_limit > 0


def test_attempts_are_told_as_one(emulator: Emulator) -> None:
    job = emulator.job(submit(emulator))
    attempts = {
        CHIEF: Usage(2 * GIB, 15 * GIB, 3 * 10**9, 5, 1),
        replace(CHIEF, attempt=1): Usage(GIB, GIB, 10**9, 5, 1),
    }
    (told,) = usages.describe(job, attempts)
    assert (told["peakMemoryBytes"], told["memoryLimitBytes"], told["cpuSeconds"]) == (2 * GIB, GIB, 4)
    assert (told["memoryBytes"], told["vcpus"], told["receivedBytes"]) == (15 * GIB, 4, 10)
    assert list(usages.describe(job, {})) == []


def test_deleted_jobs_store_nothing(emulator: Emulator) -> None:
    job_id = submit(emulator)
    with emulator.database.write() as transaction:
        transaction.usage.put(job_id, {CHIEF: Usage(1)})
        transaction.jobs.delete(job_id)
        transaction.usage.put(job_id, {CHIEF: Usage(1)})
        assert transaction.usage.of(job_id) == {}


def times(read: int, written: int) -> Callable[[Path], None]:
    return lambda file: os.utime(file, ns=(read, written))


WRITTEN = times(50, 150)


@pytest.mark.parametrize(
    ("at", "is_touched"),
    [(times(150, 50), True), (WRITTEN, True), (times(50, 50), False), (times(250, 250), False)],
)
def test_times_of_files_tell_buckets(tmp_path: Path, at: Callable[[Path], None], is_touched: bool) -> None:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "deep" / "file").touch()
    (tmp_path / "b" / "link").symlink_to(tmp_path / "a" / "deep")
    at(tmp_path / "a" / "deep" / "file")
    touched = usages.touched(tmp_path, 100, 200)
    assert [*touched] == (["a"] if is_touched else [])
    needed = "create" if at is WRITTEN else "get"
    expected = [(f"storage.objects.{needed}", "gs://a/deep/file")] if is_touched else []
    assert [*usages.permissions(touched)] == expected


def test_what_was_there_before_tells_deletions(tmp_path: Path) -> None:
    def needed(since: int = 10**18, before: Any = None) -> list[str]:
        found = usages.permissions(usages.touched(tmp_path, since, 2 * since, before))
        return sorted(f"{permission.rpartition('.')[2]} {uri.removeprefix('gs://a/')}" for permission, uri in found)

    for name in ("gone/1", "gone/2", "kept", "moved", "over/written", "over/replaced", "tree/deep/file"):
        (tmp_path / "a" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "a" / name).write_text(name)
        os.utime(tmp_path / "a" / name, ns=(50, 50))
    before = usages.state(tmp_path)
    assert needed(before=before) == []

    for number in (1, 2):
        (tmp_path / "a" / "gone" / str(number)).unlink()
    assert needed(before=before) in (["delete gone/1"], ["delete gone/2"])  # one stands for its folder
    assert needed() == []
    (tmp_path / "a" / "moved").rename(tmp_path / "a" / "over" / "replaced")
    (tmp_path / "a" / "tree").rename(tmp_path / "a" / "wood")
    (tmp_path / "a" / "over" / "written").write_text("more")
    (tmp_path / "a" / "new").touch()
    os.utime(tmp_path / "a" / "new", ns=(50, 50))  # as of a copy that keeps times
    found = [each for each in needed(before=before) if "gone" not in each]
    assert [each for each in found if "over" not in each] == [
        "create new",
        "create wood/deep/file",
        "delete moved",
        "delete tree/deep/file",
        "get tree/deep/file",
    ]
    assert {each.partition("/")[0] for each in found if "over" in each} == {"create over", "delete over"}


def test_of_too_many_files_none_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for bucket, count in (("few", 2), ("many", 5)):
        for number in range(count):
            (tmp_path / bucket / str(number)).mkdir(parents=True)
            (tmp_path / bucket / str(number) / "file").touch()
    monkeypatch.setattr(usages, "MAX_ENTRIES", 5)
    before = usages.state(tmp_path)
    assert [*before] == ["few"]
    for bucket in ("few", "many"):
        (tmp_path / bucket / "1" / "file").unlink()
    assert [*usages.touched(tmp_path, 1, 2, before)] == ["few"]


def test_a_running_job_is_measured(shared: RunningEmulator) -> None:
    for bucket in ("made-by-it", "read-by-it", "untouched"):
        folder = shared.data / "gcs" / bucket
        folder.mkdir(mode=0o777)
        (folder / "old").touch()
        os.utime(folder / "old", (1, 1))
    assert shared.call("POST", "vertex_emulator/buckets/remember", {}) == {}
    name = shared.create(custom_job({**pool(HUNGRY), "machineSpec": {"machineType": "n1-standard-4"}}))
    until(lambda: shared.call("GET", f"v1/{name}")["state"] == "JOB_STATE_SUCCEEDED", "the end")
    job_id = name.rpartition("/")[2]
    told = shared.call("GET", f"vertex_emulator/jobs/{job_id}/usage")
    assert told["buckets"] == ["made-by-it", "read-by-it"]
    written = [f"storage.objects.{verb}" for verb in ("create", "delete")]
    of_files = [{"permission": each, "resource": "gs://made-by-it"} for each in written]
    assert told["permissions"] == [*of_files, {"permission": "storage.objects.get", "resource": "gs://read-by-it"}]
    (replica,) = told["replicas"]
    assert replica["task"] == "workerpool0-0" and replica["machineType"] == "n1-standard-4"
    assert 300 << 20 <= replica["peakMemoryBytes"] < 400 << 20
    assert 1 <= replica["cpuSeconds"] < 4
    assert replica["peakMemoryBytes"] < replica["memoryLimitBytes"] <= replica["memoryBytes"] == 15 * GIB
    view = shared.call("GET", f"vertex_emulator/page/jobs/customJobs/{job_id}")
    assert view["replicas"][0]["used"] == replica
