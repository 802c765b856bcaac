"""What the replicas of a job have used, beside what their machine types have, and which buckets it has touched."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vertex_api.machines import MACHINES
from vertex_api.names import HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database import Transaction
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.database.usage import Usage

MAX_ENTRIES = 100_000
"""How many files and folders of all buckets are looked at."""
_GIB = 1 << 30


def custom_jobs(transaction: Transaction, job: Job) -> list[Job]:
    """Return the jobs whose replicas run for a job: itself, those of all its trials, or those of a pipeline's job."""
    progress = transaction.pipelines.get(job.id)
    backing = transaction.jobs.get(progress.job) if progress is not None else None
    job = backing or job
    if job.kind == HYPERPARAMETER_TUNING_JOB:
        return sorted(transaction.jobs.of_study(job.id), key=lambda each: each.trial or 0)
    return [job]


def describe(job: Job, used: Mapping[Replica, Usage]) -> Iterator[dict[str, Any]]:
    """Yield for each replica of a custom job that was read what it used in all its attempts.

    The fields are `job`, `trial` or None, `task`, `machineType` with its `memoryBytes` and `vcpus` if they are known,
    `peakMemoryBytes`, `memoryLimitBytes` as set on this machine, `cpuSeconds`, `receivedBytes` and `sentBytes`.
    """
    for first in job.requested_replicas:
        attempts = [usage for replica, usage in used.items() if replica.first_attempt == first]
        if not attempts:
            continue
        type_name = job.spec["jobSpec"]["workerPoolSpecs"][first.pool].get("machineSpec", {}).get("machineType", "")
        machine = MACHINES.get(type_name)
        yield {
            "job": job.id,
            "trial": job.trial,
            "task": first.task_name,
            "machineType": type_name,
            "peakMemoryBytes": max(each.peak_memory for each in attempts),
            "memoryLimitBytes": attempts[-1].memory_limit,
            **({"memoryBytes": int(machine.memory_gb * _GIB), "vcpus": machine.vcpus} if machine else {}),
            "cpuSeconds": round(sum(each.cpu for each in attempts) / 10**9, 2),
            "receivedBytes": sum(each.received for each in attempts),
            "sentBytes": sum(each.sent for each in attempts),
        }


def touched(buckets: Path, since: int, until: int) -> list[str]:
    """Return the buckets with a file that was read or written from one time (ns) to another, by the files' own times.

    What has touched a file later hides that. File systems keep the time of reading as they are mounted: with
    `relatime`, Linux's default, that of the first one after a change, and that of one a day; with `noatime`, none.
    """
    return sorted(bucket.name for bucket in _folders(buckets) if _is_touched(bucket, since, until))


def _folders(folder: Path) -> Iterable[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]


def _is_touched(bucket: os.DirEntry[str], since: int, until: int) -> bool:
    pending, left = [bucket.path], MAX_ENTRIES
    while pending and left > 0:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        found = entry.stat(follow_symlinks=False)
                        if since <= found.st_mtime_ns <= until or since <= found.st_atime_ns <= until:
                            return True
        except OSError:
            continue
    return False
