"""Killed at any step, the next process comes to the same end."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.fakes import Clock, Emulator, Fuse, Killed, Machine, use_clock
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, pool
from tests.vertex_emulator.kills import assert_that_no_kill_changes_the_end, beginning
from tests.vertex_emulator.scheduling.steps import (
    WORKER,
    cancel,
    crashes_once,
    inject,
    reports,
    submit,
    submit_study,
    trials,
)
from vertex_api.names import CUSTOM_JOB

# What is done to an emulator: jobs submitted and perhaps cancelled or deleted; the ids in order of creation.
Scenario = Callable[[Emulator], list[str]]


def a_distributed_job(emulator: Emulator) -> list[str]:
    return [submit(emulator, custom_job_spec(pool(), pool()))]


def a_failing_job(emulator: Emulator) -> list[str]:
    emulator.machine.program = lambda spec: 9
    return [submit(emulator)]


def a_job_cancelled_while_it_runs(emulator: Emulator) -> list[str]:
    emulator.machine.ignores_sigterm = True
    job = submit(emulator)
    emulator.run_ready_steps()
    cancel(emulator, job)
    return [job]


def a_study(emulator: Emulator) -> list[str]:
    emulator.machine.program = reports
    return [submit_study(emulator, trials=3, parallel=2)]


def a_study_cancelled_while_it_runs(emulator: Emulator) -> list[str]:
    study = submit_study(emulator, trials=5, parallel=2)
    emulator.run_ready_steps()
    cancel(emulator, study)
    return [study]


def a_job_that_crashes_once(emulator: Emulator) -> list[str]:
    emulator.machine.program = crashes_once
    return [submit(emulator, custom_job_spec(pool(), pool()))]


def a_job_that_loses_a_worker(emulator: Emulator) -> list[str]:
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run_ready_steps()
    emulator.machine.end(job, WORKER, 137)
    emulator.queue.add(job)
    return [job]


def a_job_that_is_preempted_twice(emulator: Emulator) -> list[str]:
    emulator.machine.ignores_sigterm = True
    inject(emulator, "preempt", times=2)
    return [submit(emulator, custom_job_spec(pool(), scheduling={"strategy": "SPOT"}))]


def a_job_cancelled_while_it_restarts(emulator: Emulator) -> list[str]:
    emulator.machine.program = crashes_once
    emulator.machine.ignores_sigterm = True
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run_ready_steps()
    emulator.machine.end(job, WORKER)
    emulator.queue.add(job)
    emulator.run_ready_steps()
    cancel(emulator, job)
    return [job]


def a_job_whose_container_starts_a_second_time(emulator: Emulator) -> list[str]:
    inject(emulator, "second-start")
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run_ready_steps()
    emulator.machine.end(job, WORKER, 1)
    emulator.queue.add(job)
    return [job]


def a_job_deleted(emulator: Emulator) -> list[str]:
    kept, gone = submit(emulator), submit(emulator)
    emulator.run()
    emulator.jobs.delete(CUSTOM_JOB, LOCATION, gone)
    return [kept]


def outcome(emulator: Emulator, jobs: list[str]) -> list[Any]:
    """All that must not depend on when the process was killed."""
    with emulator.database.read() as transaction:
        found = [transaction.jobs.get(job) for job in jobs]
        studies = [
            [(trial.number, trial.state, trial.parameters["x"] is not None) for trial in transaction.trials.all(job)]
            for job in jobs
        ]
        orphans = transaction.jobs.unfinished()
    return [
        [(job.state, job.ending.code if job.ending else None) for job in found if job is not None],
        studies,
        orphans,
        sorted((place[1].task_name, place[1].attempt) for place in emulator.machine.started.elements()),
        emulator.machine.containers,
        len(list(emulator.data.job_ids())),
    ]


@pytest.mark.parametrize(
    "scenario",
    [
        a_distributed_job,
        a_failing_job,
        a_job_cancelled_while_it_runs,
        a_job_that_crashes_once,
        a_job_that_loses_a_worker,
        a_job_that_is_preempted_twice,
        a_job_cancelled_while_it_restarts,
        a_job_whose_container_starts_a_second_time,
        a_study,
        a_study_cancelled_while_it_runs,
        a_job_deleted,
    ],
)
def test_kill_at_any_step_changes_no_outcome(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = beginning(scenario, outcome, monkeypatch)
    assert_that_no_kill_changes_the_end(tmp_path, begin)


def test_kill_during_restart_is_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    use_clock(clock, monkeypatch)
    emulator = Emulator(tmp_path, Machine(clock))
    jobs = a_study(emulator)
    kills = 0
    for steps in range(1, 400):
        emulator.machine.fuse.left = steps % 17
        try:
            emulator.run()
            emulator.run_ready_steps()
            break
        except Killed:
            kills += 1
            emulator.database.close()
            emulator.machine.fuse = Fuse()
            emulator.start()
    assert kills > 10
    assert trials(emulator, jobs[0]) == [(1, "SUCCEEDED"), (2, "SUCCEEDED"), (3, "SUCCEEDED")]
    assert set(emulator.machine.started.values()) == {1}
    assert emulator.machine.containers == {}
