"""How a tuning job goes on: which trials it has, what they measured, and when it is over."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.data import DataFolder
from emulator.names import new_id
from emulator.records import CANCELLING, FAILED, PENDING, QUEUED, RUNNING, SUCCEEDED, Ending, Job, Trial
from emulator.scheduling.cancelling import cancel
from emulator.scheduling.trial import Values, progressed, trial_job_spec
from emulator.store import Store
from emulator.times import now_ns
from vertex.kinds import CUSTOM_JOB

_METRICS_SECONDS = 1.0  # how often a running trial's metric file is read
_CODE_FAILED_PRECONDITION = 9


@dataclass(frozen=True)
class StudyReconciler:
    """Advances tuning jobs; `wake` asks for a look at a job."""

    store: Store
    data: DataFolder
    wake: Callable[[str], None]

    def advance(self, study: Job) -> float | None:
        """Take the next step; the seconds after which to look again, or None to wait for a change."""
        if study.is_terminal:
            return None
        with self.store.reading() as look:
            trials = look.trials(study.id)
            jobs = look.trial_jobs(study.id)
        trials = self._refresh(study, trials, jobs)
        ending = study.ending or verdict(study, trials, now_ns())
        if ending is not None:
            return self._finish(study, ending, jobs)
        self._mark_progress(study, trials)
        if not self._request_trials(study, trials):
            return self._finish(study, Ending(SUCCEEDED, 0, "", now_ns()), jobs)
        return _METRICS_SECONDS

    def _refresh(self, study: Job, trials: Sequence[Trial], jobs: Mapping[str, Job]) -> list[Trial]:
        """The trials as their jobs and metric files now are, written down where they changed."""
        fresh = [
            trial if trial.has_ended else progressed(study, trial, jobs[trial.job], self.data.metric_text(trial.job))
            for trial in trials
        ]
        changed = [new for old, new in zip(trials, fresh, strict=True) if new != old]
        if changed:
            with self.store.transaction() as change:
                for trial in changed:
                    change.change_trial(trial)
        return fresh

    def _mark_progress(self, study: Job, trials: Sequence[Trial]) -> None:
        begun = [trial.started for trial in trials if trial.started is not None]
        wanted = RUNNING if begun else PENDING
        if study.state == wanted or study.state == CANCELLING:
            return
        with self.store.transaction() as change:
            current = change.job(study.id)
            if current is None or current.ending is not None:
                return
            if wanted == RUNNING:
                change.say(study.id, "Job is running.")
                change.change_job(current, state=RUNNING, started=min(begun))
            elif current.state == QUEUED:
                change.say(study.id, "Vertex AI is setting up this job.")
                change.change_job(current, state=PENDING)

    def _request_trials(self, study: Job, trials: Sequence[Trial]) -> bool:
        """Start as many trials as may run now; False when none runs and the search has nothing left to try."""
        from emulator.search import SearchSpaceExhausted, suggest

        trials = list(trials)
        study_spec = study.spec["studySpec"]
        while len(trials) < study.spec["maxTrialCount"]:
            if sum(not trial.has_ended for trial in trials) >= study.spec["parallelTrialCount"]:
                break
            number = len(trials) + 1
            observations = [_observation(trial) for trial in trials]
            try:
                parameters = suggest(study_spec, observations, _seed(study))
            except SearchSpaceExhausted:
                return any(not trial.has_ended for trial in trials)
            trial = self._add_trial(study, number, parameters)
            if trial is None:
                break
            trials.append(trial)
        return True

    def _add_trial(self, study: Job, number: int, parameters: Values) -> Trial | None:
        """A trial and its job, in one transaction; None when the study was cancelled or deleted meanwhile."""
        spec = {
            "displayName": f"{study.spec['displayName']}-trial-{number}",
            "labels": study.spec.get("labels", {}),
            "jobSpec": trial_job_spec(study, number, parameters),
        }
        trial = Trial(study.id, number, "REQUESTED", parameters, new_id())
        with self.store.transaction() as change:
            current = change.job(study.id)
            if current is None or current.ending is not None:
                return None
            slots = sum(pool.get("replicaCount", 1) for pool in spec["jobSpec"]["workerPoolSpecs"] if pool)
            change.add_job(trial.job, CUSTOM_JOB, study.location, spec, slots, study.id, number)
            change.add_trial(trial)
        self.wake(trial.job)
        return trial

    def _finish(self, study: Job, ending: Ending, jobs: Mapping[str, Job]) -> float | None:
        open_jobs = [job for job in jobs.values() if not job.is_terminal]
        with self.store.transaction() as change:
            current = change.job(study.id)
            if current is None or current.is_terminal:
                return None
            ending = current.ending or ending
            if open_jobs:
                if current.ending is None:
                    change.change_job(current, ending=ending)
                for job in open_jobs:
                    cancel(change, job.id)
            else:
                change.end_job(current, ending)
        for job in open_jobs:
            self.wake(job.id)
        if open_jobs and all(job.state == QUEUED for job in open_jobs):
            self.wake(study.id)
        return None


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


def _seed(study: Job) -> int:
    return int.from_bytes(hashlib.sha256(study.id.encode()).digest()[:4], "big")


def _observation(trial: Trial) -> Any:
    from emulator.search import Observation

    metrics = {found["metricId"]: found["value"] for found in (trial.final or {}).get("metrics", [])}
    return Observation(trial.parameters, trial.state if trial.has_ended else "ACTIVE", metrics)  # type: ignore[arg-type]
