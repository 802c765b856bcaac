"""What a data folder is rid of: jobs that ended long ago, with logs and, if wanted, outputs; or all but its buckets."""

import contextlib
import os
import re
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vertex_api.jobspec import output_folder
from vertex_emulator.data_folder import DataFolder, acquire_lock
from vertex_emulator.database import Database
from vertex_emulator.errors import EmulatorError, ExecutorUnavailable, InvalidBucketUri
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.gcs.metadata import MetadataDatabase
from vertex_emulator.removal import remove_tree
from vertex_emulator.replicas.executor import Executor

_JOBS_AT_ONCE = 100  # so that requests in between do not wait long


@dataclass(frozen=True)
class PruneReport:
    """What was removed, or would be. `jobs` are without those of trials; sizes are in bytes.

    `kept_outputs` are the URIs of output folders to which a model, an artifact or another job refers. `fetched` are
    objects of Google's that no run has used for as long.
    """

    jobs: int
    trials: int
    operations: int
    log_bytes: int
    objects: int = 0
    object_bytes: int = 0
    kept_outputs: list[str] = field(default_factory=list)
    fetched: int = 0
    fetched_bytes: int = 0


def prune_jobs(
    database: Database,
    data: DataFolder,
    before_ns: int,
    removes_outputs: bool,
    is_dry_run: bool,
    on_deleted: Callable[[str], None] = lambda _job_id: None,
) -> PruneReport:
    """Remove jobs that ended before `before_ns` (since 1970) with trials, logs and messages, and operations as old.

    Models and experiments stay. So do jobs that have not ended, and the job of a pipeline until the pipeline goes too.
    Output folders go with `removes_outputs`, unless a model, an artifact or a remaining job refers to them.
    `on_deleted` gets the id of each job that is gone, trials' jobs too. A dry run removes nothing and reports the same.
    """
    with database.read() as transaction:
        job_ids = transaction.jobs.old(before_ns)
        all_ids = transaction.jobs.with_trials(job_ids)
        operations = transaction.operations.count_old(before_ns)
        outputs, kept = list[str](), list[str]()
        if removes_outputs:
            old_jobs = (transaction.jobs.get(job_id) for job_id in job_ids)
            uris = (_output_uri(job.spec) for job in old_jobs if job is not None)
            others = transaction.rows.specs(set(job_ids))
            outputs, kept = split_referenced((uri for uri in uris if uri), others)
    log_bytes = sum(_folder_bytes(parent / job_id) for job_id in all_ids for parent in data.of_jobs)
    if not is_dry_run:
        _delete_jobs(database, data, job_ids, on_deleted)
        with database.write() as transaction:
            transaction.operations.delete_old(before_ns)
        database.shrink()
    sizes = _remove_outputs(data, outputs, is_dry_run)
    trials = len(all_ids) - len(job_ids)
    fetched = _remove_fetched(data.fetched, before_ns, is_dry_run)
    removed = len(job_ids), trials, operations, log_bytes, len(sizes), sum(sizes), kept
    return PruneReport(*removed, len(fetched), sum(fetched))


def _remove_fetched(folder: Path, before_ns: int, is_dry_run: bool) -> list[int]:
    """Remove fetched objects that were used before a time, begun ones among them; return their sizes."""
    sizes = []
    for path in folder.glob("*/*"):
        with contextlib.suppress(OSError):
            found = path.lstat()
            if found.st_mtime_ns < before_ns:
                if not is_dry_run:
                    path.unlink()
                sizes.append(found.st_size)
    return sizes


def _delete_jobs(
    database: Database, data: DataFolder, job_ids: Sequence[str], on_deleted: Callable[[str], None]
) -> None:
    for start in range(0, len(job_ids), _JOBS_AT_ONCE):
        some = job_ids[start : start + _JOBS_AT_ONCE]
        with database.write() as transaction:
            all_ids = transaction.jobs.with_trials(some)
            transaction.jobs.delete(*some)
        for job_id in all_ids:
            data.remove_job(job_id)
            on_deleted(job_id)


def _folder_bytes(folder: Path) -> int:
    """Return the bytes of the files in a folder; nothing below a link counts, nor what is deeper than a path can be."""
    size, folders = 0, [str(folder)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    size += entry.stat(follow_symlinks=False).st_size
    return size


def _output_uri(spec: Mapping[str, Any]) -> str:
    """Return the base output directory of a custom or tuning job without "/" at its end; "" without one."""
    job_spec = spec.get("jobSpec") or spec.get("trialJobSpec") or {}
    return output_folder(job_spec) or ""


_FOLDER = re.compile(r"(?:gs://|/gcs/)([a-z0-9][^\"'\\\s,;]*)")


def split_referenced(uris: Iterable[str], texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the URIs to which no text refers, and those to which one does, each in order.

    A text refers to a folder by its URI or its path below /gcs, or by those of anything in it or of a folder above it.
    A whole bucket is never unreferenced, and its name alone is no reference to what is in it.
    """
    referred = sorted({match[1].rstrip("/") for text in texts for match in _FOLDER.finditer(text)})
    names = set(referred)
    unreferenced, kept = list[str](), list[str]()
    for uri in sorted(set(uris)):
        name = uri.removeprefix("gs://")
        first_inside = bisect_left(referred, f"{name}/")
        has_inside = first_inside < len(referred) and referred[first_inside].startswith(f"{name}/")
        parts = name.split("/")
        is_inside_other = any("/".join(parts[:end]) in names for end in range(2, len(parts) + 1))
        (kept if has_inside or is_inside_other or len(parts) == 1 else unreferenced).append(uri)
    return unreferenced, kept


def _remove_outputs(data: DataFolder, uris: Iterable[str], is_dry_run: bool) -> list[int]:
    """Remove folders of buckets unless it is a dry run; return the sizes of their objects.

    What a container has replaced meanwhile, or closed to this user, stays.
    """
    tree = BucketTree(data.buckets)
    with closing(MetadataDatabase(data.object_metadata)) as metadata:
        return [size for uri in uris for size in _remove_folder(tree, metadata, uri, is_dry_run)]


def _remove_folder(tree: BucketTree, metadata: MetadataDatabase, uri: str, is_dry_run: bool) -> Iterator[int]:
    """Remove a folder of a bucket unless it is a dry run, and yield the size of each object in it."""
    try:
        with tree.scan(uri) as scan:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False), _file_size(entry)) for entry in scan]
    except (InvalidBucketUri, OSError):
        return
    for name, is_folder, size in entries:
        inner = f"{uri}/{name}"
        if is_folder:
            yield from _remove_folder(tree, metadata, inner, is_dry_run)
            continue
        with contextlib.suppress(InvalidBucketUri, OSError):
            if not is_dry_run:
                tree.unlink(inner)
                bucket, _, object_name = inner.removeprefix("gs://").partition("/")
                metadata.delete(bucket, object_name)
            if size is not None:
                yield size
    if not is_dry_run:
        with contextlib.suppress(InvalidBucketUri, OSError):
            tree.rmdir(uri)


def _file_size(entry: os.DirEntry[str]) -> int | None:
    """Return the bytes of a regular file; None for anything else."""
    return entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else None


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
        for folder in data.of_jobs:
            with contextlib.suppress(OSError):
                remove_tree(folder)


def _read_emulator_id(database: Path) -> str | None:
    """Read the id that labels this folder's containers, from a database of any version or a damaged one."""
    with closing(sqlite3.connect(database)) as connection:
        try:
            row = connection.execute("SELECT value FROM settings WHERE key = 'emulator'").fetchone()
        except sqlite3.Error:
            return None
    return row[0] if row else None
