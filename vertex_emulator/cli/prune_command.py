"""The command `prune`: old jobs are removed, by the emulator if it runs, else from the data folder."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from vertex_emulator.cli.emulator_requests import send_request
from vertex_emulator.data_folder import DataFolder, acquire_lock, is_locked, require_endpoint
from vertex_emulator.database import Database
from vertex_emulator.errors import EmulatorError
from vertex_emulator.pruning.job_pruning import PruneReport, prune_jobs_and_get_report
from vertex_emulator.times import now_ns

_PRUNE_SECONDS = 3600.0  # folders may have millions of files


def prune_jobs_and_iterate_report_lines(
    data_path: Path, age_seconds: int, removes_outputs: bool, is_dry_run: bool, as_json: bool
) -> Iterator[str]:
    """Remove jobs that ended longer ago than an age, and yield lines about what was removed. Raises EmulatorError."""
    if not data_path.is_dir():
        raise EmulatorError(f"there is no data folder at {data_path}; choose one with --data")
    data = DataFolder.open(data_path)
    if is_locked(data.lock):
        body = {"ageSeconds": age_seconds, "outputs": removes_outputs, "dryRun": is_dry_run}
        endpoint = require_endpoint(data.root)
        reply = send_request(endpoint, "/vertex_emulator/prune", body, timeout_seconds=_PRUNE_SECONDS)
        report = PruneReport(**reply["removed"])
    else:
        before = now_ns() - age_seconds * 10**9
        with acquire_lock(data.lock), closing(Database(data.database)) as database:
            report = prune_jobs_and_get_report(database, data, before, removes_outputs, is_dry_run)
    yield from [json.dumps(asdict(report), indent=2)] if as_json else _iterate_report_lines(report, is_dry_run)


def _iterate_report_lines(report: PruneReport, is_dry_run: bool) -> Iterator[str]:
    verb = "would remove" if is_dry_run else "removed"
    yield (
        f"{verb} {report.jobs} jobs, {report.trials} trials, {report.operations} operations, "
        f"{report.log_bytes} bytes of logs, and {report.objects} objects ({report.object_bytes} bytes)"
    )
    for uri in report.kept_outputs:
        yield f"{'would keep' if is_dry_run else 'kept'} {uri}, to which a model or another job refers"
