"""The data folder of an emulator: its paths, its creation for the owner only, and the removal of folders in it."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vertex_emulator.errors import StartError

_OWNER_ONLY = 0o700
_OWN_NAMES = {"emulator.db", "gcs", "start.lock"}  # start.lock is that of Pulumi's programs
_METRIC_BYTES = 4 << 20  # cloudml-hypertune keeps 100 entries


class DataFolder:
    """The folder of `--data`. Buckets outlive everything; the rest belongs to jobs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / "emulator.db"
        self.lock = root / "lock"  # held by the one process that serves the folder
        self.endpoint = root / "endpoint.json"  # the address of that process
        self.emulator_log = root / "emulator.log"  # of one that was started in the background
        self.token = root / "token"  # for whoever the system cannot identify as this user
        self.secrets = root / "secrets.json"  # values of Secret Manager, which a stack writes
        self.buckets = root / "gcs"  # `/gcs` in containers
        self.object_metadata = root / "objects.db"  # content types and custom metadata, which containers do not see
        self.uploads = root / "uploads"  # objects that are being sent to Cloud Storage
        self.debugger = root / "debugger"  # debugpy, for replicas that are debugged
        self.gcloud = root / "gcloud"  # gcloud's configuration for this emulator; the user's own is not changed
        self.logs = root / "logs"  # saved container logs, a folder per job
        self.trials = root / "trials"  # `/tmp/hypertune` in containers, a folder per trial's job

    @classmethod
    def create_or_open_private(cls, root: Path) -> "DataFolder":
        """Open the folder for its owner only, and create it if needed. Raises StartError."""
        data = cls(root.absolute())
        try:
            data.root.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
            data._restrict_to_owner_or_raise()
            for folder in (data.buckets, data.uploads, data.logs, data.trials):
                folder.mkdir(exist_ok=True)
            # Training code runs as any user and writes to buckets. The daemon mounts them, whatever the root's mode.
            data.buckets.chmod(0o777)
            data.logs.chmod(_OWNER_ONLY)
            for database in (data.database, data.object_metadata):
                database.touch(mode=0o600)
                database.chmod(0o600)
            probe = data.root / ".writable"
            probe.touch()
            probe.unlink(missing_ok=True)  # `start` and `serve` may probe at the same time
        except OSError as error:
            message = f"the data folder {root} cannot be used: {error.strerror}; choose one with --data"
            raise StartError(message) from error
        return data

    def _restrict_to_owner_or_raise(self) -> None:
        """Make the root accessible to its owner only. Raises OSError and StartError."""
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            status = os.fstat(folder)
            if status.st_uid != os.geteuid():
                raise StartError(
                    f"the data folder {self.root} belongs to another user (uid {status.st_uid}), who could open it to "
                    f"others; choose one of yours with --data, or take it over: sudo chown -R $USER {self.root}"
                )
            mode = stat.S_IMODE(status.st_mode)
            if mode & ~_OWNER_ONLY == 0:
                return
            with os.scandir(folder) as entries:
                names = {entry.name for entry in entries}
            if mode & stat.S_ISVTX or (names and not names & _OWN_NAMES):
                raise StartError(
                    f"the data folder {self.root} holds other files, and other users can open it (mode {mode:04o}); "
                    f"choose an empty folder with --data, or close this one to them: chmod 700 {self.root}"
                )
            os.fchmod(folder, _OWNER_ONLY)
        finally:
            os.close(folder)

    def create_metric_folder(self, trial_job_id: str) -> Path:
        """Create the `/tmp/hypertune` of a trial's job, writable for every user, and return it."""
        folder = self.trials / trial_job_id
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        return folder

    def read_metric_text_or_empty(self, trial_job_id: str) -> str:
        """Read the metric file of a trial's job; return "" if there is none.

        Training code may create anything under that name: a link, a pipe that blocks its reader, an endless file.
        """
        path = self.trials / trial_job_id / "output.metrics"
        try:
            number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return ""
        try:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                return ""
            with os.fdopen(number, "rb", closefd=False) as file:
                return file.read(_METRIC_BYTES).decode(errors="replace")
        finally:
            os.close(number)

    def iterate_ids_of_jobs_with_files(self) -> Iterator[str]:
        """List the ids of jobs that have files here."""
        for parent in (self.logs, self.trials):
            yield from (folder.name for folder in parent.iterdir())

    def try_to_remove_logs_and_metric_files(self, job_id: str) -> None:
        """Remove a job's logs and metric files as far as possible; outputs in buckets stay."""
        for parent in (self.logs, self.trials):
            with contextlib.suppress(OSError):
                remove_folder_tree(parent / job_id)


def remove_folder_tree(folder: Path) -> None:
    """Remove a folder with all that can be removed in it, without following links. Raises OSError if anything stays.

    Containers can nest folders deeper than `shutil.rmtree` recurses, and deeper than a path can be long.
    """
    removal = _FolderTreeRemoval(folder)
    removal.remove_all()
    if removal.first_error is not None:
        raise removal.first_error


@dataclass
class _OpenedFolder:
    identity: tuple[int, int]
    subfolders: list[str] = field(default_factory=list)  # those that are not removed yet


class _FolderTreeRemoval:
    """One descriptor that moves down into each folder and up again, and removes what it leaves."""

    def __init__(self, folder: Path) -> None:
        self.first_error: OSError | None = None
        self._parent = folder.parent
        self._descriptor = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
        self._opened = [_OpenedFolder(self._get_device_and_inode(), [folder.name])]

    def remove_all(self) -> None:
        try:
            while self._opened[0].subfolders:
                if self._opened[-1].subfolders:
                    self._enter_subfolder_and_remove_files()
                else:
                    self._leave_and_remove_folder()
        finally:
            os.close(self._descriptor)

    def _enter_subfolder_and_remove_files(self) -> None:
        subfolders = self._opened[-1].subfolders
        try:
            self._switch_to_folder(subfolders[-1])
        except OSError as error:
            self._record_first_error(error, subfolders.pop())
            return
        self._opened.append(_OpenedFolder(self._get_device_and_inode()))
        with os.scandir(self._descriptor) as scan:
            entries = list(scan)
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    self._opened[-1].subfolders.append(entry.name)
                else:
                    os.unlink(entry.name, dir_fd=self._descriptor)
            except OSError as error:
                self._record_first_error(error, entry.name)

    def _leave_and_remove_folder(self) -> None:
        self._switch_to_folder("..")
        self._opened.pop()
        name = self._opened[-1].subfolders.pop()
        if self._get_device_and_inode() != self._opened[-1].identity:
            raise OSError(errno.ESTALE, "it was moved while it was being removed", str(self._build_path(name)))
        try:
            os.rmdir(name, dir_fd=self._descriptor)
        except OSError as error:
            self._record_first_error(error, name)

    def _switch_to_folder(self, name: str) -> None:
        moved = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._descriptor)
        os.close(self._descriptor)
        self._descriptor = moved

    def _get_device_and_inode(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_dev, status.st_ino

    def _build_path(self, name: str) -> Path:
        return self._parent.joinpath(*(opened.subfolders[-1] for opened in self._opened[:-1]), name)

    def _record_first_error(self, error: OSError, name: str) -> None:
        if self.first_error is None:
            error.filename = str(self._build_path(name))
            self.first_error = error
