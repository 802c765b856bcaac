"""The data folder of an emulator: its paths, made for the owner only; its lock; its server's address."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from vertex_api import emulator, locks
from vertex_api.emulator import Address
from vertex_emulator.errors import EmulatorNotRunning, StartError
from vertex_emulator.removal import remove_tree

EXIT_ALREADY_RUNNING = 3
_HOLDER_SECONDS, _PROBE_SECONDS = 0.2, 20.0
"""How long a start waits for another holder of the lock to end, and for probes, each of which holds it for a moment."""
_OWNER_ONLY = 0o700
STARTED = "VERTEX_EMULATOR_STARTED"
"""The variable of a `serve` whose folder its starter has made: one that is removed meanwhile is not made again."""
_MARKS = {"emulator.db", "gcs", "start.lock"}  # start.lock is that of Pulumi's programs
_METRIC_BYTES = 4 << 20  # cloudml-hypertune keeps 100 entries


class DataFolder:
    """The folder of `--data`: the emulator's own files, what jobs leave, and buckets, which outlive both."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / "emulator.db"
        self.lock = root / emulator.LOCK  # held by the one process that serves the folder
        self.endpoint = root / emulator.ENDPOINT  # the address of that process
        self.emulator_log = root / "emulator.log"  # of one that was started in the background
        self.token = root / "token"  # for whoever the system cannot identify as this user
        self.secrets = root / emulator.SECRETS  # values of Secret Manager, which a stack writes
        self.stand_ins = root / emulator.STAND_INS  # of services that the emulator does not have, which a stack writes
        self.identities = root / emulator.IDENTITIES  # whom jobs act as at Google, which a stack or a run writes
        self.grants = root / emulator.GRANTS  # what the stack grants that a run is compared with
        self.certificate = root / "server.pem"  # of Google's names and this machine's; with its key
        self.trusted = root / "trusted.pem"  # what its programs trust, the authority of that certificate included
        self.declarations = root / emulator.DECLARATIONS  # where jobs are declared, which a stack writes
        self.buckets = root / "gcs"  # `/gcs` in containers
        self.object_metadata = root / "objects.db"  # content types and custom metadata, which containers do not see
        self.uploads = root / "uploads"  # objects that are being sent to Cloud Storage
        self.fetched = root / emulator.FETCHED  # objects that runs have fetched from Google
        self.debugger = root / "debugger"  # debugpy, for replicas that are debugged
        self.gcloud = root / "gcloud"  # gcloud's configuration for this emulator; the user's own is not changed
        self.logs = root / "logs"  # saved container logs, a folder per job
        self.trials = root / "trials"  # `/tmp/hypertune` in containers, a folder per trial's job
        self.of_jobs = (self.logs, self.trials)

    @classmethod
    def open(cls, root: Path, *, create: bool = True) -> "DataFolder":
        """Open the folder for its owner only, and create it if needed. Raises StartError, without `create` for none."""
        data = cls(root.absolute())
        try:
            if create:
                data.root.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
            data._close_to_others()
            for folder in (data.buckets, data.uploads, *data.of_jobs):
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

    def check_gcloud(self) -> None:
        """Raise StartError for a virtual environment in gcloud's configuration, which gcloud's script sources."""
        if (self.gcloud / "virtenv").exists():
            raise StartError(
                f"{self.gcloud}/virtenv: gcloud would run what is there, which a branch may have brought; remove it"
            )

    def _close_to_others(self) -> None:
        """Make the root accessible to its owner only. Raises OSError, and StartError also for links in it."""
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            status = os.fstat(folder)
            if status.st_uid != os.geteuid():
                raise StartError(
                    f"the data folder {self.root} belongs to another user (uid {status.st_uid}), who could open it to "
                    f"others; choose one of yours with --data, or take it over: sudo chown -R $USER {self.root}"
                )
            with os.scandir(folder) as entries:
                is_link = {entry.name: entry.is_symlink() for entry in entries}
            # A pull request can bring them: containers would write to what `gcs` leads to.
            if links := sorted(name for name, each in is_link.items() if each):
                raise StartError(
                    f"the data folder {self.root} has links, which may lead anywhere ({', '.join(links)}); remove "
                    "them, or choose a folder on the right disk with --data"
                )
            mode, names = stat.S_IMODE(status.st_mode), is_link.keys()
            self.check_gcloud()
            if mode & ~_OWNER_ONLY and self.gcloud.name in names:
                raise StartError(
                    f"{self.gcloud}: settings of gcloud in a data folder that others can open (mode {mode:04o}): no "
                    "emulator leaves it so, and a branch may have brought them; remove them"
                )
            if mode & ~_OWNER_ONLY and self.identities.name in names:
                raise StartError(
                    f"{self.identities}: says whom jobs act as at Google, in a data folder that others can open (mode "
                    f"{mode:04o}): no emulator leaves it so, and a branch may have brought it; remove it"
                )
            if mode & ~_OWNER_ONLY == 0:
                return
            if mode & stat.S_ISVTX or (names and not names & _MARKS):
                raise StartError(
                    f"the data folder {self.root} holds other files, and other users can open it (mode {mode:04o}); "
                    f"choose an empty folder with --data, or close this one to them: chmod 700 {self.root}"
                )
            os.fchmod(folder, _OWNER_ONLY)
        finally:
            os.close(folder)

    def announce(self, address: Address) -> None:
        """Write where the emulator that serves the folder listens. Raises StartError."""
        try:
            address.write(self.root)
        except OSError as error:
            raise StartError(f"{self.endpoint} cannot be written: {error.strerror}") from error

    def create_metric_folder(self, trial_job_id: str) -> Path:
        """Create the `/tmp/hypertune` of a trial's job, writable for every user, and return it."""
        folder = self.trials / trial_job_id
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        return folder

    def read_metrics(self, trial_job_id: str) -> str:
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

    def job_ids(self) -> Iterator[str]:
        """Yield the ids of jobs that have files here."""
        for parent in self.of_jobs:
            yield from (folder.name for folder in parent.iterdir())

    def remove_job(self, job_id: str) -> None:
        """Remove a job's logs and metric files as far as possible; outputs in buckets stay."""
        for parent in self.of_jobs:
            with contextlib.suppress(OSError):
                remove_tree(parent / job_id)


