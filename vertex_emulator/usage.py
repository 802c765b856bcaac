"""What the replicas of a job have used, beside what their machine types have, and which buckets it has touched."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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


class Stamp(NamedTuple):
    """What tells a file from what it was: a file that is only moved has all of it."""

    modified: int
    size: int
    inode: int

    def is_content_of(self, other: "Stamp") -> bool:
        """Whether nothing has written to it; a file of an overlay may get another inode all the same."""
        return self[:2] == other[:2]


State = Mapping[str, Mapping[str, Stamp]]
"""The files of buckets by name as objects, of those that have not too many."""


class Touch(NamedTuple):
    """A file of a bucket, by its name as an object, and what was done: "get", "create" or "delete"."""

    name: str
    verb: str


def state(buckets: Path) -> State:
    """Return what buckets have, to compare it with what they have later."""
    found = {bucket.name: _Files(bucket) for bucket in _folders(buckets)}
    return {bucket: files.stamps for bucket, files in found.items() if files.are_all}


def touched(buckets: Path, since: int, until: int, before: State | None = None) -> dict[str, list[Touch]]:
    """Return what was read or written from one time (ns) to another, by the files' own times, of each bucket with any.

    What has touched a file later hides that. File systems keep the time of reading as they are mounted: with
    `relatime`, Linux's default, that of the first one after a change, and that of one a day; with `noatime`, none.
    With the state `before`, files that are there no more, under another name or overwritten are told, too.
    """
    found = {
        bucket.name: [*_touches(_Files(bucket), since, until, (before or {}).get(bucket.name))]
        for bucket in _folders(buckets)
    }
    return {bucket: files for bucket, files in found.items() if files}


def permissions(files: Mapping[str, Iterable[Touch]]) -> Iterator[tuple[str, str]]:
    """Yield what an account needs to touch files of buckets below `/gcs`, as permissions and `gs://BUCKET/OBJECT`.

    One file stands for all of its folder.
    """
    for bucket, each in files.items():
        folders = {(name.rpartition("/")[0], verb): name for name, verb in each}
        for (_, verb), name in folders.items():
            yield f"storage.objects.{verb}", f"gs://{bucket}/{name}"


def _folders(folder: Path) -> Iterable[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]


class _Files:
    """The regular files below a bucket: `stamps` and times of reading, by name. Of too many, they `are_all` not."""

    def __init__(self, bucket: os.DirEntry[str]) -> None:
        self.stamps: dict[str, Stamp] = {}
        self.read: dict[str, int] = {}
        pending, left, has_failed = [("", bucket.path)], MAX_ENTRIES, False
        while pending and left > 0:
            prefix, folder = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        left -= 1
                        if entry.is_dir(follow_symlinks=False):
                            pending.append((f"{prefix}{entry.name}/", entry.path))
                        elif entry.is_file(follow_symlinks=False):
                            found, name = entry.stat(follow_symlinks=False), f"{prefix}{entry.name}"
                            self.stamps[name] = Stamp(found.st_mtime_ns, found.st_size, found.st_ino)
                            self.read[name] = found.st_atime_ns
            except FileNotFoundError:
                continue
            except OSError:
                has_failed = True
        self.are_all = not pending and not has_failed


def _touches(now: _Files, since: int, until: int, before: Mapping[str, Stamp] | None) -> Iterator[Touch]:
    for name, stamp in now.stamps.items():
        old = before.get(name) if before is not None else None
        is_changed = before is not None and (old is None or not stamp.is_content_of(old))
        if is_changed or since <= stamp.modified <= until:
            yield Touch(name, "create")
            if old is not None:  # who replaces an object deletes it
                yield Touch(name, "delete")
        elif since <= now.read[name] <= until:
            yield Touch(name, "get")
    if before is not None and now.are_all:
        moved = {stamp for name, stamp in now.stamps.items() if name not in before}
        for name in before.keys() - now.stamps.keys():
            yield Touch(name, "delete")
            if before[name] in moved:  # which is a copy, and a deletion of its source
                yield Touch(name, "get")
