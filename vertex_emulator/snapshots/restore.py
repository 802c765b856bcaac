"""The import of an archive: into a folder beside the data first, and into its place once all of it is valid."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import tarfile
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

from vertex_api import types
from vertex_api.names import TRAINING_PIPELINE
from vertex_api.validation.shape import read
from vertex_emulator.data_folder import DataFolder, acquire_lock
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.connection import SNAPSHOT
from vertex_emulator.database.lineage import EDGES
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ApiError, EmulatorError, InvalidBucketUri, SnapshotInvalid
from vertex_emulator.gcs import metadata
from vertex_emulator.gcs.files import ROOT, BucketTree, join_uri
from vertex_emulator.gcs.metadata import Metadata, MetadataDatabase
from vertex_emulator.names import BOARD_PATTERNS, ID_PATTERN, LINEAGE_COLLECTIONS, STORE_PATTERN
from vertex_emulator.removal import remove_tree
from vertex_emulator.representation import job_json, model_json, operation_json, pipeline_json, trial_json
from vertex_emulator.snapshots import archive as archives
from vertex_emulator.snapshots.archive import (
    BUCKETS_PREFIX,
    DATABASE_PREFIX,
    JOB_ID,
    LOG_NAME,
    OBJECTS,
    Manifest,
    Report,
)

_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, sqlite3.Error)
_COPY_BYTES = 1 << 20
_MAX_SHOWN = 1000


def restore(
    data_path: Path,
    archive: Path,
    remove_jobs: Callable[[], object] | None,
    report: Report = lambda *_: None,
) -> str:
    """Fill a data folder from an archive, and return a line about it.

    `remove_jobs` removes the jobs of the folder with their containers, so that its data is replaced; then its buckets
    are removed too. Without it, the folder must have neither jobs nor buckets. Nothing is changed before the whole
    archive is valid.

    Raises SnapshotInvalid, EmulatorError, and StartError while an emulator runs.
    """
    data = DataFolder.open(data_path)
    partial = DataFolder(data.root / "import.partial")
    try:
        with acquire_lock(data.lock):
            if remove_jobs is None:
                _require_empty(data)
            _remove(partial.root)
            jobs, objects = _unpack(archive, DataFolder.open(partial.root), report)
        if remove_jobs is not None:
            remove_jobs()
        with acquire_lock(data.lock):
            if remove_jobs is not None:
                _remove_buckets(data)
            _require_empty(data)
            _move(partial, data)
    except OSError as error:
        place = _escape(str(error.filename or archive))
        raise EmulatorError(f"{archive} was not imported: {place}: {error.strerror or error}") from error
    finally:
        _remove(partial.root)
    return f"imported {jobs} jobs and {objects} objects into {data_path}"


def _require_empty(data: DataFolder) -> None:
    with closing(Database(data.database)) as database, database.read() as transaction:
        jobs = sum(transaction.jobs.count_by_state().values())
        tables = {"models": "models", "tensorboards": "tensorboards", "experiments": "lineage_nodes"}
        has = {kind: next(transaction.rows.read(table), None) is not None for kind, table in tables.items()}
        has_schedules = bool(transaction.schedules.count_by_paused())
    has_buckets = any(data.buckets.iterdir())
    kinds = {f"{jobs} jobs": bool(jobs), **has, "schedules": has_schedules, "buckets": has_buckets}
    if found := [kind for kind, is_there in kinds.items() if is_there]:
        raise EmulatorError(
            f"the data folder {data.root} has {' and '.join(found)}; import into another one (--data), or replace all "
            "that it has with --replace"
        )


def _unpack(archive: Path, data: DataFolder, report: Report) -> tuple[int, int]:
    """Unpack an archive into an empty data folder; return the numbers of jobs and objects. Raises SnapshotInvalid."""
    with (
        archives.read(archive, report) as (manifest, members),
        closing(Database(data.database)) as database,
        closing(MetadataDatabase(data.object_metadata)) as object_metadata,
    ):
        space = FreeSpace(data.root, archive.name)
        space.require(manifest)
        with database.write() as transaction:
            unpacked = _Unpacked(data, transaction, object_metadata)
            try:
                for member, content in members:
                    space.take(member.name)
                    unpacked.add(member, content)
                _validate(transaction, report)
            except (*_DAMAGE, InvalidBucketUri, ApiError) as error:
                reason = _escape(f"{type(error).__name__}: {error}")
                raise SnapshotInvalid(f"{archive.name} is damaged: {reason}") from error
            return sum(transaction.jobs.count_by_state().values()), unpacked.objects


class FreeSpace:
    """What the disk of a folder had left at the beginning, and how much of it an archive takes.

    That is its bytes, and its files, folders and links, each of which takes an inode.
    """

    def __init__(self, folder: Path, archive_name: str) -> None:
        status = os.statvfs(folder)
        self._folder, self._archive_name = folder, archive_name
        self._bytes = status.f_bavail * status.f_frsize
        self._inodes = status.f_favail if status.f_files else None  # btrfs has no fixed number of them
        self._taken_inodes = 0
        self._last_parts: list[str] = []

    def require(self, manifest: Manifest) -> None:
        """Raise EmulatorError if the bytes or the members that a manifest says do not fit."""
        if manifest.size > self._bytes:
            raise EmulatorError(
                f"{self._archive_name} needs {manifest.size} bytes, and {self._folder} has {self._bytes} left"
            )
        self._require_inodes(manifest.files)

    def take(self, member_name: str) -> None:
        """Count a member, and the folders on its path that the member before has not. Raises EmulatorError.

        A folder may have no member of its own, and so be missing in the manifest's number. An export writes all of a
        folder without interruption, so that each of its folders counts once.
        """
        parts = member_name.rstrip("/").split("/")
        shared = takewhile(lambda pair: pair[0] == pair[1], zip(parts, self._last_parts, strict=False))
        self._taken_inodes += len(parts) - sum(1 for _ in shared)
        self._last_parts = parts
        self._require_inodes(self._taken_inodes)

    def _require_inodes(self, needed: int) -> None:
        if self._inodes is not None and needed > self._inodes:
            raise EmulatorError(
                f"{self._archive_name} needs {needed} inodes or more (files, folders and links), and the disk of "
                f"{self._folder} has {self._inodes} left"
            )


class _Unpacked:
    """The members of an archive in a data folder; `objects` is their number in buckets."""

    def __init__(self, data: DataFolder, transaction: Transaction, object_metadata: MetadataDatabase) -> None:
        self.objects = 0
        self._data, self._transaction, self._metadata = data, transaction, object_metadata
        self._tree = BucketTree(data.buckets)
        self._read = set[str]()

    def add(self, member: tarfile.TarInfo, content: IO[bytes] | None) -> None:
        """Store a member. Raises SnapshotInvalid for one that no export writes, and what a damaged one raises."""
        table = member.name.removeprefix(DATABASE_PREFIX).removesuffix(".jsonl")
        if member.issym():
            self._add_link(member)
        elif content is None:
            self._tree.mkdir(self._new_uri(member, is_folder=True))
        elif member.name in self._read:
            raise _double(member)
        elif member.name == f"{DATABASE_PREFIX}{table}.jsonl" and table in SNAPSHOT:
            self._transaction.rows.insert(table, archives.rows(content))
            self._read.add(member.name)
        elif member.name == OBJECTS:
            self._add_metadata(content)
            self._read.add(member.name)
        elif match := LOG_NAME.fullmatch(member.name):
            log = self._data.root / member.name
            if log.exists():
                raise _double(member)
            (self._data.logs / match[1]).mkdir(exist_ok=True)
            _write_new(log, content)
        else:
            self.objects += 1
            self._add_object(member, content)

    def _add_metadata(self, content: IO[bytes]) -> None:
        for row in archives.rows(content):
            fields = metadata.parse(row["fields"])
            updated = None if row["updated"] is None else int(row["updated"])
            values = Metadata(fields, int(row["metageneration"]), updated)
            self._metadata.set(str(row["bucket"]), str(row["name"]), int(row["generation"]), values)

    def _add_object(self, member: tarfile.TarInfo, content: IO[bytes]) -> None:
        uri, file = self._new_uri(member), self._data.uploads / "object"
        _write_new(file, content)
        file.chmod(0o666)  # training code runs as any user
        nanoseconds = archives.modified_ns(member)
        os.utime(file, ns=(nanoseconds, nanoseconds))
        self._tree.move_in(file, uri)

    def _add_link(self, member: tarfile.TarInfo) -> None:
        uri, link = self._new_uri(member), self._data.uploads / "link"
        if not archives.stays_in_bucket(uri.removeprefix(ROOT).partition("/")[2], member.linkname):
            raise SnapshotInvalid(f"the archive has {member.name!a}, a link out of its bucket: {member.linkname!a}")
        link.symlink_to(member.linkname)
        self._tree.move_in(link, uri)

    def _new_uri(self, member: tarfile.TarInfo, is_folder: bool = False) -> str:
        """Return the URI of what is in a bucket, or of a bucket, a folder, if nothing is there. Raises SnapshotInvalid.

        The file system is asked, as it may take two names for one (macOS: other case, other composition of characters).
        """
        path = member.name.rstrip("/") if is_folder else member.name
        bucket, _, name = path.removeprefix(BUCKETS_PREFIX).partition("/")
        if not path.startswith(BUCKETS_PREFIX) or not (name or is_folder) or name.endswith("/"):
            raise SnapshotInvalid(f"the archive has {path!a}, which no export writes")
        uri = join_uri(bucket, name)
        if self._tree.stat(uri) is not None:
            raise _double(member)
        return uri


def _double(member: tarfile.TarInfo) -> SnapshotInvalid:
    return SnapshotInvalid(f"the archive has {member.name!a} twice, or another name that is the same file here")


def _write_new(path: Path, content: IO[bytes]) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        shutil.copyfileobj(content, file, _COPY_BYTES)


def _validate(transaction: Transaction, report: Report) -> None:
    """Check the records by the rules that the emulator relies on, because only it writes its database.

    Ids become names of folders, and a job that has not ended would run as soon as the emulator starts. Raises
    SnapshotInvalid, or what parsing and serializing a damaged record raises.
    """
    for number, row in enumerate(transaction.rows.read("jobs"), 1):
        _check_id(row["id"])
        report("checking jobs", number, 0)
        job = transaction.jobs.get(row["id"])
        if job is None or not job.is_terminal:
            raise SnapshotInvalid(f"the job {row['id']} of the archive has not ended; only ended jobs can be imported")
        _check_job(transaction, job)
    for table in ("trials", "pipelines"):
        for row in transaction.rows.read(table):
            _check_id(row["job"])
    for message in transaction.rows.read("service_messages"):
        if (type(message["at"]), type(message["severity"]), type(message["text"])) != (int, str, str):
            raise SnapshotInvalid("a message of the archive is not one")
    for row in transaction.rows.read("operations"):
        operation = transaction.operations.get(row["name"])
        assert operation is not None
        operation_json(operation)
    for version in transaction.models.iterate():
        # The one field of a model that no client sets, and that is stored: a copy's.
        sent = {field: value for field, value in version.spec.items() if field != "originalModelInfo"}
        _check_shape(types.Model, sent, f"the model {version.id}")
        original = version.spec.get("originalModelInfo", {"model": ""})
        if original.keys() != {"model"} or not isinstance(original["model"], str):
            raise SnapshotInvalid(f"the model {version.id} of the archive has an original that is not a name")
        model_json(version, [version])
    _check_boards(transaction)
    _check_lineage(transaction)


def _check_boards(transaction: Transaction) -> None:
    """Check tensorboards and what is in them."""
    messages = (types.Tensorboard, types.TensorboardExperiment, types.TensorboardRun, types.TensorboardTimeSeries)
    patterns = dict(zip(BOARD_PATTERNS, messages, strict=True))
    for row in transaction.rows.read("tensorboards"):
        _check_named(row, patterns)
    for row in transaction.rows.read("tensorboard_points"):
        if (type(row["step"]), type(row["time"])) != (int, str):
            raise SnapshotInvalid("a point of a time series of the archive has no step and time")
        _check_shape(types.TimeSeriesDataPoint, json.loads(row["point"]), "a point of a time series")


def _check_lineage(transaction: Transaction) -> None:
    """Check metadata stores, what is in them, and the edges in between."""
    messages = (types.Context, types.Execution, types.Artifact)
    inside = zip(LINEAGE_COLLECTIONS, messages, strict=True)
    patterns: dict[str, Any] = {STORE_PATTERN: types.MetadataStore}
    patterns |= {f"{STORE_PATTERN}/{collection}/{ID_PATTERN}": message for collection, message in inside}
    for row in transaction.rows.read("lineage_nodes"):
        _check_named(row, patterns)
    for row in transaction.rows.read("lineage_edges"):
        labels = json.loads(row["labels"])
        if row["type"] not in EDGES or type(row["created"]) is not int or not isinstance(labels, dict):
            raise SnapshotInvalid("an edge between what is in a metadata store of the archive is not one")


def _check_named(row: Mapping[str, Any], patterns: Mapping[str, Any]) -> None:
    """Check a row of a resource by its name: `patterns` are those of names, each with the message of its resources."""
    name = row["name"]
    message = next((each for pattern, each in patterns.items() if re.fullmatch(pattern, name)), None)
    if message is None or row["collection"] != name.rpartition("/")[0]:
        raise SnapshotInvalid(f"the archive has {name!a}, which is no name of a resource")
    if (type(row["created"]), type(row["updated"])) != (int, int):
        raise SnapshotInvalid(f"{name!a} of the archive has no times")
    _check_shape(message, json.loads(row["spec"]), f"{name!a}")


def _check_id(job_id: object) -> None:
    if not isinstance(job_id, str) or not JOB_ID.fullmatch(job_id):
        raise SnapshotInvalid(f"the archive has a job with the id {job_id!a}, which is not a number")


def _check_job(transaction: Transaction, job: Job) -> None:
    """Check the spec, the trials and the outcomes of a job."""
    _check_shape(job.kind.typed_dict, job.spec, f"the job {job.id}")
    if job.kind == TRAINING_PIPELINE:
        pipeline_json(job, transaction.pipelines.get(job.id))
    else:
        job_json(job)
        for trial in transaction.trials.iterate(job.id):  # a stranger's study has any number of them
            trial_json(trial)
            if not trial.has_ended:
                raise SnapshotInvalid(f"a trial of the job {job.id} of the archive has not ended")
    for outcome in job.replica_outcomes:
        if not all(type(outcome[field]) is int for field in ("pool", "index", "attempt")):
            raise SnapshotInvalid(f"the job {job.id} of the archive has a replica without numbers")


def _check_shape(message_type: Any, spec: Mapping[str, Any], owner: str) -> None:
    _, problems = read(message_type, spec)
    if problems:
        problem = f"{problems[0].place}: {problems[0].message}"
        raise SnapshotInvalid(f"the spec of {owner} in the archive is not valid: {problem}")


def _escape(text: str) -> str:
    """Return a text from an archive without what a terminal would obey."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_MAX_SHOWN])


def _remove_buckets(data: DataFolder) -> None:
    """Remove all buckets, and the metadata of their objects."""
    for folder in sorted(data.buckets.iterdir()):
        try:
            if folder.is_dir() and not folder.is_symlink():
                remove_tree(folder)
            else:
                folder.unlink()
        except OSError as error:
            message = f"{error.filename or folder} cannot be removed: {error.strerror}; remove it, and import again"
            raise EmulatorError(message) from error
    _remove_database(data.object_metadata)


def _move(source: DataFolder, target: DataFolder) -> None:
    # The buckets' folder stays: containers have it mounted, and it may be a link to another disk.
    for folder in sorted(source.buckets.iterdir()):
        shutil.move(folder, target.buckets / folder.name)
    _remove(target.logs)
    source.logs.rename(target.logs)
    for old, new in ((target.object_metadata, source.object_metadata), (target.database, source.database)):
        _remove_database(old)
        new.rename(old)


def _remove_database(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        remove_tree(folder)
