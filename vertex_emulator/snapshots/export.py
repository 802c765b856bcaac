"""The export of a data folder as an archive. Equal data folders give equal archives, byte for byte."""

import contextlib
import json
import posixpath
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from vertex_emulator.data_folder import DataFolder, acquire_lock
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.connection import SNAPSHOT
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.errors import EmulatorError, InvalidBucketUri
from vertex_emulator.gcs.files import ROOT, BucketTree, NotRegularFile, is_utf8, split_uri
from vertex_emulator.gcs.metadata import MetadataDatabase
from vertex_emulator.replicas.logs import SavedLog
from vertex_emulator.snapshots import archive as archives
from vertex_emulator.snapshots.archive import (
    BUCKETS_PREFIX,
    DATABASE_PREFIX,
    LOG_NAME,
    LOGS_PREFIX,
    OBJECTS,
    Entry,
    Report,
)

_REDACTED = "redacted"
_MAX_NAMED = 5
Item = TypeVar("Item")


def export(data_path: Path, archive: Path, redacts_env: bool, report: Report = lambda *_: None) -> Iterator[str]:
    """Write all but schedules and settings to a new file for its owner only, and yield lines about it.

    That is ended jobs with their logs, models, tensorboards, experiments and buckets.
    `redacts_env` replaces the values of environment variables in the specs of jobs and models. Raises EmulatorError,
    also for jobs that have not ended, and StartError while an emulator runs.
    """
    if not data_path.is_dir():
        raise EmulatorError(f"there is no data folder at {data_path}; choose one with --data")
    if archive.exists():
        raise EmulatorError(f"{archive} exists; choose another name, or remove it first")

    # The lock and one transaction for all, so that the archive is of one moment.
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
        _require_ended(transaction, data, report)

        buckets = _BucketEntries(BucketTree(data.buckets), report)
        try:
            entries = [
                *_table_entries(transaction, redacts_env, files, report),
                _rows_entry(OBJECTS, _metadata_rows(metadata), files, report),
                *_log_entries(data, report),
                *buckets.below(""),
            ]
            archives.write(archive, entries, report)
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
        yield f"left out: {_join_first(buckets.omitted)}"
    if not redacts_env:
        yield "it has the environment variables of jobs as they were submitted; --redact-env leaves their values out"


def _require_ended(transaction: Transaction, data: DataFolder, report: Report) -> None:
    """Raise EmulatorError for jobs that have not ended, or whose logs are not saved."""
    jobs = [job for id_ in transaction.jobs.unfinished() if (job := transaction.jobs.get(id_)) is not None]
    if jobs:
        raise EmulatorError(
            f"jobs have not ended: {_join_first([job.name for job in jobs])}; start the emulator, wait until they "
            "end or cancel them, and stop it: only ended jobs can be exported"
        )

    def is_saved(job: Job) -> bool:
        replicas = (Replica(each["pool"], each["index"], each["attempt"]) for each in job.replica_outcomes)
        return all(SavedLog(data.logs, job.id, replica).exists for replica in replicas)

    rows = _reported("checking jobs", transaction.rows.read("jobs"), report)
    ended = (transaction.jobs.get(row["id"]) for row in rows)
    unsaved = [job.name for job in ended if job is not None and not is_saved(job)]
    if unsaved:
        raise EmulatorError(
            f"logs are not saved yet: {_join_first(unsaved)}; start the emulator, which saves them, and stop it again"
        )


