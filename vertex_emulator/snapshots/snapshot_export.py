"""The export of a data folder as an archive. Equal data folders give equal archives, byte for byte."""

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vertex_emulator.data_folder import DataFolder, acquire_lock
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.database.tables import SNAPSHOT
from vertex_emulator.errors import EmulatorError, InvalidBucketUri
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.gcs.metadata import MetadataDatabase
from vertex_emulator.replicas.saved_logs import is_log_saved
from vertex_emulator.snapshots.archive_format import BUCKETS_PREFIX, DATABASE_PREFIX, LOG_NAME, LOGS_PREFIX, OBJECTS
from vertex_emulator.snapshots.archive_writing import ArchiveEntry, write_manifest_and_entries_atomically
from vertex_emulator.snapshots.exported_bucket_entries import BucketArchiveEntries
from vertex_emulator.snapshots.progress import ReportProgress

_REDACTED = "redacted"
_MAX_NAMED = 5


def export_snapshot_and_iterate_report_lines(
    data_path: Path, archive: Path, redacts_env: bool, report: ReportProgress = lambda *_: None
) -> Iterator[str]:
    """Write all ended jobs, their logs, models and buckets to a new file for its owner only; yield lines about it.

    `redacts_env` replaces the values of environment variables in the specs of jobs and models. Raises EmulatorError,
    also for jobs that have not ended, and StartError while an emulator runs.
    """
    if not data_path.is_dir():
        raise EmulatorError(f"there is no data folder at {data_path}; choose one with --data")
    if archive.exists():
        raise EmulatorError(f"{archive} exists; choose another name, or remove it first")
    data = DataFolder.open(data_path)
    with (
        acquire_lock(data.lock),
        closing(Database(data.database)) as database,
        closing(MetadataDatabase(data.object_metadata)) as metadata,
        contextlib.ExitStack() as files,
        database.read() as transaction,
    ):
        jobs = [*transaction.jobs.created()]
        schedules = len(transaction.schedules.all())
        _raise_unless_ended_with_saved_logs(transaction, data)
        buckets = BucketArchiveEntries(BucketTree(data.buckets), report)
        try:
            entries = [
                *_iterate_archive_entries_of_tables(transaction, redacts_env, files),
                _write_temporary_file_and_build_entry(OBJECTS, _iterate_object_metadata_rows(metadata), files),
                *_iterate_archive_entries_of_log_files(data),
                *buckets.iterate_entries_and_record_omissions(),
            ]
            write_manifest_and_entries_atomically(archive, entries, report)
        except OSError as error:
            place = error.filename or archive
            raise EmulatorError(f"{archive} was not written: {place}: {error.strerror or error}") from error
        except InvalidBucketUri as error:  # a folder has become a link meanwhile
            raise EmulatorError(f"{archive} was not written: {error}") from error
    objects = sum(entry.name.startswith(BUCKETS_PREFIX) and entry.open_file is not None for entry in entries)
    yield f"exported {len(jobs)} jobs and {objects} objects to {archive} ({archive.stat().st_size} bytes)"
    if schedules:
        yield f"it has none of the {schedules} schedules of the folder"
    if buckets.omitted:
        yield f"left out: {_join_first_and_count_rest(buckets.omitted)}"
    if not redacts_env:
        yield "it has the environment variables of jobs as they were submitted; --redact-env leaves their values out"


def _raise_unless_ended_with_saved_logs(transaction: Transaction, data: DataFolder) -> None:
    jobs = [job for id_ in transaction.jobs.unfinished() if (job := transaction.jobs.get(id_)) is not None]
    if jobs:
        raise EmulatorError(
            f"jobs have not ended: {_join_first_job_names_and_count_rest(jobs)}; start the emulator, wait until they "
            "end or cancel them, and stop it: only ended jobs can be exported"
        )
    ended = (_get_existing_job(transaction, row["id"]) for row in transaction.rows.read("jobs"))
    unsaved = [job for job in ended if not _are_logs_saved(data, job)]
    if unsaved:
        raise EmulatorError(
            f"logs are not saved yet: {_join_first_job_names_and_count_rest(unsaved)}; start the emulator, which saves "
            "them, and stop it again"
        )


def _get_existing_job(transaction: Transaction, job_id: str) -> Job:
    job = transaction.jobs.get(job_id)
    assert job is not None
    return job


def _are_logs_saved(data: DataFolder, job: Job) -> bool:
    replicas = (Replica(each["pool"], each["index"], each["attempt"]) for each in job.replica_outcomes)
    return all(is_log_saved(data.logs, job.id, replica) for replica in replicas)


def _join_first_job_names_and_count_rest(jobs: Iterable[Job]) -> str:
    return _join_first_and_count_rest([job.name for job in jobs])


def _join_first_and_count_rest(texts: Sequence[str]) -> str:
    more = len(texts) - _MAX_NAMED
    return ", ".join(texts[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _iterate_archive_entries_of_tables(
    transaction: Transaction, redacts_env: bool, files: contextlib.ExitStack
) -> Iterator[ArchiveEntry]:
    for table in SNAPSHOT:
        rows = transaction.rows.read(table)
        if redacts_env:
            rows = map(_copy_row_redacting_env, rows)
        yield _write_temporary_file_and_build_entry(f"{DATABASE_PREFIX}{table}.jsonl", rows, files)


def _copy_row_redacting_env(row: Mapping[str, Any]) -> dict[str, Any]:
    if "spec" not in row:
        return dict(row)
    return {**row, "spec": json.dumps(_copy_redacting_env_lists(json.loads(row["spec"])))}


def _copy_redacting_env_lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: [{**each, "value": _REDACTED} if "value" in each else each for each in child]
            if key == "env" and isinstance(child, list)
            else _copy_redacting_env_lists(child)
            for key, child in value.items()
        }
    return [*map(_copy_redacting_env_lists, value)] if isinstance(value, list) else value


def _iterate_object_metadata_rows(metadata: MetadataDatabase) -> Iterator[dict[str, Any]]:
    for bucket, name, generation, values in metadata.rows():
        yield {"bucket": bucket, "name": name, "generation": generation, **asdict(values)}


def _write_temporary_file_and_build_entry(
    name: str, rows: Iterable[Mapping[str, Any]], files: contextlib.ExitStack
) -> ArchiveEntry:
    """Write rows to a temporary file, because an archive has the size of a file before its content."""
    file = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    for row in rows:
        file.write(json.dumps(row).encode() + b"\n")
    size = file.tell()
    file.seek(0)
    return ArchiveEntry(name, size, lambda: file)


def _iterate_archive_entries_of_log_files(data: DataFolder) -> Iterator[ArchiveEntry]:
    for path in sorted(data.logs.glob("*/*.jsonl")):
        name = f"{LOGS_PREFIX}{path.parent.name}/{path.name}"
        if LOG_NAME.fullmatch(name):
            yield ArchiveEntry(name, path.stat().st_size, lambda path=path: path.open("rb"))  # type: ignore[misc]
