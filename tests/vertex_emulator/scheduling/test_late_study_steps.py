"""A study whose steps come late: after the ends of its trials, as on a busy machine."""

import pytest

from tests.vertex_emulator.fakes import Emulator, Machine
from tests.vertex_emulator.scheduling.steps import log_texts, reports, submit_study
from vertex_emulator.database.records import SUCCEEDED, Job
from vertex_emulator.scheduling.study_reconciler import StudyReconciler


def test_a_study_starts_with_a_trial_that_has_ended(
    emulator: Emulator, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconcile = StudyReconciler.reconcile_and_get_delay

    def reconcile_unless_trial_runs(reconciler: StudyReconciler, study: Job) -> float | None:
        with reconciler.database.read() as transaction:
            jobs = transaction.jobs.of_study(study.id)
        return reconcile(reconciler, study) if all(job.is_terminal for job in jobs) else 1.0

    monkeypatch.setattr(StudyReconciler, "reconcile_and_get_delay", reconcile_unless_trial_runs)
    machine.program = reports
    study = submit_study(emulator, trials=1, parallel=1)
    emulator.run()
    job = emulator.job(study)
    with emulator.database.read() as transaction:
        (trial,) = transaction.trials.all(study)
    assert (job.state, job.started) == (SUCCEEDED, trial.started)
    assert "Job is running." in log_texts(emulator, study)
