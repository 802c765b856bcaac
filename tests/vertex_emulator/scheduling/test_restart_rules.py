from dataclasses import replace
from typing import Any

import pytest

from tests.vertex_emulator.jobs import custom_job, custom_job_spec, pool
from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Job, Replica
from vertex_emulator.faults import InjectedFault
from vertex_emulator.replicas.executor_protocol import ReplicaStatus
from vertex_emulator.scheduling.ending_or_restart import JobOutcome, decide_ending_or_restart_or_none
from vertex_emulator.scheduling.restart_rules import RestartPlan

CHIEF, WORKER, OTHER = Replica(0, 0), Replica(1, 0), Replica(1, 1)
RUNS = ReplicaStatus("running", started=2 * 10**9)
SECOND = 10**9


def exited(code: int, at: int = 3 * SECOND, out_of_memory: bool = False) -> ReplicaStatus:
    return ReplicaStatus("exited", code, out_of_memory, 2 * SECOND, at)


def job(fault: InjectedFault | None = None, **scheduling: Any) -> Job:
    return custom_job(custom_job_spec(pool(), pool(2), scheduling=scheduling), fault=fault)


def judged(job: Job, now: int = 4 * SECOND, **statuses: ReplicaStatus | None) -> JobOutcome:
    """What becomes of a job whose replicas run, but for those named; None is a container that is gone."""
    named = {"chief": job.current_replicas[0], "worker": job.current_replicas[1], "other": job.current_replicas[2]}
    found = {replica: statuses.get(name, RUNS) for name, replica in named.items()}
    statuses = {replica: status for replica, status in found.items() if status}
    return decide_ending_or_restart_or_none(job, statuses, now, "http://x")


def restarted(job: Job, found: JobOutcome) -> Job:
    """The job as it is once the restart is over."""
    assert isinstance(found, RestartPlan), found
    assert found.restarts.restarting_since is not None
    return replace(job, restarts=replace(found.restarts, restarting_since=None))


def ended(found: JobOutcome) -> tuple[str, int, str]:
    assert isinstance(found, Ending), found
    return (found.state, found.code, found.message)


@pytest.mark.parametrize("code", [6, 134, 11, 139])
def test_a_crash_restarts_the_whole_job_three_times(code: int) -> None:
    crashing = job()
    for retry in (1, 2, 3):
        found = judged(crashing, worker=exited(code))
        assert isinstance(found, RestartPlan)
        assert found.whole_job
        assert f"workerpool1-0 exited with a non-zero status of {code}" in found.log_message
        assert f"retry {retry} of 3" in found.log_message
        crashing = restarted(crashing, found)
        assert [replica.attempt for replica in crashing.current_replicas] == [retry] * 3
    assert ended(judged(crashing, worker=exited(code)))[:2] == (FAILED, 3)


@pytest.mark.parametrize("code", [1, 2, 127, 143])
def test_any_other_exit_code_is_permanent(code: int) -> None:
    assert ended(judged(job(), worker=exited(code)))[:2] == (FAILED, 3)


def test_memory_that_ran_out_is_permanent() -> None:
    state, error, message = ended(judged(job(), other=exited(137, out_of_memory=True)))
    assert (state, error) == (FAILED, 8)
    assert "Replicas low on memory: workerpool1." in message


@pytest.mark.parametrize("loss", [None, exited(137)])
def test_a_lost_worker_restarts_alone_five_times(loss: ReplicaStatus | None) -> None:
    losing = job()
    for restart in range(1, 6):
        found = judged(losing, worker=loss)
        assert isinstance(found, RestartPlan)
        assert not found.whole_job
        assert f"restart {restart} of 5" in found.log_message
        losing = restarted(losing, found)
        assert [replica.attempt for replica in losing.current_replicas] == [0, restart, 0]
    found = judged(losing, worker=loss)
    assert isinstance(found, RestartPlan)
    assert found.whole_job
    losing = restarted(losing, found)
    assert [replica.attempt for replica in losing.current_replicas] == [1, 6, 1]
    assert losing.restarts.workers == {}


def test_endless_losses_are_an_internal_error() -> None:
    losing = job()
    restarts = 0
    while isinstance(found := judged(losing, worker=None), RestartPlan):
        losing = restarted(losing, found)
        restarts += 1
    assert restarts == 4 * 5 + 3
    assert ended(found)[:2] == (FAILED, 13)
    assert "Internal error occurred for the current attempt" in ended(found)[2]


