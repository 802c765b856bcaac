"""An emulator seen from outside: what starts, asks, changes and stops one, and what removes from its data folder.

Imports of the database and of containers are local: most commands only send a request.
"""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import vertex_emulator
from vertex_api import locks
from vertex_api.emulator import Address, ask
from vertex_api.names import did_you_mean
from vertex_emulator import faults
from vertex_emulator.cli.output import note
from vertex_emulator.data_folder import (
    EXIT_ALREADY_RUNNING,
    STARTED,
    DataFolder,
    acquire_lock,
    find_endpoint,
    is_locked,
    require_endpoint,
)
from vertex_emulator.errors import EmulatorError, EmulatorNotRunning, InvalidFault, StartError
from vertex_emulator.times import now_ns

if TYPE_CHECKING:
    from vertex_emulator.database import Database

FAULTS_PATH = "/vertex_emulator/faults"
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_PATHS = (
    "CLOUDSDK_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "REQUESTS_CA_BUNDLE",
)
"""Variables with paths, which may be relative to the folder that the emulator leaves."""
_PROGRAM = (sys.executable, "-m", "vertex_emulator")
_DEBUG_HINT = (
    "attach to 127.0.0.1:{port}, and to the following ports for further replicas; if a port is in use, the next\n"
    "free one is taken. The job's log has the addresses: vertex-emulator logs JOB --task service"
)


@dataclass(frozen=True)
class Started:
    """A running emulator; `process` is `None` if it ran already."""

    endpoint: Address
    process: "subprocess.Popen[bytes] | None"


def start(root: Path, serve_options: Sequence[str] = (), program: Sequence[str] = _PROGRAM) -> Started:
    """Return the emulator that serves a data folder, after starting it with options of `serve` if none does.

    Of several that start one at the same time, one does. Raises StartError with the reason that the emulator gives,
    and with its exit code.
    """
    data = DataFolder.open(root)
    with locks.held(data.root / "start.lock"), data.emulator_log.open("ab") as log:
        log_start = log.tell()
        process: subprocess.Popen[bytes] | None = None
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if endpoint := find_endpoint(data.root):
                return Started(endpoint, process)
            if process is None and not is_locked(data.lock):
                # The address that a killed emulator left would count as the next one's as soon as that has the lock.
                with contextlib.suppress(StartError), acquire_lock(data.lock):
                    data.endpoint.unlink(missing_ok=True)
                process = _detach([*program, "serve", "--data", str(data.root), *serve_options], log)
            if process is not None and (exit_code := process.poll()) is not None:
                if exit_code != EXIT_ALREADY_RUNNING:
                    raise StartError(_last_line(data.emulator_log, log_start), exit_code)
                process = None  # a `serve` that somebody typed came first, or is about to end
            time.sleep(0.02)
        if process is not None:
            process.kill()
            process.wait()
    raise StartError(f"the emulator does not answer after {_START_SECONDS:.0f} s; its log is {data.emulator_log}")


def _detach(command: Sequence[str], log: Any) -> "subprocess.Popen[bytes]":
    """Start a process that outlives this one.

    It has a session of its own and all three streams redirected: otherwise a terminal or Pulumi's engine kills it
    together with its parent, or waits for its pipes to close.
    """
    package_folder = Path(vertex_emulator.__file__).parents[1]
    # `python -m` puts the current folder first on the import path. In a checkout Python imports the emulator from
    # there; an installed one it finds anywhere, and modules of the user's project may have any name.
    is_installed = package_folder.name in ("site-packages", "dist-packages")
    paths = {name: os.path.abspath(path) for name in _PATHS if (path := os.environ.get(name))}  # noqa: PTH100
    return subprocess.Popen(
        command,
        cwd="/" if is_installed else package_folder,
        env={**os.environ, **paths, STARTED: "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # what to export
        stderr=log,
        start_new_session=True,
    )


def _last_line(log: Path, start: int) -> str:
    output = log.read_bytes()[start:].decode(errors="replace")
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "")
    return last.removeprefix("vertex-emulator: ") or "the emulator ends without a word"


