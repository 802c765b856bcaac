"""The reconciler of tuning jobs: it requests trials, reads their measurements, stops some and ends the study."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from vertex_api.names import CUSTOM_JOB
from vertex_emulator import search
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import FAILED, PENDING, QUEUED, RUNNING, SUCCEEDED, Ending, Job, Trial
from vertex_emulator.names import new_id
from vertex_emulator.scheduling import failures, lifecycle
from vertex_emulator.scheduling import trials as study_trials
from vertex_emulator.scheduling.trials import Values
from vertex_emulator.search import EndedTrial, Measurement, Observation, SearchSpaceExhausted, stopping
from vertex_emulator.search.stopping import Curves
from vertex_emulator.times import now_ns

_POLL_SECONDS = 1.0  # how often a running trial's metric file is read


@dataclass
class _Known:
    """A study's trials by number. The steps of a study alone change them, so the first one reads them, and no other.

    `ended` has those that have ended, without measurements. If running trials are compared with them, `completed` has
    the curves of the succeeded ones. `running` has the others, `sources` what these were last updated from, and
    `compared` is how they were when they were last compared.
    """

    ended: dict[int, Trial] = field(default_factory=dict)
    completed: list[Curves] = field(default_factory=list)
    running: dict[int, Trial] = field(default_factory=dict)
    sources: dict[int, tuple[object, ...]] = field(default_factory=dict)
    compared: Sequence[Trial] = ()

    def add(self, study: Job, trials: Iterable[Trial]) -> None:
        """Add new trials, or new versions of running ones."""
        for trial in trials:
            if not trial.has_ended:
                self.running[trial.number] = trial
                continue
            if trial.state == "SUCCEEDED" and has_stopping_rule(study):
                self.completed.append(_curves(study, trial))
            self.ended[trial.number] = replace(trial, measurements=())
            self.running.pop(trial.number, None)
            self.sources.pop(trial.number, None)


@dataclass(frozen=True)
class Reconciler:
    """Advances tuning jobs; `wake` schedules a step for a job."""

    database: Database
    data: DataFolder
    wake: Callable[[str], None]
    _known: dict[str, _Known] = field(default_factory=dict, init=False)

    def advance(self, study: Job) -> float | None:
        """Take the next step; return after how many seconds to take another, or None to wait for a change."""
        if study.is_terminal:
            self._known.pop(study.id, None)
            return None
        try:
            return self._step(study, self._known.get(study.id) or self._read(study))
        except BaseException:
            self._known.pop(study.id, None)  # what of the step is stored, the next one reads
            raise

    def _read(self, study: Job) -> _Known:
        known = self._known[study.id] = _Known()
        with self.database.read() as transaction:
            known.add(study, transaction.trials.all(study.id))
        return known

    def _step(self, study: Job, known: _Known) -> float | None:
        self._refresh(study, known)
        others = list(known.running.values())
        trials = sorted([*known.ended.values(), *others], key=attrgetter("number"))
        self._mark_running(study, trials)  # also where the last trial has ended meanwhile
        ending = study.ending or decide_ending(study, trials, now_ns())
        if ending is None:
            ending = self._start_trials(study, known, trials)
        if ending is not None and not _awaits_trials(study, ending, trials):
            return self._end(study, ending, trials)
        if others != known.compared:
            self._stop_unpromising(study, others, known.completed)
            known.compared = others
        return _POLL_SECONDS

    def _refresh(self, study: Job, known: _Known) -> None:
        """Update the running trials from their jobs and metric files, and store those that changed."""
        with self.database.read() as transaction:
            jobs = {number: transaction.jobs.get(trial.job) for number, trial in known.running.items()}
        changed = []
        for number, job in jobs.items():
            if job is None:
                continue  # the study has been deleted
            metric_text = self.data.read_metrics(job.id)
            source = (job.state, job.started, hash(metric_text))
            if source != known.sources.get(number):
                known.sources[number] = source
                trial = study_trials.update(study, known.running[number], job, metric_text)
                changed += [trial] if trial != known.running[number] else []
        if changed:
            with self.database.write() as transaction:
                for trial in changed:
                    transaction.trials.update(trial)
            known.add(study, changed)

    def _mark_running(self, study: Job, trials: Sequence[Trial]) -> None:
        """Mark the study as running once a trial has started."""
        start_times = [trial.started for trial in trials if trial.started is not None]
        if study.state != PENDING or not start_times:
            return
        with self.database.write() as transaction:
            current = transaction.jobs.get(study.id)
            if current is not None and current.ending is None:
                transaction.jobs.log(study.id, "Job is running.")
                transaction.jobs.update(current, state=RUNNING, started=min(start_times))

    def _start_trials(self, study: Job, known: _Known, trials: list[Trial]) -> Ending | None:
        """Start as many trials as may run now, and add them; return the study's ending if there is one."""
        study_spec = study.spec["studySpec"]
        while True:
            reason = _stopping_reason(study, trials, now_ns())
            if reason is not None:
                return self._record_success(study, reason)
            if not has_room(study, trials):
                return None
            observations = [_observation(trial) for trial in trials]
            try:
                parameters = search.suggest(study_spec, observations, _seed(study))
            except SearchSpaceExhausted:
                is_running = any(not trial.has_ended for trial in trials)
                return None if is_running else Ending(SUCCEEDED, 0, "", now_ns())
            trial = self._add_trial(study, len(trials) + 1, parameters)
            if trial is None:
                return None
            trials.append(trial)
            known.add(study, [trial])

    def _record_success(self, study: Job, stopping_reason: str) -> Ending | None:
        """Decide that a study gets no further trials; only a cancellation changes that. None if it is deleted."""
        ending = Ending(SUCCEEDED, 0, "", now_ns())
        with self.database.write() as transaction:
            current = transaction.jobs.get(study.id)
            if current is None or current.ending is not None:
                return None if current is None else current.ending
            transaction.jobs.log(study.id, f"The study is stopped: {stopping_reason}.")
            transaction.jobs.update(current, ending=ending)
        return ending

    def _add_trial(self, study: Job, number: int, parameters: Values) -> Trial | None:
        """Add a trial and its job in one transaction; None if the study was cancelled or deleted meanwhile."""
        spec = {
            "displayName": f"{study.spec['displayName']}-trial-{number}",
            "labels": study.spec.get("labels", {}),
            "jobSpec": study_trials.job_spec(study, number, parameters),
        }
        trial = Trial(study.id, number, "REQUESTED", parameters, new_id())
        with self.database.write() as transaction:
            current = transaction.jobs.get(study.id)
            if current is None or current.ending is not None:
                return None
            job = transaction.jobs.add(trial.job, CUSTOM_JOB, study.location, spec, study.id, number)
            transaction.trials.add(trial)
            for text in lifecycle.record(transaction, job):
                transaction.jobs.log(job.id, text, "WARNING")
        self.wake(trial.job)
        return trial

    def _stop_unpromising(self, study: Job, trials: Sequence[Trial], completed: Sequence[Curves]) -> None:
        """Request the stop of the running trials that the study's automated stopping rule stops."""
        if not has_stopping_rule(study):
            return
        study_spec: Any = study.spec["studySpec"]
        for trial in trials:
            if trial.state != "ACTIVE":
                continue
            reason = stopping.trial_stopping_reason(study_spec, _curves(study, trial), completed)
            if reason is None:
                continue
            with self.database.write() as transaction:
                if lifecycle.stop_early(transaction, trial.job):
                    transaction.jobs.log(study.id, f"Trial {trial.number} is stopped early: {reason}.")
            self.wake(trial.job)

    def _end(self, study: Job, ending: Ending, trials: Sequence[Trial]) -> float | None:
        """End the trials that run, or else the study."""
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
                        lifecycle.stop_early(transaction, job.id)
                    else:
                        lifecycle.cancel(transaction, job.id)
            elif not all(trial.has_ended for trial in trials):
                return 0.0  # a trial's job has ended since the trial was updated from it
            else:
                transaction.jobs.end(current, ending)
        for job in active_jobs:
            self.wake(job.id)
        if active_jobs and all(job.state == QUEUED for job in active_jobs):
            self.wake(study.id)
        if not active_jobs:
            self._known.pop(study.id, None)  # there may be no further step
        return None


