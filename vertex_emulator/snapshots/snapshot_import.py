"""The import of an archive: into a folder beside the data first, and into its place once all of it is valid."""

import contextlib
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO

from vertex_emulator.data_folder import DataFolder, acquire_lock
from vertex_emulator.database import Database
from vertex_emulator.database.tables import SNAPSHOT
from vertex_emulator.errors import ApiError, EmulatorError, InvalidBucketUri, SnapshotInvalid
from vertex_emulator.gcs.files import ROOT, BucketTree, join_uri
from vertex_emulator.gcs.metadata import Metadata, MetadataDatabase, parse
from vertex_emulator.removal import remove_tree
from vertex_emulator.snapshots.archive_format import (
    BUCKETS_PREFIX,
    DATABASE_PREFIX,
    LOG_NAME,
    OBJECTS,
    is_link_within_bucket,
)
from vertex_emulator.snapshots.archive_reading import (
    iterate_rows,
    open_manifest_and_members,
    require_modification_time_ns,
)
from vertex_emulator.snapshots.import_space_check import FreeSpaceCheck
from vertex_emulator.snapshots.imported_record_validation import validate_records
from vertex_emulator.snapshots.progress import ReportProgress

_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, sqlite3.Error)
_COPY_BYTES = 1 << 20
_MAX_SHOWN = 1000


def import_snapshot_and_describe(
    data_path: Path,
    archive: Path,
    remove_jobs_to_replace_data: Callable[[], object] | None,
    report: ReportProgress = lambda *_: None,
) -> str:
    """Fill a data folder from an archive, and return a line about it.

    `remove_jobs_to_replace_data` removes the jobs of the folder with their containers; then its buckets are removed
    too. Without it, the folder must have neither jobs nor buckets. Nothing is changed before the whole archive is
    valid.

    Raises SnapshotInvalid, EmulatorError, and StartError while an emulator runs.
    """
    data = DataFolder.open(data_path)
    partial = DataFolder(data.root / "import.partial")
    try:
        with acquire_lock(data.lock):
            if remove_jobs_to_replace_data is None:
                _raise_unless_data_folder_empty(data)
            _remove_folder_if_exists(partial.root)
            jobs, objects = _unpack_validate_and_count(archive, DataFolder.open(partial.root), report)
        if remove_jobs_to_replace_data is not None:
            remove_jobs_to_replace_data()
        with acquire_lock(data.lock):
            if remove_jobs_to_replace_data is not None:
                _remove_buckets_and_object_metadata(data)
            _raise_unless_data_folder_empty(data)
            _move_data_keeping_target_buckets_folder(partial, data)
    except OSError as error:
        place = _escape(str(error.filename or archive))
        raise EmulatorError(f"{archive} was not imported: {place}: {error.strerror or error}") from error
    finally:
        _remove_folder_if_exists(partial.root)
    return f"imported {jobs} jobs and {objects} objects into {data_path}"


def _raise_unless_data_folder_empty(data: DataFolder) -> None:
    with closing(Database(data.database)) as database, database.read() as transaction:
        jobs = sum(transaction.jobs.count_by_state().values())
        has_models = next(transaction.rows.read("models"), None) is not None
        has_schedules = bool(transaction.schedules.count_by_paused())
    has_buckets = any(data.buckets.iterdir())
    kinds = {f"{jobs} jobs": bool(jobs), "models": has_models, "schedules": has_schedules, "buckets": has_buckets}
    if found := [kind for kind, is_there in kinds.items() if is_there]:
        raise EmulatorError(
            f"the data folder {data.root} has {' and '.join(found)}; import into another one (--data), or replace all "
            "that it has with --replace"
        )