def send(
    endpoint: Address,
    path: str,
    body: Mapping[str, Any] | None = None,
    method: str | None = None,
    timeout_seconds: float = 60,
) -> Any:
    """Return the JSON reply to a GET, or to a POST if there is a `body`.

    Raises EmulatorError with the emulator's message, and EmulatorNotRunning.
    """
    try:
        answer = ask(endpoint.url, endpoint.token(), path, body, method, timeout_seconds)
    except (OSError, http.client.HTTPException) as error:
        raise EmulatorNotRunning(f"the emulator at {endpoint.url} does not answer: {error}") from error
    if answer.refusal:
        raise EmulatorError(answer.refusal)
    return answer.body


def token(endpoint: Address) -> str:
    """Return the token that requests need, "" if they need none. Raises EmulatorNotRunning."""
    try:
        return endpoint.token()
    except OSError as error:
        raise EmulatorNotRunning(f"the token {endpoint.token_file} cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def unserved(root: Path) -> "Iterator[tuple[DataFolder, Database]]":
    """Open the data folder of an emulator that does not run, to read what it has. Raises EmulatorError."""
    from vertex_emulator.database import Database

    if not DataFolder(root).database.is_file():
        raise EmulatorError(
            f"there is no data folder at {root}; choose one with --data, or start an emulator with: "
            f"vertex-emulator start --data {root}"
        )
    data = DataFolder.open(root)
    # Only for the moment in which an older database gets its new tables: an emulator may start meanwhile.
    with acquire_lock(data.lock):
        database = Database(data.database)
    with contextlib.closing(database):
        yield data, database


def job_path(job: str, part: str = "") -> str:
    """Return the path of what the emulator tells the command line about a job, given as `Jobs.find` takes it."""
    return f"/vertex_emulator/jobs/{quote(job, safe='')}{part}"


def status(root: Path, as_json: bool = False) -> Iterator[str]:
    """Render lines about the emulator that runs on a data folder, or a JSON object. Raises EmulatorNotRunning."""
    endpoint = require_endpoint(root)
    reply = send(endpoint, "/vertex_emulator/status")
    readiness = send(endpoint, "/readyz")
    if as_json:
        process = {"url": endpoint.url, "pid": endpoint.pid, "version": endpoint.version}
        yield json.dumps({**process, "docker": readiness, **reply}, indent=2)
        return
    counts = ", ".join(f"{count} {state.removeprefix('JOB_STATE_').lower()}" for state, count in reply["jobs"].items())
    yield f"running    {endpoint.url} (pid {endpoint.pid}, version {endpoint.version})"
    yield f"data       {reply['data']}"
    yield f"docker     {'answers' if readiness['status'] == 'ok' else readiness['reason']}"
    yield f"replicas   {reply['replicas']['running']} running, room for {reply['replicas']['capacity']}"
    yield f"network    {reply['network']}"
    yield f"jobs       {counts or 'none'}"
    schedules = reply["schedules"]
    if schedules["active"] or schedules["paused"]:
        yield f"schedules  {schedules['active']} active, {schedules['paused']} paused"
    if schedules["clock"]:
        yield f"clock      of schedules: stands at {schedules['clock']}"
    for pending in reply["faults"]:
        yield f"injected   {faults.describe_fault(pending['fault'], pending['remaining'])}"


def count_unfinished(endpoint: Address) -> int:
    """Return how many jobs have not ended, those of trials included. Raises EmulatorError."""
    return int(send(endpoint, "/vertex_emulator/status")["unfinished"])


def stop(root: Path, only_if_idle: bool = False) -> str:
    """Stop the emulator that runs on a data folder and return a line about it; containers keep running.

    With `only_if_idle` it is left running while jobs are active. Raises EmulatorError if it does not stop.
    """
    try:
        endpoint = require_endpoint(root)
    except EmulatorNotRunning:
        return f"no emulator is running on {root}"
    if only_if_idle and (active := count_unfinished(endpoint)):
        return f"left running: {active} jobs have not ended"
    # No signal: in a container, or seen from one, another process may have its number.
    with contextlib.suppress(EmulatorNotRunning):  # it is ending already
        send(endpoint, "/vertex_emulator/stop", {})
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        if not is_locked(DataFolder(root).lock):
            return "stopped"
        time.sleep(0.02)
    raise EmulatorError(f"the emulator (pid {endpoint.pid}) does not stop; end it with kill -9, which loses no jobs")


def inject(root: Path, options: Namespace) -> list[str]:
    """Inject, list or clear faults as the options of the command say, and render lines for the terminal.

    Raises EmulatorNotRunning, InvalidFault and EmulatorError.
    """
    fields = {name: getattr(options, name) for name in faults.FAULT_FIELDS if getattr(options, name) is not None}
    if (options.list or options.clear) and fields:
        raise InvalidFault(f"--{'list' if options.list else 'clear'} takes no other option: omit {', '.join(fields)}")
    if options.json and not options.list:
        raise InvalidFault("--json needs --list")
    if options.clear:
        done = send(require_endpoint(root), FAULTS_PATH, method="DELETE")
        missed = [faults.describe_fault(each, each.get("count", 1)) for each in done.get("missed", ())]
        more = [f"and {len(missed) - _MAX_NAMED_FAULTS} more"] if len(missed) > _MAX_NAMED_FAULTS else []
        return [
            f"cleared {done['cleared']}",
            *(f"had hit nothing: {each}" for each in missed[:_MAX_NAMED_FAULTS]),
            *more,
        ]
    if options.list:
        pending = send(require_endpoint(root), "/vertex_emulator/status")["faults"]
        if options.json:
            return [json.dumps(pending, indent=2)]
        lines = [faults.describe_fault(each["fault"], each["remaining"]) for each in pending]
        return lines or ["no pending faults"]
    fault = faults.InjectedFault.parse(fields)
    known = send(require_endpoint(root), FAULTS_PATH, fault.to_json()).get("known")
    if known:
        note(f"the fault waits for a job: none so far is called {fault.name}{did_you_mean(fault.name, known)}")
    hint = [_DEBUG_HINT.format(port=fault.port or faults.DEFAULT_DEBUG_PORT)] if fault.kind == "debug" else []
    return [f"injected {faults.describe_fault(fault.to_json(), fault.count)}", *hint]


_MAX_NAMED_FAULTS = 10
_HEADINGS = ("SCHEDULE", "CRON", "TIME ZONE", "NEXT", "LAST RUN")
_MAX_NAMED_SCHEDULES = 10


def schedules(root: Path, options: Namespace) -> list[str]:
    """List schedules, or fire, pause or resume one as the options say, and render lines for the terminal.

    Raises EmulatorNotRunning and EmulatorError.
    """
    endpoint = require_endpoint(root)
    known = send(endpoint, "/vertex_emulator/schedules")["schedules"]
    if options.action == "list":
        return [json.dumps(known, indent=2)] if options.json else _table(known)
    resource = find_schedule(known, options.name)["name"]
    changed = send(endpoint, f"/vertex_emulator/{resource}:{options.action}", {})
    match options.action:
        case "fire":
            return [f"fired {_id(changed)}: run {changed['runs'][0]['runId']}"]
        case "pause":
            return [f"paused {_id(changed)}"]
        case _:
            next_time = f", next at {changed['nextTimes'][0]}" if changed["nextTimes"] else ""
            return [f"resumed {_id(changed)}{next_time}"]


def find_schedule(schedules: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """Return the schedule that a name means: the resource name, the id, or what the id ends with after `_` or `-`.

    Raises EmulatorError if it means none or several.
    """
    meanings = (
        lambda schedule: schedule["name"] == name,
        lambda schedule: _id(schedule) == name,
        lambda schedule: _id(schedule).endswith((f"_{name}", f"-{name}")),
    )
    found = next(filter(None, ([each for each in schedules if is_meant(each)] for is_meant in meanings)), [])
    if len(found) == 1:
        return found[0]
    if found:
        several = f"more than one schedule: {_names(found)}"
        raise EmulatorError(f'"{name}" is {several}; write one of these names')
    known = f"the schedules are {_names(schedules)}" if schedules else "there are none"
    raise EmulatorError(f'there is no schedule "{name}"; {known}')


def _names(schedules: Sequence[Mapping[str, Any]]) -> str:
    ids = [_id(each) for each in schedules]
    names = [each["name"] if ids.count(id_) > 1 else id_ for each, id_ in zip(schedules, ids, strict=True)]
    more = len(names) - _MAX_NAMED_SCHEDULES
    return ", ".join([*names[:_MAX_NAMED_SCHEDULES], *([f"and {more} more"] if more > 0 else [])])


def _id(schedule: Mapping[str, Any]) -> str:
    return str(schedule["name"]).rpartition("/")[2]


def _table(schedules: Sequence[Mapping[str, Any]]) -> list[str]:
    if not schedules:
        return ["no schedules"]
    rows = [_HEADINGS, *map(_row, schedules)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(schedule: Mapping[str, Any]) -> tuple[str, ...]:
    next_time = "paused" if schedule["paused"] else next(iter(schedule["nextTimes"]), "none")
    last = schedule["runs"][0] if schedule["runs"] else None
    last_run = f"{last['scheduleTime']} {last['state'].lower()}" if last else "none"
    return (_id(schedule), schedule["cron"], schedule["timeZone"], next_time, last_run)


_PRUNE_SECONDS = 3600.0  # folders may have millions of files


def prune(root: Path, age_seconds: int, outputs: bool, is_dry_run: bool, as_json: bool) -> Iterator[str]:
    """Remove jobs that ended longer ago than an age, and yield lines about what was removed. Raises EmulatorError.

    An emulator that runs does so itself. `outputs` removes the jobs' output folders, too.
    """
    from vertex_emulator.database import Database
    from vertex_emulator.pruning import PruneReport, prune_jobs

    if not root.is_dir():
        raise EmulatorError(f"there is no data folder at {root}; choose one with --data")
    data = DataFolder.open(root)
    if is_locked(data.lock):
        body = {"ageSeconds": age_seconds, "outputs": outputs, "dryRun": is_dry_run}
        reply = send(require_endpoint(data.root), "/vertex_emulator/prune", body, timeout_seconds=_PRUNE_SECONDS)
        report = PruneReport(**reply["removed"])
    else:
        before = now_ns() - age_seconds * 10**9
        with acquire_lock(data.lock), contextlib.closing(Database(data.database)) as database:
            report = prune_jobs(database, data, before, outputs, is_dry_run)
    if as_json:
        yield json.dumps(asdict(report), indent=2)
        return
    yield (
        f"{'would remove' if is_dry_run else 'removed'} {report.jobs} jobs, {report.trials} trials, "
        f"{report.operations} operations, {report.log_bytes} bytes of logs, and {report.objects} objects "
        f"({report.object_bytes} bytes)"
    )
    if report.fetched:
        verb = "would remove" if is_dry_run else "removed"
        yield f"{verb} {report.fetched} objects that runs have fetched ({report.fetched_bytes} bytes)"
    for uri in report.kept_outputs:
        yield f"{'would keep' if is_dry_run else 'kept'} {uri}, to which a model, an artifact or another job refers"


def reset(root: Path) -> str:
    """Remove what a data folder has except its buckets, with all containers, and return a line about it.

    Raises what `clear` raises.
    """
    from vertex_emulator.pruning import clear

    if not root.is_dir():
        return f"there is nothing at {root}"
    clear(root)
    return f"reset {root}: removed jobs, containers, logs and schedules, kept buckets"
