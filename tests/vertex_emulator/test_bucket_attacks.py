"""Attacks through buckets: what containers create there, and what other users of the machine try."""

import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
import requests

from tests.vertex_emulator.other_user import NOBODY, needs_root, reachable_folder
from tests.vertex_emulator.running import (
    PATIENCE_SECONDS,
    RunningEmulator,
    command,
    custom_job,
    pool,
    processor_seconds,
    resident_bytes,
    until,
)

SECRET = "of-the-host-4711"
STOP_SECONDS = 30.0
"""As long as `vertex-emulator stop` waits; what is read here has no end, or takes hours."""
ANSWER_SECONDS = 1.0
"""Of the emulator's processor time, which other processes of a busy machine do not lengthen."""
SWAPS = """
import os, sys
os.chdir("/gcs/swapped")
open("good", "w").write("good")
os.makedirs("real"); open("real/secret", "w").write("good")
open("begun", "w").close()
while not os.path.exists("end"):
    for make in (lambda: os.link("good", "new"), lambda: os.symlink(sys.argv[1] + "/secret", "new")):
        make(); os.rename("new", "target")
    os.rename("real", "folder"); os.rename("folder", "real")
    os.symlink(sys.argv[1], "folder"); os.unlink("folder")
"""


def addresses(bucket: str, name: str) -> list[str]:
    """All ways to read an object."""
    place = f"storage/v1/b/{bucket}/o/{quote(name, safe='')}"
    return [
        f"vertex_emulator/page/download?uri={quote(f'gs://{bucket}/{name}')}",
        f"download/{place}?alt=media",
        f"{place}?alt=media",
        place,
    ]


