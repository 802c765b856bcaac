"""Decides whether a tuning job may start a trial, how and when it ends, and which of its trials stop early."""

from collections.abc import Iterator, Sequence
from typing import Any

from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Job, Trial
from vertex_emulator.search import EndedTrial, early_stopping, study_stopping
from vertex_emulator.search.early_stopping import CurvesByObjective
from vertex_emulator.search.measurements_and_observations import parse_api_measurement

_CODE_FAILED_PRECONDITION = 9


def decide_study_ending_or_none(study: Job, trials: Sequence[Trial], now: int) -> Ending | None:
    """Decide how a tuning job ends by the number of its trials; None while it goes on.

    With maxFailedTrialCount N it fails once N trials failed. Without, it fails if the first trial fails, and later by
    the ratio of failures (Google's page on hyperparameter tuning): here, more than half.
    """
    ended = [trial for trial in trials if trial.has_ended]
    failed = [trial for trial in ended if trial.state == "INFEASIBLE"]
    allowed = study.spec.get("maxFailedTrialCount", 0)
    if allowed:
        too_many = len(failed) >= allowed
    else:
        first_failed = bool(failed) and len(ended) == len(failed)
        too_many = first_failed or len(failed) > len(ended) / 2
    if too_many:
        reason = failed[-1].infeasible_reason
        count = f"{len(failed)} of {len(ended)} finished trials failed"
        return Ending(FAILED, _CODE_FAILED_PRECONDITION, f"Too many failed trials: {count}. The last: {reason}", now)
    if len(ended) >= study.spec["maxTrialCount"]:
        return Ending(SUCCEEDED, 0, "", now)
    return None


def find_stopping_reason_if_check_is_due(study: Job, trials: Sequence[Trial], now: int) -> str | None:
    """Find the stopping condition of the study that is met; None while it may go on.

    Conditions are checked before each new suggestion, and with shouldStopAsap at any time (discovery document,
    StudyStoppingConfig). In between, running trials do not count, or the last one would be stopped as it starts.
    """
    config = study.spec["studySpec"].get("studyStoppingConfig")
    is_before_suggestion = has_room_for_trial(study, trials)
    if config is None or not (config.get("shouldStopAsap") or is_before_suggestion):
        return None
    ended = [EndedTrial(trial.ended or 0, get_final_metrics_or_none(trial)) for trial in trials if trial.has_ended]
    count = len(trials) if is_before_suggestion else len(ended)
    return study_stopping.find_study_stopping_reason(study.spec["studySpec"], count, ended, study.created, now)


def has_room_for_trial(study: Job, trials: Sequence[Trial]) -> bool:
    """Return whether a study may start another trial."""
    running = sum(not trial.has_ended for trial in trials)
    return bool(len(trials) < study.spec["maxTrialCount"] and running < study.spec["parallelTrialCount"])


def has_early_stopping_rule(study: Job) -> bool:
    """Return whether a study stops trials whose measurements are worse than those of others."""
    return not early_stopping.STOPPING_RULE_FIELDS.isdisjoint(study.spec["studySpec"])


def build_learning_curves_of_trial(study: Job, trial: Trial) -> CurvesByObjective:
    """Build the curves of a trial that the study's automated stopping rule compares."""
    study_spec: Any = study.spec["studySpec"]
    return early_stopping.build_learning_curves_by_objective(
        study_spec, list(map(parse_api_measurement, trial.measurements))
    )


def iterate_trials_to_stop_early_with_reasons(
    study: Job, trials: Sequence[Trial], completed: Sequence[CurvesByObjective]
) -> Iterator[tuple[Trial, str]]:
    """Find the running trials that the study's automated stopping rule stops, each with the reason.

    `completed` are the curves of the trials that have succeeded.
    """
    if not has_early_stopping_rule(study):
        return
    study_spec: Any = study.spec["studySpec"]
    for trial in trials:
        if trial.state == "ACTIVE":
            running = build_learning_curves_of_trial(study, trial)
            reason = early_stopping.find_early_stopping_reason(study_spec, running, completed)
            if reason is not None:
                yield trial, reason


def get_final_metrics_or_none(trial: Trial) -> dict[str, float] | None:
    """Return the values of a trial's final measurement by metric id; None without one."""
    if trial.final is None:
        return None
    return {metric["metricId"]: metric["value"] for metric in trial.final["metrics"]}