def is_locked(lock: Path) -> bool:
    """Return whether an emulator holds the data folder's lock. Raises StartError if the lock cannot be probed."""
    try:
        return emulator.is_locked(lock)
    except OSError as error:
        raise _lock_error(lock, error) from error


def acquire_lock(lock: Path) -> IO[str]:
    """Open the data folder's lock file and lock it, until the file is closed or the process ends.

    Raises StartError if another process holds it, and FileNotFoundError without a data folder.
    """
    try:
        # Whoever can open it can hold it, and so pretend to be an emulator.
        number = os.open(lock, os.O_RDWR | (os.O_CREAT if lock.parent.is_dir() else 0), 0o600)
        file = os.fdopen(number, "r+")
        try:
            os.fchmod(number, 0o600)
            _lock_soon(file, lock)
        except (OSError, StartError):
            file.close()
            raise
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _lock_error(lock, error) from error
    return file


def _lock_soon(file: IO[str], lock: Path) -> None:
    begun = time.monotonic()
    while not locks.try_take(file):
        if time.monotonic() - begun > (_PROBE_SECONDS if _is_only_probed(file) else _HOLDER_SECONDS):
            message = f"an emulator is already running on {lock.parent}; stop it with: vertex-emulator stop"
            raise StartError(message, EXIT_ALREADY_RUNNING)
        time.sleep(0.01)


def _is_only_probed(file: IO[str]) -> bool:
    """Return whether whoever holds the lock only asks if an emulator does: `is_locked` takes a shared lock."""
    is_shared = locks.try_take(file, shared=True)
    if is_shared:
        locks.free(file)
    return is_shared


def _lock_error(lock: Path, error: OSError) -> StartError:
    return StartError(f"the lock {lock} cannot be acquired: {error.strerror}")


def require_endpoint(root: Path) -> Address:
    """Return the address of the emulator that serves a data folder. Raises EmulatorNotRunning."""
    try:
        if found := Address.read(root):
            return found
        is_served = emulator.is_served(root)
    except OSError as error:
        raise _lock_error(root / emulator.LOCK, error) from error
    if is_served:
        raise EmulatorNotRunning(f"the emulator on {root} is just starting or stopping; try again")
    raise EmulatorNotRunning(f"no emulator is running on {root}; start one with: vertex-emulator start --data {root}")


def find_endpoint(root: Path) -> Address | None:
    """Return the address of the emulator that serves a data folder, None without one that is ready."""
    try:
        return require_endpoint(root)
    except EmulatorNotRunning:
        return None