def decide_ending(study: Job, trials: Sequence[Trial], now: int) -> Ending | None:
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
        count = f"{len(failed)} of {len(ended)} finished trials failed"
        message = f"Too many failed trials: {count}. The last: {failed[-1].infeasible_reason}"
        return Ending(FAILED, failures.FAILED_PRECONDITION, message, now)
    if len(ended) >= study.spec["maxTrialCount"]:
        return Ending(SUCCEEDED, 0, "", now)
    return None


def _awaits_trials(study: Job, ending: Ending, trials: Sequence[Trial]) -> bool:
    asap = study.spec["studySpec"].get("studyStoppingConfig", {}).get("shouldStopAsap", False)
    return ending.state == SUCCEEDED and not asap and any(not trial.has_ended for trial in trials)


def _stopping_reason(study: Job, trials: Sequence[Trial], now: int) -> str | None:
    """The stopping condition of the study that is met; None while it may go on.

    Conditions are checked before each new suggestion, and with shouldStopAsap at any time (discovery document,
    StudyStoppingConfig). In between, running trials do not count, or the last one would be stopped as it starts.
    """
    config = study.spec["studySpec"].get("studyStoppingConfig")
    is_before_suggestion = has_room(study, trials)
    if config is None or not (config.get("shouldStopAsap") or is_before_suggestion):
        return None
    ended = [EndedTrial(trial.ended or 0, _final_metrics(trial)) for trial in trials if trial.has_ended]
    count = len(trials) if is_before_suggestion else len(ended)
    return stopping.study_stopping_reason(study.spec["studySpec"], count, ended, study.created, now)


def has_room(study: Job, trials: Sequence[Trial]) -> bool:
    """Whether a study may start another trial."""
    running = sum(not trial.has_ended for trial in trials)
    return bool(len(trials) < study.spec["maxTrialCount"] and running < study.spec["parallelTrialCount"])


def has_stopping_rule(study: Job) -> bool:
    """Whether a study stops trials whose measurements are worse than those of others."""
    return not stopping.RULE_FIELDS.isdisjoint(study.spec["studySpec"])


def _curves(study: Job, trial: Trial) -> Curves:
    return stopping.learning_curves(study.spec["studySpec"], list(map(Measurement.parse, trial.measurements)))


def _observation(trial: Trial) -> Observation:
    state: Any = trial.state if trial.has_ended else "ACTIVE"
    return Observation(trial.parameters, state, _final_metrics(trial) or {})


def _final_metrics(trial: Trial) -> dict[str, float] | None:
    """The values of a trial's final measurement by metric id; None without one."""
    if trial.final is None:
        return None
    return {metric["metricId"]: metric["value"] for metric in trial.final["metrics"]}


def _seed(study: Job) -> int:
    return int.from_bytes(hashlib.sha256(study.id.encode()).digest()[:4], "big")
