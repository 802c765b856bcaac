"""The data folder: where each thing of one emulator lies."""

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vertex_emulator.errors import StartError

_METRIC_BYTES = 4 << 20  # cloudml-hypertune keeps 100 entries


@dataclass(frozen=True)
class DataFolder:
    """The folder of `--data`. Buckets outlive everything; the rest belongs to jobs."""

    root: Path

    @classmethod
    def open(cls, root: Path) -> "DataFolder":
        """Open the folder, and create it if needed. Raises StartError."""
        data = cls(root.absolute())
        try:
            for folder in (data.root, data.buckets, data.uploads, data.logs, data.trials):
                folder.mkdir(parents=True, exist_ok=True)
            # Training code runs as any user; what jobs were given and what they wrote is their owner's alone.
            data.buckets.chmod(0o777)
            data.logs.chmod(0o700)
            data.database.touch(mode=0o600)
            data.database.chmod(0o600)
            probe = data.root / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise StartError(
                f"the data folder {root} cannot be used: {error.strerror}; choose one with --data"
            ) from error
        return data

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.root / "emulator.db"

    @property
    def lock(self) -> Path:
        """Held by the one process that serves the folder."""
        return self.root / "lock"

    @property
    def endpoint(self) -> Path:
        """Where the serving process says how to reach it."""
        return self.root / "endpoint.json"

    @property
    def buckets(self) -> Path:
        """What containers see as `/gcs`."""
        return self.root / "gcs"

    @property
    def uploads(self) -> Path:
        """Objects that are being sent to Cloud Storage."""
        return self.root / "uploads"

    @property
    def gcloud(self) -> Path:
        """The configuration folder of a gcloud that talks to this emulator; the user's own stays as it is."""
        return self.root / "gcloud"

    @property
    def logs(self) -> Path:
        """Saved container logs, a folder per job."""
        return self.root / "logs"

    @property
    def trials(self) -> Path:
        """What trials see as `/tmp/hypertune`, a folder per trial's job."""
        return self.root / "trials"

    def metric_folder(self, job: str) -> Path:
        """The `/tmp/hypertune` of a trial's job."""
        return self.trials / job

    def make_metric_folder(self, job: str) -> Path:
        """Make it, open to every user."""
        folder = self.metric_folder(job)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        return folder

    def metric_text(self, job: str) -> str:
        """What a trial wrote to its metric file, "" where there is none.

        Training code may leave anything under that name: a link, a pipe that blocks its reader, a file without end.
        """
        try:
            number = os.open(self.metric_folder(job) / "output.metrics", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return ""
        try:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                return ""
            with os.fdopen(number, "rb", closefd=False) as file:
                return file.read(_METRIC_BYTES).decode(errors="replace")
        finally:
            os.close(number)

    def jobs_with_files(self) -> Iterator[str]:
        """Ids of jobs that have files here."""
        for parent in (self.logs, self.trials):
            yield from (folder.name for folder in parent.iterdir())

    def remove_files(self, job: str) -> None:
        """Remove a job's logs and metric files; outputs in buckets stay."""
        for parent in (self.logs, self.trials):
            shutil.rmtree(parent / job, ignore_errors=True)
