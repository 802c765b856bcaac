"""The commands that remove from a data folder: `prune` old jobs, `reset` all of them."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path

from vertex_emulator.cli.emulator import send
from vertex_emulator.data_folder import DataFolder, acquire_lock, is_locked, remove_tree, require_endpoint
from vertex_emulator.database import Database
from vertex_emulator.errors import EmulatorError, ExecutorUnavailable
from vertex_emulator.pruning import PruneReport, prune_jobs
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.times import now_ns

_PRUNE_SECONDS = 3600.0  # folders may have millions of files


def prune(root: Path, age_seconds: int, outputs: bool, is_dry_run: bool, as_json: bool) -> Iterator[str]:
    """Remove jobs that ended longer ago than an age, and yield lines about what was removed. Raises EmulatorError.

    An emulator that runs does so itself. `outputs` removes the jobs' output folders, too.
    """
    if not root.is_dir():
        raise EmulatorError(f"there is no data folder at {root}; choose one with --data")
    data = DataFolder.open(root)
    if is_locked(data.lock):
        body = {"ageSeconds": age_seconds, "outputs": outputs, "dryRun": is_dry_run}
        reply = send(require_endpoint(data.root), "/vertex_emulator/prune", body, timeout_seconds=_PRUNE_SECONDS)
        report = PruneReport(**reply["removed"])
    else:
        before = now_ns() - age_seconds * 10**9
        with acquire_lock(data.lock), closing(Database(data.database)) as database:
            report = prune_jobs(database, data, before, outputs, is_dry_run)
    if as_json:
        yield json.dumps(asdict(report), indent=2)
        return
    yield (
        f"{'would remove' if is_dry_run else 'removed'} {report.jobs} jobs, {report.trials} trials, "
        f"{report.operations} operations, {report.log_bytes} bytes of logs, and {report.objects} objects "
        f"({report.object_bytes} bytes)"
    )
    for uri in report.kept_outputs:
        yield f"{'would keep' if is_dry_run else 'kept'} {uri}, to which a model or another job refers"


def reset(root: Path) -> str:
    """Remove what a data folder has except its buckets, with all containers, and return a line about it.

    Raises what `clear` raises.
    """
    if not root.is_dir():
        return f"there is nothing at {root}"
    clear(root)
    return f"reset {root}: removed jobs, containers, logs and schedules, kept buckets"


def clear(root: Path) -> None:
    """Remove all jobs with their containers and logs, models and schedules, and keep buckets.

    Raises StartError while an emulator runs, and EmulatorError if Docker does not answer.
    """
    data = DataFolder.open(root)
    with acquire_lock(data.lock):
        emulator_id = _read_emulator_id(data.database)
        if emulator_id is not None:
            executor = Executor(emulator_id, on_pulled=lambda _: None)
            try:
                for job in executor.job_ids():
                    executor.remove(job)
                executor.release_firewall()
            except ExecutorUnavailable as error:
                raise EmulatorError(f"nothing was reset, because containers cannot be removed: {error}") from error
        for suffix in ("", "-wal", "-shm"):
            data.database.with_name(data.database.name + suffix).unlink(missing_ok=True)
        for folder in (data.logs, data.trials):
            with suppress(OSError):
                remove_tree(folder)


def _read_emulator_id(database: Path) -> str | None:
    """Read the id that labels this folder's containers, from a database of any version or a damaged one."""
    with closing(sqlite3.connect(database)) as connection:
        try:
            row = connection.execute("SELECT value FROM settings WHERE key = 'emulator'").fetchone()
        except sqlite3.Error:
            return None
    return row[0] if row else None
