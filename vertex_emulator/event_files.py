"""Event files of TensorBoard: the folders to which jobs write them, and the files in these."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from vertex_api import metrics
from vertex_api.jobspec import EVENT_FILE, output_folders
from vertex_api.names import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_emulator.database import Transaction
from vertex_emulator.database.records import Job
from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.files import BucketTree, is_utf8

MAX_FOLDERS = 200  # of one log folder, so that a job that creates them without end does not occupy the emulator
MAX_ENTRIES = 20_000  # of one log folder, files and folders of any name
MAX_FILES = 1000  # of one log folder
_VARIABLE = "AIP_TENSORBOARD_LOG_DIR"


@dataclass(frozen=True)
class LogFolder:
    """A folder of event files: its gs:// URI, and `name`, `trial-3` for a trial of a study, else empty."""

    name: str
    uri: str


def log_folders(transaction: Transaction, job: Job) -> list[LogFolder]:
    """Return the log folders of a job, of a study's trials in order, or of the job that a pipeline has started.

    There are none without a base output directory, and before a pipeline has a job.
    """
    if job.kind == TRAINING_PIPELINE:
        progress = transaction.pipelines.get(job.id)
        backing_job = transaction.jobs.get(progress.job) if progress else None
        return log_folders(transaction, backing_job) if backing_job else []
    if job.kind == HYPERPARAMETER_TUNING_JOB:
        numbers = [trial.number for trial in transaction.trials.summaries(job.id)]
        spec = job.spec["trialJobSpec"]
        return [folder for number in numbers for folder in _folder(spec, f"trial-{number}", str(number))]
    return _folder(job.spec["jobSpec"])


def _folder(job_spec: Mapping[str, Any], name: str = "", trial_id: str = "") -> list[LogFolder]:
    """Return one folder, or none."""
    uri = output_folders(job_spec, trial_id).get(_VARIABLE)
    return [LogFolder(name, uri)] if uri else []


def describe(tree: BucketTree, job: Job, folders: Iterable[LogFolder]) -> dict[str, Any]:
    """Return the `name` of a job and its `folders`: `name`, `uri`, local `path`, `hasEventFiles`."""
    return {
        "name": job.name,
        "folders": [
            {
                "name": folder.name,
                "uri": folder.uri,
                "path": str(tree.path(folder.uri)),
                "hasEventFiles": bool(find(tree, folder.uri)),
            }
            for folder in folders
        ],
    }


@dataclass(frozen=True)
class EventFile:
    """An event file: `run` is its folder's path below the log folder, empty for files that lie in that itself."""

    run: str
    uri: str


def find(tree: BucketTree, folder_uri: str) -> list[EventFile]:
    """Return the event files of a log folder, in the order in which a run has written them. Links are not followed.

    A folder that is missing or cannot be read has none.
    """
    return [*islice(_walk(tree, folder_uri.rstrip("/")), MAX_FILES)]


@dataclass(frozen=True)
class Files:
    """The files of the buckets, as the rule reads them that says what a job's metrics are. What fails is not there."""

    tree: BucketTree

    def read(self, uri: str, max_bytes: int, *, from_end: bool = False) -> metrics.Found | None:
        """As `metrics.Reader` does."""
        try:
            with closing(self.tree.open(uri)) as file:
                status = os.fstat(file.fileno())
                start = max(0, status.st_size - max_bytes) if from_end else 0
                content = os.pread(file.fileno(), max_bytes, start)
                return metrics.Found(content, status.st_mtime, status.st_size)
        except (OSError, InvalidBucketUri):
            return None

    def objects(self, folder_uri: str, most: int) -> list[metrics.Entry]:
        """As `metrics.Reader` does, of event files alone."""
        found = []
        for file in islice(_walk(self.tree, folder_uri.rstrip("/")), most):
            with suppress(OSError, InvalidBucketUri):
                if status := self.tree.stat(file.uri):
                    found.append(metrics.Entry(file.uri.removeprefix(folder_uri), status.st_mtime))
        return found


def _walk(tree: BucketTree, base: str) -> Iterator[EventFile]:
    pending = deque([""])
    entries_left = MAX_ENTRIES
    for _ in range(MAX_FOLDERS):
        if not pending:
            return
        run = pending.popleft()
        folder = f"{base}/{run}" if run else base
        files: list[str] = []
        subfolders: list[str] = []
        try:
            with tree.scan(folder) as entries:
                for entry in islice(entries, entries_left):
                    entries_left -= 1
                    if not is_utf8(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        subfolders.append(entry.name)
                    elif entry.is_file(follow_symlinks=False):
                        files.append(entry.name)
        except (OSError, InvalidBucketUri):
            continue
        # The names hold the time at which a file was begun.
        yield from (EventFile(run, f"{folder}/{name}") for name in sorted(files) if EVENT_FILE in name)
        pending.extend(f"{run}/{name}" if run else name for name in sorted(subfolders))
