"""The conditions under which a study stops before it has all its trials (studyStoppingConfig)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vertex_api.scalars import to_seconds
from vertex_api.studies import is_safe, objectives_of
from vertex_api.types import StudySpec
from vertex_emulator.times import parse_time


@dataclass(frozen=True)
class EndedTrial:
    """A trial that is over: when (ns since 1970), and its final metrics, None when it was infeasible."""

    at: int
    metrics: Mapping[str, float] | None


def find_study_stopping_reason(
    study_spec: StudySpec, trial_count: int, ended: Sequence[EndedTrial], created: int, now: int
) -> str | None:
    """Find the condition of `studyStoppingConfig` that is met, as a clause for the log; None while there is none.

    `trial_count` counts all trials so far, `created` and `now` are in ns since 1970. The min* conditions come first and
    block the others until they are met; then the first condition that holds decides (discovery document,
    StudyStoppingConfig). No progress is judged by the only objective, and not at all when there are several.
    """
    config: Mapping[str, Any] = study_spec.get("studyStoppingConfig", {})
    completed = sum(trial.metrics is not None for trial in ended)
    if not _is_runtime_constraint_met(config.get("minimumRuntimeConstraint", {}), created, now, default=True):
        return None
    if completed < config.get("minNumTrials", 0):
        return None
    if _is_runtime_constraint_met(config.get("maximumRuntimeConstraint", {}), created, now, default=False):
        return "maximumRuntimeConstraint: its time has passed"
    if "maxNumTrials" in config and trial_count >= config["maxNumTrials"]:
        return f"maxNumTrials: there are {trial_count} trials"
    if len(objectives_of(study_spec)) != 1:
        return None
    stagnant_trials, since = _count_stagnant_trials_and_get_start(study_spec, ended, created)
    if "maxNumTrialsNoProgress" in config and stagnant_trials >= config["maxNumTrialsNoProgress"]:
        return f"maxNumTrialsNoProgress: the last {stagnant_trials} trials were not better"
    if "maxDurationNoProgress" in config and now - since >= _parse_duration_to_ns(config["maxDurationNoProgress"]):
        return f"maxDurationNoProgress: nothing better for {config['maxDurationNoProgress']}"
    return None


def _is_runtime_constraint_met(constraint: Mapping[str, Any], created: int, now: int, default: bool) -> bool:
    if "maxDuration" in constraint:
        return now - created >= _parse_duration_to_ns(constraint["maxDuration"])
    if "endTime" in constraint:
        end = parse_time(constraint["endTime"])
        return end is not None and now >= end
    return default


def _count_stagnant_trials_and_get_start(
    study_spec: StudySpec, ended: Sequence[EndedTrial], created: int
) -> tuple[int, int]:
    """Count the trials in a row without a new best one; return the count and since when (ns, at first `created`)."""
    [objective] = objectives_of(study_spec)
    best, stagnant_trials, since = None, 0, created
    for trial in sorted(ended, key=lambda trial: trial.at):
        metrics = trial.metrics
        loss = None
        if metrics is not None and is_safe(study_spec, metrics):
            loss = objective.loss(metrics)
        if loss is not None and (best is None or loss < best):
            best, stagnant_trials, since = loss, 0, trial.at
        else:
            stagnant_trials += 1
    return stagnant_trials, since


def _parse_duration_to_ns(duration: str) -> int:
    return int(to_seconds(duration) * 10**9)