@contextmanager
def requested(emulator: RunningEmulator, paths: list[str], method: str = "GET") -> Iterator[None]:
    """Send requests without a body, all at the same time, and await no answers."""
    connections = []
    try:
        for path in paths:
            host, port = emulator.url.removeprefix("http://").split(":")
            connections.append(socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS))
            connections[-1].sendall(f"{method} /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        yield
    finally:
        for connection in connections:
            connection.close()


def times_open(emulator: RunningEmulator, file: Path) -> int:
    """How often the emulator has a file open."""
    count = 0
    for descriptor in Path(f"/proc/{emulator.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            count += descriptor.readlink() == file
    return count


def seconds_until_end(emulator: RunningEmulator) -> float:
    started = time.monotonic()
    emulator.process.send_signal(signal.SIGTERM)
    try:
        emulator.process.wait(timeout=2 * STOP_SECONDS)
    except subprocess.TimeoutExpired:
        emulator.process.kill()
        emulator.process.wait()
    return time.monotonic() - started


def test_swapped_links_disclose_no_file(shared: RunningEmulator) -> None:
    outside = shared.data.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    bucket = shared.data / "gcs/swapped"
    bucket.mkdir()
    bucket.chmod(0o777)
    container = pool(SWAPS)
    container["containerSpec"]["command"].append(str(outside))
    job = shared.create(custom_job(container))
    paths = [*addresses("swapped", "target"), *addresses("swapped", "folder/secret")]

    def download(number: int) -> requests.Response:
        return requests.get(f"{shared.url}/{paths[number % len(paths)]}", timeout=PATIENCE_SECONDS)

    replies: list[requests.Response] = []

    def download_and_return_whether_target_was_swapped() -> bool:
        replies.extend(threads.map(download, range(600)))
        return {reply.status_code for reply in replies if "target" in reply.url} >= {200, 400}

    try:
        shared.in_state(job, "JOB_STATE_RUNNING")
        until((bucket / "begun").exists, "the first swap")
        with ThreadPoolExecutor(4) as threads:
            until(download_and_return_whether_target_was_swapped, "a download of a file and one of a link")
    finally:
        (bucket / "end").touch()
    assert [reply.url for reply in replies if SECRET in reply.text] == []
    assert {reply.status_code for reply in replies} <= {200, 400, 404}
    assert shared.ended(job)["state"] == "JOB_STATE_SUCCEEDED"


def test_special_files_block_neither_requests_nor_end(own: RunningEmulator) -> None:
    bucket = own.data / "gcs/special"
    bucket.mkdir()
    os.mkfifo(bucket / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(bucket / "socket"))
    kinds = {"pipe": "a named pipe", "socket": "a socket"}
    if os.geteuid() == 0:
        os.mknod(bucket / "device", stat.S_IFCHR | 0o666, os.makedev(5, 1))  # the console
        kinds["device"] = "a device"
    paths = [path for name in kinds for path in addresses("special", name)] * 12
    with ThreadPoolExecutor(len(paths)) as threads:
        replies = list(threads.map(lambda path: requests.get(f"{own.url}/{path}", timeout=PATIENCE_SECONDS), paths))
    assert {reply.status_code for reply in replies} == {404}
    for reply in replies:
        assert f"it is {kinds[next(name for name in kinds if name in reply.url)]}" in reply.json()["error"]["message"]
    assert own.call("GET", "storage/v1/b/special/o") == {"kind": "storage#objects"}
    shown = own.call("GET", "vertex_emulator/page/files?uri=gs://special")["entries"]
    assert {entry["kind"] for entry in shown} == {"special"}
    with requested(own, paths):
        assert seconds_until_end(own) < STOP_SECONDS


def test_endless_file_blocks_neither_requests_nor_end(own: RunningEmulator) -> None:
    (own.data / "gcs/endless").mkdir()
    (own.data / "gcs/endless/zeros").touch()
    os.truncate(own.data / "gcs/endless/zeros", 1 << 43)
    paths = addresses("endless", "zeros")[1:] * 20
    with requested(own, paths):
        for _ in range(5):
            started = processor_seconds(own.process.pid)
            assert own.call("GET", "vertex_emulator/page/files?uri=gs://endless")["entries"]
            assert processor_seconds(own.process.pid) - started < 2 * ANSWER_SECONDS
        assert seconds_until_end(own) < STOP_SECONDS
    assert "Traceback" not in own.data.with_suffix(".log").read_text()


def test_clients_that_leave_end_their_checksums(own: RunningEmulator) -> None:
    begun = own.http.post(f"{own.url}/upload/storage/v1/b/endless/o?uploadType=resumable&name=zeros")
    finished_upload = begun.headers["location"]
    assert own.http.put(finished_upload, data=b"0").json()["size"] == "1"
    zeros = own.data / "gcs/endless/zeros"
    os.truncate(zeros, 1 << 43)
    repeats = [finished_upload.removeprefix(f"{own.url}/")] * 3
    with requested(own, addresses("endless", "zeros") * 3), requested(own, repeats, "PUT"):
        until(lambda: times_open(own, zeros) >= 15, "a read by every request")
    until(lambda: not times_open(own, zeros), "the end of all reads")


def test_names_that_are_not_utf8_are_escaped(shared: RunningEmulator) -> None:
    bucket = shared.data / "gcs/encoded"
    bucket.mkdir()
    (bucket / os.fsdecode(b"caf\xe9")).touch()
    (bucket / os.fsdecode(b"\xff")).mkdir()
    entries = shared.call("GET", "vertex_emulator/page/files?uri=gs://encoded")["entries"]
    assert [(entry["name"], entry["kind"], entry["uri"]) for entry in entries] == [
        ("\\xff", "folder", ""),
        ("caf\\xe9", "file", ""),
    ]


def test_downloads_keep_ranges_and_close_their_files(shared: RunningEmulator) -> None:
    bucket = shared.data / "gcs/ranges"
    bucket.mkdir()
    (bucket / "digits").write_bytes(b"0123456789" * 100_000)
    for path in addresses("ranges", "digits")[:2]:
        url = f"{shared.url}/{path}"
        head = shared.http.head(url)
        assert (head.status_code, head.headers["content-length"]) == (200, "1000000")
        for header, code, content in (
            ("bytes=-3", 206, b"789"),
            ("bytes=10-14", 206, b"01234"),
            ("bytes=2000000-", 416, b""),
        ):
            reply = shared.http.get(url, headers={"Range": header})
            assert (reply.status_code, reply.content) == (code, content)
        assert len(shared.http.get(url).content) == 1_000_000
    with requested(shared, addresses("ranges", "digits") * 5):
        pass
    until(lambda: not times_open(shared, bucket / "digits"), "the end of all reads")


def test_endless_page_sizes_are_refused(shared: RunningEmulator) -> None:
    (shared.data / "gcs/digits").mkdir()
    reply = shared.answer(f"storage/v1/b/digits/o?maxResults={'9' * 5000}")
    assert reply.status_code == 400
    assert reply.json()["error"]["message"] == f"maxResults is '{'9' * 20}'; it must be a positive number"


def test_huge_folder_blocks_no_other_request(own: RunningEmulator) -> None:
    bucket = own.data / "gcs/huge/one"
    bucket.mkdir(parents=True)
    for number in range(100_000):
        os.close(os.open(bucket / f"{number:06}", os.O_CREAT | os.O_WRONLY))
    own.call("GET", "storage/v1/b/huge/o?prefix=one/&maxResults=1")
    before = resident_bytes(own.process.pid)
    paths = [
        "vertex_emulator/page/files?uri=gs://huge/one",
        "storage/v1/b/huge/o?delimiter=/",
        "storage/v1/b/huge/o?prefix=one/0999",
        "storage/v1/b/huge/o",
    ] * 2
    with ThreadPoolExecutor(len(paths)) as threads:
        listings = [threads.submit(requests.get, f"{own.url}/{path}") for path in paths]
        slowest = 0.0
        while not all(listing.done() for listing in listings):
            started = processor_seconds(own.process.pid)
            own.call("GET", "vertex_emulator/page/jobs")
            slowest = max(slowest, processor_seconds(own.process.pid) - started)
    assert {listing.result().status_code for listing in listings} == {200}
    assert listings[0].result().json()["left_out"] == 99_000
    assert listings[1].result().json()["prefixes"] == ["one/"]
    assert len(listings[2].result().json()["items"]) == 100
    assert slowest < ANSWER_SECONDS
    assert resident_bytes(own.process.pid) - before < 100 << 20


def as_nobody(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, arguments)), user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True, cwd="/"
    )


