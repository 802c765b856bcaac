"""How a tuning job is judged: by the count of its failed trials, by its stopping conditions, and trial by trial."""

from collections.abc import Iterator, Sequence
from typing import Any

from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Job, Trial
from vertex_emulator.scheduling.measurements import from_json

_CODE_FAILED_PRECONDITION = 9


def verdict(study: Job, trials: Sequence[Trial], now: int) -> Ending | None:
    """Whether a tuning job is over by the count of its trials.

    With maxFailedTrialCount N it fails once N trials failed. Without, Google's page on hyperparameter tuning says
    that it fails when the first trial fails, and later by the ratio of failures: here, more than half.
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
        counted = f"{len(failed)} of {len(ended)} finished trials failed"
        return Ending(FAILED, _CODE_FAILED_PRECONDITION, f"Too many failed trials: {counted}. The last: {reason}", now)
    if len(ended) >= study.spec["maxTrialCount"]:
        return Ending(SUCCEEDED, 0, "", now)
    return None


def reason_to_end(study: Job, trials: Sequence[Trial], now: int) -> str | None:
    """Which of the study's stopping conditions is met; None while it may go on.

    They are looked at before each new suggestion, and with shouldStopAsap at any time (discovery document,
    StudyStoppingConfig): in between, trials that run do not count, or the last one would be stopped as it starts.
    """
    config = study.spec["studySpec"].get("studyStoppingConfig")
    before_a_suggestion = wants_trial(study, trials)
    if config is None or not (config.get("shouldStopAsap") or before_a_suggestion):
        return None
    from vertex_emulator.search import EndedTrial, study_stopping

    ended = [EndedTrial(trial.ended or 0, final_metrics(trial)) for trial in trials if trial.has_ended]
    count = len(trials) if before_a_suggestion else len(ended)
    return study_stopping.reason_to_stop(study.spec["studySpec"], count, ended, study.created, now)


def wants_trial(study: Job, trials: Sequence[Trial]) -> bool:
    """Whether a study has room for another trial."""
    running = sum(not trial.has_ended for trial in trials)
    return bool(len(trials) < study.spec["maxTrialCount"] and running < study.spec["parallelTrialCount"])


def hopeless(study: Job, trials: Sequence[Trial]) -> Iterator[tuple[Trial, str]]:
    """The running trials that the study's automated stopping rule gives up, each with the reason."""
    from vertex_emulator.search import early_stopping

    study_spec: Any = study.spec["studySpec"]
    if early_stopping.RULES.isdisjoint(study_spec):
        return
    completed = [list(map(from_json, trial.measurements)) for trial in trials if trial.state == "SUCCEEDED"]
    for trial in trials:
        if trial.state == "ACTIVE":
            reason = early_stopping.reason_to_stop(study_spec, list(map(from_json, trial.measurements)), completed)
            if reason is not None:
                yield trial, reason


def final_metrics(trial: Trial) -> dict[str, float] | None:
    """What a trial is judged by, by metric id; None without a final measurement."""
    if trial.final is None:
        return None
    return {found["metricId"]: found["value"] for found in trial.final["metrics"]}
