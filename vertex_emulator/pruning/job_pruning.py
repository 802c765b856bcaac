"""The removal of jobs that ended long ago, with their logs and, if wanted, their output folders."""

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.pruning.output_folder_pruning import (
    find_base_output_uri_or_none,
    remove_output_folders_and_count_objects,
    split_into_unreferenced_and_referenced_uris,
)

_JOBS_AT_ONCE = 100  # so that requests in between do not wait long


@dataclass(frozen=True)
class PruneReport:
    """What was removed, or would be. `jobs` are without those of trials; sizes are in bytes.

    `kept_outputs` are the URIs of output folders to which a model or another job refers.
    """

    jobs: int
    trials: int
    operations: int
    log_bytes: int
    objects: int = 0
    object_bytes: int = 0
    kept_outputs: list[str] = field(default_factory=list)


def prune_jobs_and_get_report(
    database: Database,
    data: DataFolder,
    before_ns: int,
    removes_outputs: bool,
    is_dry_run: bool,
    on_deleted: Callable[[str], None] = lambda _job_id: None,
) -> PruneReport:
    """Remove jobs that ended before `before_ns` (since 1970) with trials, logs and messages, and operations as old.

    Models stay. So do jobs that have not ended, and the job of a pipeline until the pipeline goes too. Output folders
    go with `removes_outputs`, unless a model or a remaining job refers to them. `on_deleted` gets the id of each job
    that is gone, trials' jobs too. A dry run removes nothing and reports the same.
    """
    with database.read() as transaction:
        job_ids = transaction.jobs.old(before_ns)
        all_ids = transaction.jobs.with_trials(job_ids)
        operations = transaction.operations.count_old(before_ns)
        outputs, kept = list[str](), list[str]()
        if removes_outputs:
            old_jobs = (transaction.jobs.get(job_id) for job_id in job_ids)
            uris = (find_base_output_uri_or_none(job.spec) for job in old_jobs if job is not None)
            others = transaction.rows.specs(set(job_ids))
            outputs, kept = split_into_unreferenced_and_referenced_uris(
                (uri for uri in uris if uri is not None), others
            )
    log_bytes = sum(_compute_folder_bytes(parent / job_id) for job_id in all_ids for parent in (data.logs, data.trials))
    if not is_dry_run:
        _delete_jobs_operations_and_files(database, data, job_ids, before_ns, on_deleted)
    objects, object_bytes = remove_output_folders_and_count_objects(data, outputs, is_dry_run)
    trials = len(all_ids) - len(job_ids)
    return PruneReport(len(job_ids), trials, operations, log_bytes, objects, object_bytes, kept)


def _delete_jobs_operations_and_files(
    database: Database, data: DataFolder, job_ids: Sequence[str], before_ns: int, on_deleted: Callable[[str], None]
) -> None:
    for start in range(0, len(job_ids), _JOBS_AT_ONCE):
        some = job_ids[start : start + _JOBS_AT_ONCE]
        with database.write() as transaction:
            all_ids = transaction.jobs.with_trials(some)
            transaction.jobs.delete(*some)
        for job_id in all_ids:
            data.remove_job(job_id)
            on_deleted(job_id)
    with database.write() as transaction:
        transaction.operations.delete_old(before_ns)
    database.shrink()


def _compute_folder_bytes(folder: Path) -> int:
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