def test_workers_lost_together_are_started_again_together() -> None:
    losing = job()
    losing = restarted(losing, judged(losing, worker=None, other=exited(137)))
    assert [replica.attempt for replica in losing.current_replicas] == [0, 1, 1]


def test_restart_job_on_worker_restart_restarts_all_replicas() -> None:
    losing = job(restartJobOnWorkerRestart=True)
    restarts = 0
    while isinstance(found := judged(losing, worker=None), RestartPlan):
        assert found.whole_job
        losing = restarted(losing, found)
        restarts += 1
        assert [replica.attempt for replica in losing.current_replicas] == [restarts] * 3
    assert restarts == 4 * 5 + 3


def test_without_retries_a_loss_or_crash_is_final() -> None:
    strict = job(disableRetries=True, restartJobOnWorkerRestart=True, strategy="SPOT")
    assert ended(judged(strict, worker=None))[:2] == (FAILED, 13)
    assert ended(judged(strict, worker=exited(139)))[:2] == (FAILED, 3)
    preempted = replace(strict, fault=InjectedFault("preempt"))
    assert ended(judged(preempted))[:2] == (FAILED, 8)


def test_earlier_attempts_are_not_judged() -> None:
    losing = job()
    losing = restarted(losing, judged(losing, worker=None))
    statuses = {CHIEF: RUNS, WORKER: exited(1), replace(WORKER, attempt=1): RUNS, OTHER: RUNS}
    assert decide_ending_or_restart_or_none(losing, statuses, 4 * SECOND, "http://x") is None


def test_primary_success_outranks_losses_and_later_crashes() -> None:
    assert ended(judged(job(), chief=exited(0), worker=None))[0] == SUCCEEDED
    assert ended(judged(job(), chief=exited(0), worker=exited(139, at=4 * SECOND)))[0] == SUCCEEDED
    found = judged(job(), chief=exited(0, at=4 * SECOND), worker=exited(139))
    assert isinstance(found, RestartPlan)


def test_a_preempted_spot_job_restarts_six_times() -> None:
    spot = job(InjectedFault("preempt", times=7), strategy="SPOT")
    for restart in range(1, 7):
        found = judged(spot)
        assert isinstance(found, RestartPlan)
        assert found.whole_job
        assert found.log_message.startswith("STOCKOUT: Resources are insufficient in region: us-central1.")
        assert f"restart {restart} of 6" in found.log_message
        spot = restarted(spot, found)
    state, code, message = ended(judged(spot))
    assert (state, code) == (FAILED, 8)
    assert "Resources are insufficient in region: us-central1." in message


def test_another_job_s_preemption_ends_it() -> None:
    assert ended(judged(job(InjectedFault("preempt"))))[:2] == (FAILED, 8)


def test_a_fault_respects_its_count_and_its_time() -> None:
    spot = job(InjectedFault("preempt", after=5), strategy="SPOT")
    assert judged(spot, now=7 * SECOND - 1) is None
    spot = restarted(spot, judged(spot, now=7 * SECOND))
    assert judged(spot, now=9 * SECOND) is None


def test_a_timed_fault_spares_what_ended_before_it() -> None:
    late = job(InjectedFault("fail", code=13, message="as told", after=2))
    assert ended(judged(late, chief=exited(0), now=9 * SECOND))[0] == SUCCEEDED
    assert ended(judged(late, chief=exited(0, at=8 * SECOND), now=9 * SECOND)) == (FAILED, 13, "as told")


def test_an_injected_exit_counts_like_a_real_one() -> None:
    found = judged(job(InjectedFault("fail", exit_code=3, replica="workerpool1-1")))
    assert "workerpool1-1 exited with a non-zero status of 3" in ended(found)[2]
    assert "Replicas low on memory: workerpool0." in ended(judged(job(InjectedFault("oom"))))[2]
    crashing = job(InjectedFault("fail", exit_code=139, replica="workerpool1-0"))
    crashing = restarted(crashing, judged(crashing))
    assert judged(crashing) is None


def test_all_attempts_include_replaced_containers() -> None:
    losing = job()
    losing = restarted(losing, judged(losing, worker=None))
    assert losing.all_replicas == [CHIEF, WORKER, replace(WORKER, attempt=1), OTHER]