def _join_first(texts: Sequence[str]) -> str:
    more = len(texts) - _MAX_NAMED
    return ", ".join(texts[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _reported(action: str, items: Iterable[Item], report: Report) -> Iterator[Item]:
    for number, item in enumerate(items, 1):
        report(action, number, 0)
        yield item


def _table_entries(
    transaction: Transaction, redacts_env: bool, files: contextlib.ExitStack, report: Report
) -> Iterator[Entry]:
    for table in SNAPSHOT:
        rows = transaction.rows.read(table)
        if redacts_env:
            rows = map(_redact_row, rows)
        yield _rows_entry(f"{DATABASE_PREFIX}{table}.jsonl", rows, files, report)


def _redact_row(row: Mapping[str, Any]) -> dict[str, Any]:
    if "spec" not in row:
        return dict(row)
    return {**row, "spec": json.dumps(_redact_env(json.loads(row["spec"])))}


def _redact_env(value: Any) -> Any:
    """Return a copy of a value in which every list `env` has no values."""
    if isinstance(value, Mapping):
        return {
            key: [{**each, "value": _REDACTED} if "value" in each else each for each in child]
            if key == "env" and isinstance(child, list)
            else _redact_env(child)
            for key, child in value.items()
        }
    return [*map(_redact_env, value)] if isinstance(value, list) else value


def _metadata_rows(metadata: MetadataDatabase) -> Iterator[dict[str, Any]]:
    for bucket, name, generation, values in metadata.rows():
        yield {"bucket": bucket, "name": name, "generation": generation, **asdict(values)}


def _rows_entry(name: str, rows: Iterable[Mapping[str, Any]], files: contextlib.ExitStack, report: Report) -> Entry:
    """Write rows to a temporary file, because an archive has the size of a file before its content."""
    file = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    for row in _reported(f"reading {name}", rows, report):
        file.write(json.dumps(row).encode() + b"\n")
    size = file.tell()
    file.seek(0)
    return Entry(name, size, lambda: file)


def _log_entries(data: DataFolder, report: Report) -> Iterator[Entry]:
    for path in sorted(_reported("listing logs", data.logs.glob("*/*.jsonl"), report)):
        name = f"{LOGS_PREFIX}{path.parent.name}/{path.name}"
        if LOG_NAME.fullmatch(name):
            yield Entry(name, path.stat().st_size, lambda path=path: path.open("rb"))  # type: ignore[misc]


@dataclass
class _BucketEntries:
    """What buckets have: folders, objects, and links that lead to their own bucket.

    What has no entry is in `omitted` afterwards, each with its URI and the reason.
    """

    tree: BucketTree
    report: Report
    omitted: list[str] = field(default_factory=list)
    _found: int = 0

    def below(self, path: str) -> Iterator[Entry]:
        """Yield the entries in a folder, in the order of their names. Raises InvalidBucketUri and OSError."""
        with self.tree.scan(ROOT + path) as scan:
            found = sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in scan)
        for name, status in found:
            inner = f"{path}/{name}" if path else name
            self._found += 1
            self.report("listing buckets", self._found, 0)
            try:
                is_bucket = len(split_uri(ROOT + inner)) == 1
            except InvalidBucketUri:
                self._omit(inner, "no bucket or object can have this name")
                continue
            if stat.S_ISDIR(status.st_mode):
                yield Entry(BUCKETS_PREFIX + inner)
                yield from self.below(inner)
            elif stat.S_ISLNK(status.st_mode):
                yield from self._link(inner)
            elif is_bucket:
                self._omit(inner, "it is in no bucket")
            elif not stat.S_ISREG(status.st_mode):
                self._omit(inner, str(NotRegularFile(status.st_mode, "").strerror))
            else:
                open_file = lambda uri=ROOT + inner: self.tree.open(uri)  # noqa: E731
                yield Entry(BUCKETS_PREFIX + inner, status.st_size, open_file, status.st_mtime_ns)

    def _link(self, path: str) -> Iterator[Entry]:
        bucket, _, name = path.partition("/")
        target = self.tree.readlink(ROOT + path)
        if f"{target}/".startswith(f"/gcs/{bucket}/") and ".." not in target.split("/"):
            # The path of a file of its own bucket in containers, seen from the link's folder.
            target = posixpath.relpath(target.removeprefix("/gcs"), posixpath.dirname(f"/{path}"))
        if is_utf8(target) and archives.stays_in_bucket(name, target):
            yield Entry(BUCKETS_PREFIX + path, link_target=target)
        else:
            self._omit(path, f"a link to {target!a}, out of its bucket")

    def _omit(self, path: str, reason: str) -> None:
        self.omitted.append(f"{ROOT + path!a} ({reason})")