@pytest.fixture
def crossed() -> Iterator[Path]:
    """A folder that other users can reach."""
    with reachable_folder(0o755) as folder:
        yield folder


@needs_root
@pytest.mark.parametrize("had", ["no folder", "a wide folder"])
def test_data_folder_is_closed_to_other_users(crossed: Path, had: str) -> None:
    data = crossed / "data"
    if had == "a wide folder":
        (data / "gcs/bucket").mkdir(parents=True)
        data.chmod(0o777)
    emulator = RunningEmulator(data)
    try:
        script = (
            "import os, shutil; os.umask(0); os.chmod('/gcs/bucket', 0o777);"
            "shutil.copy('/bin/bash', '/gcs/bucket/bash'); os.chmod('/gcs/bucket/bash', 0o4755);"
            "open('/gcs/bucket/output', 'w').write('ours'); os.chmod('/gcs/bucket/output', 0o666)"
        )
        (data / "gcs/bucket").mkdir(exist_ok=True)
        assert emulator.ended(emulator.create(custom_job(pool(script))))["state"] == "JOB_STATE_SUCCEEDED"
        assert (data / "gcs/bucket/output").read_text() == "ours"
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        assert as_nobody("ls", crossed).stdout.split()[0] == "data"
        for attempt in (
            ("ls", data),
            ("cat", data / "emulator.db"),
            (data / "gcs/bucket/bash", "-p", "-c", "id -u"),
            ("ln", "-s", "/etc/passwd", data / "gcs/bucket/link"),
            ("cp", "/etc/hostname", data / "gcs/bucket/output"),
        ):
            try:
                done = as_nobody(*attempt)
            except PermissionError:
                continue
            assert (done.returncode != 0, "Permission denied" in done.stderr) == (True, True), attempt
        assert (data / "gcs/bucket/output").read_text() == "ours"
    finally:
        emulator.close()


@needs_root
def test_folder_of_another_user_is_rejected(crossed: Path) -> None:
    os.chown(crossed, NOBODY, NOBODY)
    done = command("serve", data=crossed)
    assert done.returncode == 1
    assert f"the data folder {crossed} belongs to another user (uid {NOBODY})" in done.stderr
    assert list(crossed.iterdir()) == []


def test_shared_folder_is_no_data_folder(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    tmp_path.chmod(0o755)
    done = command("serve", data=tmp_path)
    assert done.returncode == 1
    assert f"the data folder {tmp_path} holds other files, and other users can open it (mode 0755)" in done.stderr
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
