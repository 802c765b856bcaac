"""The rules for records of an archive: those that the emulator relies on, because only it writes its database."""

from collections.abc import Mapping
from typing import Any

from vertex_api import types
from vertex_api.job_kinds import TRAINING_PIPELINE
from vertex_api.validation.shape_validation import canonicalize_and_find_shape_problems
from vertex_emulator.database import Transaction
from vertex_emulator.database.records import Job
from vertex_emulator.errors import SnapshotInvalid
from vertex_emulator.resources import job_json, model_json, operation_json, pipeline_json, trial_json
from vertex_emulator.snapshots.archive_format import JOB_ID
from vertex_emulator.snapshots.progress import ReportProgress


def validate_records(transaction: Transaction, report: ReportProgress) -> None:
    """Check all records. Raises SnapshotInvalid, or what parsing and serializing a damaged record raises.

    Ids become names of folders, and a job that has not ended would run as soon as the emulator starts.
    """
    for number, row in enumerate(transaction.rows.read("jobs"), 1):
        _raise_unless_job_id_is_numeric(row["id"])
        report("checking jobs", number, 0)
        job = transaction.jobs.get(row["id"])
        if job is None or not job.is_terminal:
            raise SnapshotInvalid(f"the job {row['id']} of the archive has not ended; only ended jobs can be imported")
        _validate_spec_trials_and_outcomes(transaction, job)
    for row in transaction.rows.read("trials"):
        _raise_unless_job_id_is_numeric(row["job"])
    for row in transaction.rows.read("pipelines"):
        _raise_unless_job_id_is_numeric(row["job"])
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
        _validate_shape(types.Model, sent, f"the model {version.id}")
        original = version.spec.get("originalModelInfo", {"model": ""})
        if original.keys() != {"model"} or not isinstance(original["model"], str):
            raise SnapshotInvalid(f"the model {version.id} of the archive has an original that is not a name")
        model_json(version, [version])


def _validate_spec_trials_and_outcomes(transaction: Transaction, job: Job) -> None:
    _validate_shape(job.kind.typed_dict, job.spec, f"the job {job.id}")
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


def _validate_shape(message_type: Any, spec: Mapping[str, Any], owner: str) -> None:
    _, problems = canonicalize_and_find_shape_problems(message_type, spec)
    if problems:
        problem = f"{problems[0].path_text}: {problems[0].message}"
        raise SnapshotInvalid(f"the spec of {owner} in the archive is not valid: {problem}")


def _raise_unless_job_id_is_numeric(job_id: object) -> None:
    if not isinstance(job_id, str) or not JOB_ID.fullmatch(job_id):
        raise SnapshotInvalid(f"the archive has a job with the id {job_id!a}, which is not a number")
