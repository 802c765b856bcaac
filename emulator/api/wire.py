"""Jobs as the API's JSON shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from emulator.records import Job, Trial
from emulator.times import format_time
from vertex.kinds import HYPERPARAMETER_TUNING_JOB

_INT64 = frozenset({"replicaCount", "stepCount", "maxStepCount", "minStepCount", "minMeasurementCount"})
_INT64_MESSAGES = frozenset({"integerValueSpec", "parentIntValues"})


def job_json(job: Job, trials: Iterable[Trial] = ()) -> dict[str, Any]:
    """A job as GET answers it: the request's fields and those that the service sets; int64 values as strings."""
    shown = {"name": job.name, **with_int64_strings(job.spec), "state": job.state}
    for field, moment in (
        ("createTime", job.created),
        ("startTime", job.started),
        ("endTime", job.ended),
        ("updateTime", job.updated),
    ):
        if moment is not None:
            shown[field] = format_time(moment)
    if job.is_terminal and job.ending is not None and job.ending.status is not None:
        shown["error"] = job.ending.status
    listed = [trial_json(job, trial) for trial in trials]
    if job.kind == HYPERPARAMETER_TUNING_JOB and listed:
        shown["trials"] = listed
    return shown


def trial_json(study: Job, trial: Trial) -> dict[str, Any]:
    """A trial as it stands in a tuning job's `trials`."""
    location = study.location
    shown: dict[str, Any] = {
        "name": f"{location.name}/studies/{study.id}/trials/{trial.number}",
        "id": str(trial.number),
        "state": trial.state,
        "parameters": [{"parameterId": name, "value": value} for name, value in trial.parameters.items()],
        "customJob": f"{location.name}/customJobs/{trial.job}",
    }
    if trial.measurements:
        shown["measurements"] = [with_int64_strings(measurement) for measurement in trial.measurements]
    if trial.final is not None:
        shown["finalMeasurement"] = with_int64_strings(trial.final)
    if trial.started is not None:
        shown["startTime"] = format_time(trial.started)
    if trial.ended is not None:
        shown["endTime"] = format_time(trial.ended)
    if trial.infeasible_reason is not None:
        shown["infeasibleReason"] = trial.infeasible_reason
    return shown


def with_int64_strings(message: Mapping[str, Any]) -> dict[str, Any]:
    """A canonical message as JSON: whole numbers of type int64 become strings (proto3's JSON mapping)."""
    return {key: _int64(value) if key in _INT64 else _nested(key, value) for key, value in message.items()}


def masked(message: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Only the fields that a `readMask` names, `name,jobSpec.scheduling`; `*` means all."""
    if not paths or "*" in paths:
        return dict(message)
    kept: dict[str, Any] = {}
    for key, value in message.items():
        below = [path.partition(".")[2] for path in paths if path.partition(".")[0] == key]
        if below:
            kept[key] = masked(value, below) if all(below) and isinstance(value, Mapping) else value
    return kept


def _nested(key: str, value: Any) -> Any:
    if key in _INT64_MESSAGES:
        return {name: _int64(child) for name, child in value.items()}
    if key in ("labels", "parameters") and isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Mapping):
        return with_int64_strings(value)
    if isinstance(value, list | tuple):
        return [with_int64_strings(child) if isinstance(child, Mapping) else child for child in value]
    return value


def _int64(value: Any) -> Any:
    return [str(child) for child in value] if isinstance(value, list | tuple) else str(value)
