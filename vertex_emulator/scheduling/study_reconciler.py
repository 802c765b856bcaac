"""The reconciler of tuning jobs: it requests trials, reads their measurements and ends the study."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from vertex_api.names import CUSTOM_JOB
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import PENDING, QUEUED, RUNNING, SUCCEEDED, Ending, Job, Trial
from vertex_emulator.names import new_id
from vertex_emulator.scheduling import stop_request_recording, study_and_trial_stopping
from vertex_emulator.scheduling.study_and_trial_stopping import iterate_trials_to_stop_early_with_reasons
from vertex_emulator.scheduling.trial_job_spec import Values, build_trial_job_spec
from vertex_emulator.scheduling.updated_trial_building import build_updated_trial
from vertex_emulator.search import Observation, SearchSpaceExhausted, require_next_parameters
from vertex_emulator.search.early_stopping import CurvesByObjective
from vertex_emulator.times import now_ns

_POLL_SECONDS = 1.0  # how often a running trial's metric file is read


@dataclass
class _KnownTrials:
    """What earlier steps have read of a study's trials.

    `ended` has by number, and without measurements, those that have ended: they no longer change, and are not read
    again. If running trials are compared with them, `completed_curves` has those of the succeeded ones. `last_compared`
    are the other trials as they were when that was last done.
    """

    ended: dict[int, Trial] = field(default_factory=dict)
    completed_curves: list[CurvesByObjective] = field(default_factory=list)
    last_compared: Sequence[Trial] = ()

    def add_ended_trials(self, study: Job, ended_trials: Iterable[Trial]) -> None:
        """Add trials that have ended."""
        for trial in ended_trials:
            if trial.state == "SUCCEEDED" and study_and_trial_stopping.has_early_stopping_rule(study):
                self.completed_curves.append(study_and_trial_stopping.build_learning_curves_of_trial(study, trial))
            self.ended[trial.number] = replace(trial, measurements=())


@dataclass(frozen=True)
class StudyReconciler:
    """Advances tuning jobs; `wake` schedules a step for a job."""

    database: Database
    data: DataFolder
    wake: Callable[[str], None]
    _known_trials_by_study: dict[str, _KnownTrials] = field(default_factory=dict, init=False)

    def reconcile_and_get_delay(self, study: Job) -> float | None:
        """Take the next step; return after how many seconds to take another, or None to wait for a change."""
        if study.is_terminal:
            self._known_trials_by_study.pop(study.id, None)
            return None
        known = self._known_trials_by_study.setdefault(study.id, _KnownTrials())
        with self.database.read() as transaction:
            others = transaction.trials.all(study.id, without=known.ended)
            jobs = transaction.jobs.running_trials(study.id)
        others = self._refresh_and_store_trials(study, others, jobs)
        trials = sorted([*known.ended.values(), *others], key=attrgetter("number"))
        known.add_ended_trials(study, [trial for trial in others if trial.has_ended])
        self._mark_running_if_trial_started(study, trials)  # also where the last trial has ended meanwhile
        ending = study.ending or study_and_trial_stopping.decide_study_ending_or_none(study, trials, now_ns())
        if ending is None:
            ending = self._start_trials_or_get_ending(study, trials)
        if ending is not None and not self._is_waiting_for_trials(study, ending, trials):
            return self._end_trials_or_study_or_get_delay(study, ending, trials)
        if others != known.last_compared:
            self._request_stop_of_unpromising_trials(study, others, known.completed_curves)
            known.last_compared = others
        return _POLL_SECONDS

    def _refresh_and_store_trials(self, study: Job, trials: Sequence[Trial], jobs: Mapping[str, Job]) -> list[Trial]:
        """Update the trials from their jobs and metric files, and store those that changed."""
        refreshed = [
            trial
            if trial.has_ended
            else build_updated_trial(study, trial, jobs[trial.job], self.data.read_metrics(trial.job))
            for trial in trials
        ]
        changed = [new for old, new in zip(trials, refreshed, strict=True) if new != old]
        if changed:
            with self.database.write() as transaction:
                for trial in changed:
                    transaction.trials.update(trial)
        return refreshed

    def _mark_running_if_trial_started(self, study: Job, trials: Sequence[Trial]) -> None:
        start_times = [trial.started for trial in trials if trial.started is not None]
        if study.state != PENDING or not start_times:
            return
        with self.database.write() as transaction:
            current = transaction.jobs.get(study.id)
            if current is not None and current.ending is None:
                transaction.jobs.log(study.id, "Job is running.")
                transaction.jobs.update(current, state=RUNNING, started=min(start_times))

    def _start_trials_or_get_ending(self, study: Job, trials: list[Trial]) -> Ending | None:
        """Start as many trials as may run now; return the study's ending if there is one."""
        study_spec = study.spec["studySpec"]
        while True:
            reason = study_and_trial_stopping.find_stopping_reason_if_check_is_due(study, trials, now_ns())
            if reason is not None:
                return self._get_ending_or_record_success_unless_deleted(study, reason)
            if not study_and_trial_stopping.has_room_for_trial(study, trials):
                return None
            number = len(trials) + 1
            observations = [_build_observation(trial) for trial in trials]
            try:
                parameters = require_next_parameters(study_spec, observations, _derive_seed(study))
            except SearchSpaceExhausted:
                running = any(not trial.has_ended for trial in trials)
                return None if running else Ending(SUCCEEDED, 0, "", now_ns())
            trial = self._add_trial_with_job_or_none(study, number, parameters)
            if trial is None:
                return None
            trials.append(trial)

    def _get_ending_or_record_success_unless_deleted(self, study: Job, stopping_reason: str) -> Ending | None:
        """Decide that a study gets no further trials; only a cancellation changes that."""
        ending = Ending(SUCCEEDED, 0, "", now_ns())
        with self.database.write() as transaction:
            current = transaction.jobs.get(study.id)
            if current is None or current.ending is not None:
                return None if current is None else current.ending
            transaction.jobs.log(study.id, f"The study is stopped: {stopping_reason}.")
            transaction.jobs.update(current, ending=ending)
        return ending

    def _is_waiting_for_trials(self, study: Job, ending: Ending, trials: Sequence[Trial]) -> bool:
        asap = study.spec["studySpec"].get("studyStoppingConfig", {}).get("shouldStopAsap", False)
        return ending.state == SUCCEEDED and not asap and any(not trial.has_ended for trial in trials)

    def _request_stop_of_unpromising_trials(
        self, study: Job, trials: Sequence[Trial], completed: Sequence[CurvesByObjective]
    ) -> None:
        for trial, reason in iterate_trials_to_stop_early_with_reasons(study, trials, completed):
            with self.database.write() as transaction:
                if stop_request_recording.try_to_request_early_stop(transaction, trial.job):
                    transaction.jobs.log(study.id, f"Trial {trial.number} is stopped early: {reason}.")
            self.wake(trial.job)

    def _add_trial_with_job_or_none(self, study: Job, trial_number: int, parameters: Values) -> Trial | None:
        """Add a trial and its job in one transaction; None if the study was cancelled or deleted meanwhile."""
        spec = {
            "displayName": f"{study.spec['displayName']}-trial-{trial_number}",
            "labels": study.spec.get("labels", {}),
            "jobSpec": build_trial_job_spec(study, trial_number, parameters),
        }
        trial = Trial(study.id, trial_number, "REQUESTED", parameters, new_id())
        with self.database.write() as transaction:
            current = transaction.jobs.get(study.id)
            if current is None or current.ending is not None:
                return None
            transaction.jobs.add(trial.job, CUSTOM_JOB, study.location, spec, study.id, trial_number)
            transaction.trials.add(trial)
        self.wake(trial.job)
        return trial

    def _end_trials_or_study_or_get_delay(self, study: Job, ending: Ending, trials: Sequence[Trial]) -> float | None:
        with self.database.write() as transaction:
            active_jobs = [job for job in transaction.jobs.of_study(study.id) if not job.is_terminal]
            current = transaction.jobs.get(study.id)
            if current is None or current.is_terminal:
                return None
            ending = current.ending or ending
            if active_jobs:
                if current.ending is None:
                    transaction.jobs.update(current, ending=ending)
                for job in active_jobs:
                    if ending.state == SUCCEEDED:
                        stop_request_recording.try_to_request_early_stop(transaction, job.id)
                    else:
                        stop_request_recording.request_cancellation_if_undecided(transaction, job.id)
            elif not all(trial.has_ended for trial in trials):
                return 0.0  # a trial's job has ended since the trial was updated from it
            else:
                transaction.jobs.end(current, ending)
        for job in active_jobs:
            self.wake(job.id)
        if active_jobs and all(job.state == QUEUED for job in active_jobs):
            self.wake(study.id)
        if not active_jobs:
            self._known_trials_by_study.pop(study.id, None)  # there may be no further step
        return None


def _derive_seed(study: Job) -> int:
    return int.from_bytes(hashlib.sha256(study.id.encode()).digest()[:4], "big")


def _build_observation(trial: Trial) -> Observation:
    state: Any = trial.state if trial.has_ended else "ACTIVE"
    return Observation(trial.parameters, state, study_and_trial_stopping.get_final_metrics_or_none(trial) or {})
