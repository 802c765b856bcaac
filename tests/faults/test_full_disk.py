"""The disk of the data folder is full: errors that say so, nothing half done, and on it goes once there is room."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from requests import Response

from tests.vertex_emulator.running import (
    PARENT,
    PATIENCE_SECONDS,
    RunningEmulator,
    command,
    custom_job,
    labelled,
    pool,
    until,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "small-disk", str(folder)], check=True)
    yield folder
    # Docker lets go of a container's mounts a moment after its end.
    until(lambda: subprocess.run(["umount", str(folder)], capture_output=True).returncode == 0, "unmounting")


@pytest.fixture
def emulator(disk: Path) -> Iterator[RunningEmulator]:
    emulator = RunningEmulator(disk / "data")
    yield emulator
    (disk / "filler").unlink(missing_ok=True)
    emulator.close()


def fill(disk: Path) -> None:
    """Take all room, to the last byte."""
    with (disk / "filler").open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


def test_a_full_disk_rejects_create_until_freed(disk: Path, emulator: RunningEmulator) -> None:
    before = emulator.create(custom_job(pool("print('before')")))
    emulator.ended(before)
    until(lambda: not labelled(before), "removal of its container")
    fill(disk)
    body = custom_job(pool("pass"), labels={"what": "x" * 60})

    def refused() -> list[Response]:
        # The write-ahead log has room for some more.
        reply = emulator.http.post(f"{emulator.url}/v1/{PARENT}/customJobs", json=body, timeout=PATIENCE_SECONDS)
        return [reply] if reply.status_code != 200 else []

    (reply,) = until(refused, "a refusal")
    assert reply.status_code == 507
    assert reply.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert "The disk of the data folder is full" in reply.json()["error"]["message"]
    assert emulator.get(before)["state"] == "JOB_STATE_SUCCEEDED"
    assert emulator.lines(before) == ["before"]
    ready = emulator.call("GET", "readyz", expect=503)
    assert "disk of the data folder is full" in ready["reason"]
    emulator.end(9)
    (disk / "filler").unlink()
    emulator.start()
    assert emulator.get(before)["state"] == "JOB_STATE_SUCCEEDED"
    after = emulator.create(custom_job(pool("print('after')")))
    assert emulator.ended(after)["state"] == "JOB_STATE_SUCCEEDED"
    assert emulator.call("GET", "readyz") == {"status": "ok"}


def test_a_full_disk_delays_logs_but_no_job(disk: Path, emulator: RunningEmulator) -> None:
    script = "import time\nfor i in range(4000): print(f'line {i:04}' + 'x' * 1200)\ntime.sleep(1)"
    name = emulator.create(custom_job(pool(script)))
    emulator.in_state(name, "JOB_STATE_RUNNING")
    assert emulator.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    until(lambda: "cannot be saved yet" in (disk / "data.log").read_text(), "a full disk")
    assert labelled(name)
    assert len(emulator.lines(name)) == 4000
    # Each further attempt writes one, and removes it.
    until(lambda: not list((disk / "data/logs").rglob("*.partial")), "removal of what was saved in part")
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    until(lambda: not labelled(name), "removal of the container")
    done = command("logs", "--task", "workerpool0-0", name, data=emulator.data)
    lines = done.stdout.splitlines()
    assert [line.partition("line ")[2] for line in lines] == [f"{i:04}" + "x" * 1200 for i in range(4000)]


def test_starting_without_room_fails_in_one_line(disk: Path) -> None:
    fill(disk)
    done = command("serve", data=disk / "data")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert "full" in done.stderr or "No space left" in done.stderr


def test_a_read_only_folder_fails_in_one_line(disk: Path) -> None:
    (disk / "data").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    done = command("serve", data=disk / "data")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Read-only file system" in done.stderr
