"""What it costs to page through the log of a job that has written 100,000 lines."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.emulator import IMAGE, Emulator, data_folder, running
from benchmarks.measure import row
from vertex_api.names import CUSTOM_JOB
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import SUCCEEDED, Ending, Replica
from vertex_emulator.names import Location, new_id
from vertex_emulator.replicas import logs
from vertex_emulator.replicas.logs import LogLine
from vertex_emulator.times import now_ns

LINES = 100_000
_CONTAINER = {"imageUri": IMAGE, "command": ["python3", "-c", "pass"]}
_POOL = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": _CONTAINER}
_JOB = {"displayName": "benchmark", "jobSpec": {"workerPoolSpecs": [_POOL]}}


def rows() -> Iterator[str]:
    """Read a saved log page by page, and yield a line with the median of the pages."""
    with data_folder() as data:
        job_id = _add_job(data)
        with running(data) as emulator:
            yield from _page_rows(emulator, job_id)


def _page_rows(emulator: Emulator, job_id: str) -> Iterator[str]:
    body = {"filter": f'resource.labels.job_id="{job_id}"', "pageSize": 1000, "pageToken": ""}
    pages = []
    while True:
        begin = time.perf_counter()
        reply = emulator.call("POST", "v2/entries:list", body)
        pages.append((time.perf_counter() - begin) * 1000)
        body["pageToken"] = reply.get("nextPageToken", "")
        if not body["pageToken"]:
            break
    tenth = len(pages) // 10
    first, last = statistics.median(pages[:tenth]), statistics.median(pages[-tenth:])
    note = f"first tenth {first:.0f}, last tenth {last:.0f}: every page costs the same"
    yield row(f"1,000 of {LINES:,} log lines", statistics.median(pages), "ms", note=note)


def _add_job(data: Path) -> str:
    """Add an ended job with a saved log, and return its id."""
    folder = DataFolder.open(data)
    database = Database(folder.database)
    begin = now_ns()
    with database.write() as transaction:
        location = Location("benchmark", "us-central1")
        job = transaction.jobs.add(new_id(), CUSTOM_JOB, location, _JOB)
        transaction.jobs.end(job, Ending(SUCCEEDED, 0, "", now_ns()), started=job.created)
    lines = (LogLine(begin + i, "o", f"epoch {i}: loss 0.1234, accuracy 0.9876") for i in range(LINES))
    logs.SavedLog(folder.logs, job.id, Replica(0, 0)).save(lines)
    database.close()
    return job.id
