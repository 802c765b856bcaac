"""When a study stops by its studyStoppingConfig, before it has all its trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vertex_api.scalars import parse_seconds
from vertex_api.studies.metrics import is_safe, list_objectives
from vertex_api.types import StudySpec
from vertex_emulator.times import parse_time


@dataclass(frozen=True)
class EndedTrial:
    """A trial that is over: when (ns since 1970), and its final metrics, None when it was infeasible."""

    at: int
    metrics: Mapping[str, float] | None


def reason_to_stop(
    study_spec: StudySpec, trials: int, ended: Sequence[EndedTrial], created: int, now: int
) -> str | None:
    """Which condition of `studyStoppingConfig` is met, one clause for the log; None while the study may go on.

    `trials` counts all trials so far, `created` and `now` are in ns since 1970. The min* conditions come first and
    block the others until they are met; then the first condition that holds decides (discovery document,
    StudyStoppingConfig). No progress is judged by the only objective, and not at all when there are several.
    """
    config: Mapping[str, Any] = study_spec.get("studyStoppingConfig", {})
    completed = sum(trial.metrics is not None for trial in ended)
    if not _passed(config.get("minimumRuntimeConstraint", {}), created, now, otherwise=True):
        return None
    if completed < config.get("minNumTrials", 0):
        return None
    if _passed(config.get("maximumRuntimeConstraint", {}), created, now, otherwise=False):
        return "maximumRuntimeConstraint: its time has passed"
    if "maxNumTrials" in config and trials >= config["maxNumTrials"]:
        return f"maxNumTrials: there are {trials} trials"
    if len(list_objectives(study_spec)) != 1:
        return None
    in_vain, since = _without_progress(study_spec, ended, created)
    if "maxNumTrialsNoProgress" in config and in_vain >= config["maxNumTrialsNoProgress"]:
        return f"maxNumTrialsNoProgress: the last {in_vain} trials brought nothing better"
    if "maxDurationNoProgress" in config and now - since >= _nanoseconds(config["maxDurationNoProgress"]):
        return f"maxDurationNoProgress: nothing better for {config['maxDurationNoProgress']}"
    return None


def _passed(constraint: Mapping[str, Any], created: int, now: int, otherwise: bool) -> bool:
    if "maxDuration" in constraint:
        return now - created >= _nanoseconds(constraint["maxDuration"])
    if "endTime" in constraint:
        end = parse_time(constraint["endTime"])
        return end is not None and now >= end
    return otherwise


def _without_progress(study_spec: StudySpec, ended: Sequence[EndedTrial], created: int) -> tuple[int, int]:
    """How many trials in a row ended without a new best one, and since when (the study's creation while none is)."""
    [objective] = list_objectives(study_spec)
    best, in_vain, since = None, 0, created
    for trial in sorted(ended, key=lambda trial: trial.at):
        metrics = trial.metrics
        loss = objective.loss(metrics) if metrics is not None and is_safe(study_spec, metrics) else None
        if loss is not None and (best is None or loss < best):
            best, in_vain, since = loss, 0, trial.at
        else:
            in_vain += 1
    return in_vain, since


def _nanoseconds(duration: str) -> int:
    return int(parse_seconds(duration) * 10**9)
