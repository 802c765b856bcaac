"""The removal of jobs that ended long ago, with their logs and, if wanted, their output folders."""

import contextlib
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.object_metadata_database import ObjectMetadataDatabase
from vertex_emulator.gcs.symlink_safe_bucket_files import BucketFileTree

_URI_OR_MOUNTED_PATH = re.compile(r"(?:gs://|/gcs/)([a-z0-9][^\"'\\\s,;]*)")
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
    with database.read_transaction() as transaction:
        job_ids = transaction.pruning.list_old_job_ids(before_ns)
        all_ids = transaction.pruning.list_given_and_trial_job_ids(job_ids)
        operations = transaction.pruning.count_old_operations(before_ns)
        outputs, kept = list[str](), list[str]()
        if removes_outputs:
            old_jobs = (transaction.get_job(job_id) for job_id in job_ids)
            uris = (_find_base_output_uri_or_none(job.spec) for job in old_jobs if job is not None)
            others = transaction.pruning.iterate_json_specs_of_models_schedules_and_other_jobs(set(job_ids))
            outputs, kept = split_into_unreferenced_and_referenced_uris(
                (uri for uri in uris if uri is not None), others
            )
    log_bytes = sum(_compute_folder_bytes(parent / job_id) for job_id in all_ids for parent in (data.logs, data.trials))
    if not is_dry_run:
        _delete_jobs_operations_and_files(database, data, job_ids, before_ns, on_deleted)
    tree, objects, object_bytes = BucketFileTree(data.buckets), 0, 0
    with closing(ObjectMetadataDatabase(data.object_metadata)) as metadata:
        for size in (
            size for uri in outputs for size in _remove_objects_and_iterate_sizes(tree, metadata, uri, is_dry_run)
        ):
            objects, object_bytes = objects + 1, object_bytes + size
    trials = len(all_ids) - len(job_ids)
    return PruneReport(len(job_ids), trials, operations, log_bytes, objects, object_bytes, kept)


def split_into_unreferenced_and_referenced_uris(
    uris: Iterable[str], other_texts: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Return the URIs to which no other text refers, and those to which one does, each in order.

    A text refers to a folder by its URI or its path below /gcs, or by those of anything in it or of a folder above it.
    A whole bucket is never unreferenced, and its name alone is no reference to what is in it.
    """
    referred = sorted({match[1].rstrip("/") for text in other_texts for match in _URI_OR_MOUNTED_PATH.finditer(text)})
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


def _find_base_output_uri_or_none(spec: Mapping[str, Any]) -> str | None:
    """Return the base output directory of a custom or tuning job without "/" at its end; `None` without one."""
    job_spec = spec.get("jobSpec") or spec.get("trialJobSpec") or {}
    uri = job_spec.get("baseOutputDirectory", {}).get("outputUriPrefix", "").rstrip("/")
    return uri or None


def _delete_jobs_operations_and_files(
    database: Database, data: DataFolder, job_ids: Sequence[str], before_ns: int, on_deleted: Callable[[str], None]
) -> None:
    for start in range(0, len(job_ids), _JOBS_AT_ONCE):
        some = job_ids[start : start + _JOBS_AT_ONCE]
        with database.write_transaction() as transaction:
            all_ids = transaction.pruning.list_given_and_trial_job_ids(some)
            transaction.pruning.delete_jobs_with_trials(some)
        for job_id in all_ids:
            data.try_to_remove_logs_and_metric_files(job_id)
            on_deleted(job_id)
    with database.write_transaction() as transaction:
        transaction.pruning.delete_old_operations(before_ns)
    database.shrink_file()


def _remove_objects_and_iterate_sizes(
    tree: BucketFileTree, metadata: ObjectMetadataDatabase, uri: str, is_dry_run: bool
) -> Iterator[int]:
    """Remove a folder of a bucket unless it is a dry run, and yield the size of each object in it.

    What a container has replaced meanwhile, or closed to this user, stays.
    """
    try:
        with tree.open_folder_scan(uri) as scan:
            entries = [
                (entry.name, entry.is_dir(follow_symlinks=False), _get_file_size_or_none(entry)) for entry in scan
            ]
    except (InvalidBucketUri, OSError):
        return
    for name, is_folder, size in entries:
        inner = f"{uri}/{name}"
        if is_folder:
            yield from _remove_objects_and_iterate_sizes(tree, metadata, inner, is_dry_run)
            continue
        with contextlib.suppress(InvalidBucketUri, OSError):
            if not is_dry_run:
                tree.remove_file(inner)
                bucket, _, object_name = inner.removeprefix("gs://").partition("/")
                metadata.delete_all_generations(bucket, object_name)
            if size is not None:
                yield size
    if not is_dry_run:
        with contextlib.suppress(InvalidBucketUri, OSError):
            tree.remove_empty_folder(uri)


def _get_file_size_or_none(entry: os.DirEntry[str]) -> int | None:
    """Return the bytes of a regular file; `None` for anything else."""
    return entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else None


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