def _unpack_validate_and_count(archive: Path, data: DataFolder, report: ReportProgress) -> tuple[int, int]:
    """Unpack an archive into an empty data folder; return the numbers of jobs and objects. Raises SnapshotInvalid."""
    objects, read = 0, set[str]()
    with (
        open_manifest_and_members(archive, report) as (manifest, members),
        closing(Database(data.database)) as database,
        closing(MetadataDatabase(data.object_metadata)) as metadata,
    ):
        space = FreeSpaceCheck(data.root, archive.name)
        space.raise_unless_totals_fit(manifest)
        with database.write() as transaction:
            try:
                for member, content in members:
                    space.add_member_inodes_or_raise(member.name)
                    table = member.name.removeprefix(DATABASE_PREFIX).removesuffix(".jsonl")
                    if member.issym():
                        _store_link(data, member)
                    elif content is None:
                        uri = _require_new_uri(data, member, is_folder=True)
                        BucketTree(data.buckets).mkdir(uri)
                    elif member.name in read:
                        raise _build_double_error(member)
                    elif member.name == f"{DATABASE_PREFIX}{table}.jsonl" and table in SNAPSHOT:
                        transaction.rows.insert(table, iterate_rows(content))
                        read.add(member.name)
                    elif member.name == OBJECTS:
                        _store_object_metadata(metadata, content)
                        read.add(member.name)
                    elif match := LOG_NAME.fullmatch(member.name):
                        if (data.root / member.name).exists():
                            raise _build_double_error(member)
                        (data.logs / match[1]).mkdir(exist_ok=True)
                        _write_new_file(data.root / member.name, content)
                    else:
                        objects += 1
                        _store_object(data, member, content)
                validate_records(transaction, report)
            except (*_DAMAGE, InvalidBucketUri, ApiError) as error:
                reason = _escape(f"{type(error).__name__}: {error}")
                raise SnapshotInvalid(f"{archive.name} is damaged: {reason}") from error
            jobs = sum(transaction.jobs.count_by_state().values())
    return jobs, objects


def _store_object_metadata(metadata: MetadataDatabase, content: IO[bytes]) -> None:
    for row in iterate_rows(content):
        fields = parse(row["fields"])
        updated = None if row["updated"] is None else int(row["updated"])
        values = Metadata(fields, int(row["metageneration"]), updated)
        metadata.set(str(row["bucket"]), str(row["name"]), int(row["generation"]), values)


def _store_object(data: DataFolder, member: tarfile.TarInfo, content: IO[bytes]) -> None:
    uri, file = _require_new_uri(data, member), data.uploads / "object"
    _write_new_file(file, content)
    file.chmod(0o666)  # training code runs as any user
    nanoseconds = require_modification_time_ns(member)
    os.utime(file, ns=(nanoseconds, nanoseconds))
    BucketTree(data.buckets).move_in(file, uri)


def _store_link(data: DataFolder, member: tarfile.TarInfo) -> None:
    uri, link = _require_new_uri(data, member), data.uploads / "link"
    if not is_link_within_bucket(uri.removeprefix(ROOT).partition("/")[2], member.linkname):
        raise SnapshotInvalid(f"the archive has {member.name!a}, a link out of its bucket: {member.linkname!a}")
    link.symlink_to(member.linkname)
    BucketTree(data.buckets).move_in(link, uri)


def _require_new_uri(data: DataFolder, member: tarfile.TarInfo, is_folder: bool = False) -> str:
    """Return the URI of what is in a bucket, or of a bucket, a folder, if there is nothing yet. Raises SnapshotInvalid.

    The file system is asked, as it may take two names for one (macOS: other case, other composition of characters).
    """
    path = member.name.rstrip("/") if is_folder else member.name
    bucket, _, name = path.removeprefix(BUCKETS_PREFIX).partition("/")
    if not path.startswith(BUCKETS_PREFIX) or not (name or is_folder) or name.endswith("/"):
        raise SnapshotInvalid(f"the archive has {path!a}, which no export writes")
    uri = join_uri(bucket, name)
    if BucketTree(data.buckets).stat(uri) is not None:
        raise _build_double_error(member)
    return uri


def _build_double_error(member: tarfile.TarInfo) -> SnapshotInvalid:
    return SnapshotInvalid(f"the archive has {member.name!a} twice, or another name that is the same file here")


def _escape(text: str) -> str:
    """Return a text from an archive without what a terminal would obey."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_MAX_SHOWN])


def _write_new_file(path: Path, content: IO[bytes]) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        shutil.copyfileobj(content, file, _COPY_BYTES)


def _remove_buckets_and_object_metadata(data: DataFolder) -> None:
    for folder in sorted(data.buckets.iterdir()):
        try:
            if folder.is_dir() and not folder.is_symlink():
                remove_tree(folder)
            else:
                folder.unlink()
        except OSError as error:
            message = f"{error.filename or folder} cannot be removed: {error.strerror}; remove it, and import again"
            raise EmulatorError(message) from error
    _remove_database_files(data.object_metadata)


def _move_data_keeping_target_buckets_folder(source: DataFolder, target: DataFolder) -> None:
    # The buckets' folder stays: containers have it mounted, and it may be a link to another disk.
    for folder in sorted(source.buckets.iterdir()):
        shutil.move(folder, target.buckets / folder.name)
    _remove_folder_if_exists(target.logs)
    source.logs.rename(target.logs)
    for old, new in ((target.object_metadata, source.object_metadata), (target.database, source.database)):
        _remove_database_files(old)
        new.rename(old)


def _remove_database_files(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _remove_folder_if_exists(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        remove_tree(folder)
