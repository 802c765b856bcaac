"""Send random requests to an emulator while random hostile containers run, and check that it keeps its promises.

    nice -n -10 python -m tests.faults.hostile_load 3600 1

No answer is a 5xx but 501, and none takes longer than 2 s (4 s for a search of a log, 1 s for /healthz). Memory,
threads and descriptors are bounded, SIGTERM is heeded within 5 s, a restart works, nothing outside the data folder is
disclosed or changed, no container reaches the machine, and a reset leaves nothing. Time in which the machine gives a
thread of the emulator no processor does not count. Docker is needed. The exit code is 1 if something is wrong.
"""

import argparse
import contextlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.faults.hostile.checks import AnswerChecks
from tests.faults.hostile.clients import HostileClients
from tests.faults.hostile.jobs import HostileJobs
from tests.faults.hostile.process_watch import ProcessWatch
from tests.faults.hostile.report import Report
from tests.faults.kills import list_leftovers, read_emulator_id
from tests.vertex_emulator.running import RunningEmulator, custom_job, pool, resident_bytes, until
from tests.vertex_emulator.test_bucket_attacks import SECRET, requested, seconds_until_end
from tests.vertex_emulator.test_container_attacks import list_rules

_CLIENTS = 6
_MAX_WRONG = 30
_PROGRESS_SECONDS = 60.0
_IDLE_DESCRIPTORS = 60  # Docker's library keeps connections for the last 25 addresses that it has used


def run(seconds: float, seed: int) -> Report:
    """Load an emulator of its own for so long, then stop, restart and reset it."""
    folder, report = Path(tempfile.mkdtemp(prefix="vertex-hostile-")), Report()
    outside = _create_outside_folder(folder)
    before = _read_files(outside)
    emulator = RunningEmulator(folder / "data")
    identity = read_emulator_id(emulator.data)
    _create_special_files(emulator.data / "gcs/special", outside)
    for number in range(4):
        (emulator.data / f"gcs/bucket-{number}").mkdir()
    print(f"process {emulator.process.pid}, files in {folder}", flush=True)
    try:
        with _listen_on_all_addresses() as (port, callers):
            _load(emulator, seconds, seed, report, outside / "secret", port)
        report.wrong += [f"{caller} reached a service of the machine" for caller in callers]
        _check_stop_and_restart(emulator, report)
    finally:
        emulator.close()
    report.wrong += [f"left after the reset: {each}" for each in list_leftovers(identity)]
    if list_rules(identity):
        report.wrong.append("left after the reset: rules of the firewall")
    if _read_files(outside) != before:
        report.wrong.append("files outside the data folder have changed")
    log = emulator.data.with_suffix(".log").read_text(errors="replace")
    if "Traceback" in log:
        report.wrong.append(f"the log has a traceback: {log[max(0, log.index('Traceback') - 300) :][:3000]}")
    if not report.wrong:
        subprocess.run(["rm", "-rf", folder], check=True)  # Python's own removal has a limit on depth
    return report


def _load(emulator: RunningEmulator, seconds: float, seed: int, report: Report, secret: Path, port: int) -> None:
    """Let all clients and jobs work for so long, then end the jobs and check what is left open."""
    watch, is_over = ProcessWatch(emulator.process.pid), threading.Event()
    token = (emulator.data / "token").read_text().strip()
    checks = AnswerChecks(report, watch, [SECRET.encode(), token.encode()])
    clients = HostileClients(emulator, seed, report, checks, is_over)
    jobs = HostileJobs(emulator, seed, report, checks, is_over)
    works = [lambda number=number: clients.send_requests(number) for number in range(_CLIENTS)]
    works += [clients.ask_health, lambda: jobs.run(secret, port)]
    threads = [threading.Thread(target=_note_error, args=(work, report)) for work in works]
    descriptors = watch.count_descriptors()
    for thread in threads:
        thread.start()
    end, next_line, shown = time.monotonic() + seconds, time.monotonic() + _PROGRESS_SECONDS, 0
    while time.monotonic() < end and len(report.wrong) < _MAX_WRONG and emulator.process.poll() is None:
        time.sleep(0.2)
        if time.monotonic() > next_line:
            next_line += _PROGRESS_SECONDS
            memory = resident_bytes(emulator.process.pid) >> 20
            print(
                f"{sum(report.statuses.values())} requests, {sum(report.jobs.values())} jobs, {memory} MB", flush=True
            )
            print(*report.wrong[shown:], sep="\n", end="", flush=True)
            shown = len(report.wrong)
    is_over.set()
    for thread in threads:
        thread.join()
    _note_error(lambda: until(lambda: jobs.end_and_delete_jobs(), "the end of all jobs"), report)
    limit = descriptors + _IDLE_DESCRIPTORS
    _note_error(lambda: until(lambda: watch.count_descriptors() <= limit, "the end of all open files"), report)
    if watch.count_descriptors() > limit:
        report.wrong.append(f"left open: {Counter(watch.list_open_files())}")
    watch.stop()
    report.take_sizes(watch)


def _note_error(work: Callable[[], Any], report: Report) -> None:
    """Do the work of a thread; an error of its own must not pass unseen."""
    try:
        work()
    except Exception as error:  # noqa: BLE001
        report.wrong.append(f"the load itself: {error!r}")


def _create_outside_folder(folder: Path) -> Path:
    """A folder that everybody may change, with a secret, beside the data folder."""
    outside = folder / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "secret").write_text(SECRET)
    for path, mode in ((outside / "secret", 0o666), (outside / "folder", 0o777), (outside, 0o777)):
        path.chmod(mode)
    return outside


def _read_files(folder: Path) -> dict[str, Any]:
    """What is in a folder, with modes, owners, times and content."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, content)
    return found


def _create_special_files(bucket: Path, outside: Path) -> None:
    bucket.mkdir()
    (bucket / "linked").symlink_to(outside)
    (bucket / "link").symlink_to(outside / "secret")
    os.mkfifo(bucket / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(bucket / "socket"))
    if os.geteuid() == 0:
        os.mknod(bucket / "device", stat.S_IFCHR | 0o666, os.makedev(5, 1))


@contextlib.contextmanager
def _listen_on_all_addresses() -> Iterator[tuple[int, list[str]]]:
    """A service of this machine: its port, and the addresses that have reached it."""
    callers: list[str] = []

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, (address, *_) = listener.accept()
                connection.close()
                callers.append(address)

    with socket.create_server(("0.0.0.0", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1], callers


def _check_stop_and_restart(emulator: RunningEmulator, report: Report) -> None:
    """Stop the emulator while it has requests, start it again and run a job."""
    paths = [f"download/storage/v1/b/special/o/{name}?alt=media" for name in ("pipe", "socket", "device")] * 9
    with requested(emulator, paths):
        report.take_stop(seconds_until_end(emulator))
    emulator.start()
    emulator.http.delete(f"{emulator.url}/vertex_emulator/faults").raise_for_status()  # requests have injected some
    job = emulator.ended(emulator.create(custom_job(pool("print('after')"))))
    if job["state"] != "JOB_STATE_SUCCEEDED":
        report.wrong.append(f"a job after the restart: {job}")


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.faults.hostile_load", description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=float)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    options = parser.parse_args()
    report = run(options.seconds, options.seed)
    print(f"seed {options.seed}:", *report.render_lines(), sep="\n")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
