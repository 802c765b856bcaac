"""The folders to which a job writes event files: `AIP_TENSORBOARD_LOG_DIR` of the job, or of each trial of a study."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.catalog.output_directories import get_output_directories_by_variable
from vertex_api.job_kinds import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_emulator.database import Transaction
from vertex_emulator.database.records import Job

_VARIABLE = "AIP_TENSORBOARD_LOG_DIR"


@dataclass(frozen=True)
class EventFileFolder:
    """A folder of event files: its gs:// URI, and `name`, `trial-3` for a trial of a study, else empty."""

    name: str
    uri: str


def list_event_file_folders(transaction: Transaction, job: Job) -> list[EventFileFolder]:
    """Return the log folders of a job, of a study's trials in order, or of the job that a pipeline has started.

    There are none without a base output directory, and before a pipeline has a job.
    """
    if job.kind == TRAINING_PIPELINE:
        progress = transaction.pipelines.get(job.id)
        backing_job = transaction.jobs.get(progress.job) if progress else None
        return list_event_file_folders(transaction, backing_job) if backing_job else []
    if job.kind == HYPERPARAMETER_TUNING_JOB:
        numbers = [trial.number for trial in transaction.trials.summaries(job.id)]
        spec = job.spec["trialJobSpec"]
        return [
            folder for number in numbers for folder in _list_at_most_one_folder(spec, f"trial-{number}", str(number))
        ]
    return _list_at_most_one_folder(job.spec["jobSpec"])


def _list_at_most_one_folder(job_spec: Mapping[str, Any], name: str = "", trial_id: str = "") -> list[EventFileFolder]:
    uri = get_output_directories_by_variable(job_spec, trial_id).get(_VARIABLE)
    return [EventFileFolder(name, uri)] if uri else []
