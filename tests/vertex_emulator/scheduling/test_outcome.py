from dataclasses import replace
from typing import Any

import pytest

from tests.vertex_emulator.jobs import LOCATION, custom_job, custom_job_spec, pool
from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Job, Replica
from vertex_emulator.faults import InjectedFault
from vertex_emulator.replicas.containers import ReplicaStatus
from vertex_emulator.scheduling.outcome import Outcome, Restart, decide

CHIEF, WORKER, OTHER = Replica(0, 0), Replica(1, 0), Replica(1, 1)
RUNS = ReplicaStatus("running", started=2 * 10**9)
SECOND = 10**9


def exited(code: int, at: int = 3 * SECOND, out_of_memory: bool = False) -> ReplicaStatus:
    return ReplicaStatus("exited", code, out_of_memory, 2 * SECOND, at)


def job(fault: InjectedFault | None = None, **scheduling: Any) -> Job:
    return custom_job(custom_job_spec(pool(), pool(2), scheduling=scheduling), fault=fault)


def judged(job: Job, now: int = 4 * SECOND, **statuses: ReplicaStatus | None) -> Outcome:
    """What becomes of a job whose replicas run, but for those named; None is a container that is gone."""
    named = {"chief": job.current_replicas[0], "worker": job.current_replicas[1], "other": job.current_replicas[2]}
    found = {replica: statuses.get(name, RUNS) for name, replica in named.items()}
    statuses = {replica: status for replica, status in found.items() if status}
    return decide(job, statuses, now, "http://x")


def restarted(job: Job, found: Outcome) -> Job:
    """The job as it is once the restart is over."""
    assert isinstance(found, Restart), found
    assert found.history.restarting_since is not None
    return replace(job, restarts=replace(found.history, restarting_since=None))


def ended(found: Outcome) -> tuple[str, int, str]:
    assert isinstance(found, Ending), found
    return (found.state, found.code, found.message)


@pytest.mark.parametrize("code", [6, 134, 11, 139])
def test_crash_restarts_whole_job_three_times(code: int) -> None:
    crashing = job()
    for retry in (1, 2, 3):
        found = judged(crashing, worker=exited(code))
        assert isinstance(found, Restart)
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
def test_lost_worker_restarts_alone_five_times(loss: ReplicaStatus | None) -> None:
    losing = job()
    for restart in range(1, 6):
        found = judged(losing, worker=loss)
        assert isinstance(found, Restart)
        assert not found.whole_job
        assert f"restart {restart} of 5" in found.log_message
        losing = restarted(losing, found)
        assert [replica.attempt for replica in losing.current_replicas] == [0, restart, 0]
    found = judged(losing, worker=loss)
    assert isinstance(found, Restart)
    assert found.whole_job
    losing = restarted(losing, found)
    assert [replica.attempt for replica in losing.current_replicas] == [1, 6, 1]
    assert losing.restarts.workers == {}


def test_endless_losses_are_internal_error() -> None:
    losing = job()
    restarts = 0
    while isinstance(found := judged(losing, worker=None), Restart):
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
    while isinstance(found := judged(losing, worker=None), Restart):
        assert found.whole_job
        losing = restarted(losing, found)
        restarts += 1
        assert [replica.attempt for replica in losing.current_replicas] == [restarts] * 3
    assert restarts == 4 * 5 + 3


def test_without_retries_loss_or_crash_is_final() -> None:
    strict = job(disableRetries=True, restartJobOnWorkerRestart=True, strategy="SPOT")
    assert ended(judged(strict, worker=None))[:2] == (FAILED, 13)
    assert ended(judged(strict, worker=exited(139)))[:2] == (FAILED, 3)
    preempted = replace(strict, fault=InjectedFault("preempt"))
    assert ended(judged(preempted))[:2] == (FAILED, 8)


def test_earlier_attempts_are_not_judged() -> None:
    losing = job()
    losing = restarted(losing, judged(losing, worker=None))
    statuses = {CHIEF: RUNS, WORKER: exited(1), replace(WORKER, attempt=1): RUNS, OTHER: RUNS}
    assert decide(losing, statuses, 4 * SECOND, "http://x") is None


def test_primary_success_outranks_losses_and_later_crashes() -> None:
    assert ended(judged(job(), chief=exited(0), worker=None))[0] == SUCCEEDED
    assert ended(judged(job(), chief=exited(0), worker=exited(139, at=4 * SECOND)))[0] == SUCCEEDED
    found = judged(job(), chief=exited(0, at=4 * SECOND), worker=exited(139))
    assert isinstance(found, Restart)


def test_preempted_spot_job_restarts_six_times() -> None:
    spot = job(InjectedFault("preempt", times=7), strategy="SPOT")
    for restart in range(1, 7):
        found = judged(spot)
        assert isinstance(found, Restart)
        assert found.whole_job
        assert found.log_message.startswith("STOCKOUT: Resources are insufficient in region: us-central1.")
        assert f"restart {restart} of 6" in found.log_message
        spot = restarted(spot, found)
    state, code, message = ended(judged(spot))
    assert (state, code) == (FAILED, 8)
    assert "Resources are insufficient in region: us-central1." in message


def test_another_job_preemption_ends_it() -> None:
    assert ended(judged(job(InjectedFault("preempt"))))[:2] == (FAILED, 8)


def test_fault_respects_its_count_and_its_time() -> None:
    spot = job(InjectedFault("preempt", after=5), strategy="SPOT")
    assert judged(spot, now=7 * SECOND - 1) is None
    spot = restarted(spot, judged(spot, now=7 * SECOND))
    assert judged(spot, now=9 * SECOND) is None


def test_timed_fault_spares_what_ended_before_it() -> None:
    late = job(InjectedFault("fail", code=13, message="as told", after=2))
    assert ended(judged(late, chief=exited(0), now=9 * SECOND))[0] == SUCCEEDED
    assert ended(judged(late, chief=exited(0, at=8 * SECOND), now=9 * SECOND)) == (FAILED, 13, "as told")


def test_injected_exit_counts_like_real_one() -> None:
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


DISTRIBUTED = custom_job_spec(pool(), pool())
NUMBER = LOCATION.project_number
HINT = (
    "To find out more about why your job exited please check the logs: https://console.cloud.google.com/logs/viewer"
    f"?project={NUMBER}&resource=ml_job%2Fjob_id%2F42&advancedFilter="
    "resource.type%3D%22ml_job%22%0Aresource.labels.job_id%3D%2242%22"
)
PACKAGE = {"executorImageUri": "python:3", "packageUris": ["gs://b/p.tar.gz"], "pythonModule": "trainer.task"}


def unread(replica: Replica) -> str:
    raise AssertionError(f"the log of {replica.task_name} is not needed")


def ending(job: Job, statuses: dict[Replica, ReplicaStatus], now: int = 3 * SECOND, traceback: str = "") -> Ending:
    found = decide(job, statuses, now, lambda replica: traceback)
    assert isinstance(found, Ending)
    return found


def verdict(statuses: dict[Replica, ReplicaStatus]) -> tuple[str, int] | None:
    found = decide(custom_job(DISTRIBUTED), statuses, 3 * SECOND, unread)
    assert not isinstance(found, Restart)
    return None if found is None else (found.state, found.code)


def test_job_runs_on_when_worker_succeeds() -> None:
    assert verdict({CHIEF: RUNS, WORKER: RUNS}) is None
    assert verdict({CHIEF: RUNS, WORKER: exited(0, 5)}) is None


def test_primary_success_is_job() -> None:
    assert verdict({CHIEF: exited(0, 5), WORKER: RUNS}) == (SUCCEEDED, 0)


def test_any_replica_failure_fails_job() -> None:
    assert verdict({CHIEF: RUNS, WORKER: exited(1, 5)}) == (FAILED, 3)


def test_what_ended_first_decides_however_late_we_look() -> None:
    assert verdict({CHIEF: exited(0, 5), WORKER: exited(1, 6)}) == (SUCCEEDED, 0)
    assert verdict({CHIEF: exited(0, 6), WORKER: exited(1, 5)}) == (FAILED, 3)


def test_failure_reads_like_service() -> None:
    found = ending(custom_job(), {CHIEF: exited(17, 5)}, traceback="Traceback of a container")
    assert found.message == f"The replica workerpool0-0 exited with a non-zero status of 17. {HINT}"
    trial = custom_job(id="4", study="42", trial=1)
    assert ending(trial, {CHIEF: exited(17, 5)}).message == found.message


def test_package_failure_shows_its_traceback() -> None:
    packages = custom_job(custom_job_spec({"machineSpec": {}, "pythonPackageSpec": PACKAGE}))
    traceback = "Traceback (most recent call last):\nValueError: no"
    assert ending(packages, {CHIEF: exited(1, 5)}, traceback=traceback).message == (
        "The replica workerpool0-0 exited with a non-zero status of 1. Termination reason: Error. \n"
        f"Traceback (most recent call last):\nValueError: no\n\n{HINT}"
    )
    found = ending(packages, {CHIEF: exited(1, 5)})
    assert found.message == f"The replica workerpool0-0 exited with a non-zero status of 1. {HINT}"


def test_pool_without_memory_is_named() -> None:
    advice = "Specify a machine with larger memory and try again."
    found = ending(custom_job(), {CHIEF: exited(137, 5, out_of_memory=True)})
    assert (found.code, found.message) == (8, f"Replicas low on memory: workerpool0. {advice}")
    found = ending(custom_job(DISTRIBUTED), {CHIEF: RUNS, WORKER: exited(1, 5, out_of_memory=True)})
    assert (found.code, found.message) == (8, f"Replicas low on memory: workerpool1. {advice}")


def test_timeout_counts_from_start() -> None:
    job = custom_job(custom_job_spec(scheduling={"timeout": "10s"}))
    assert decide(job, {CHIEF: RUNS}, 12 * SECOND - 1, unread) is None
    found = ending(job, {CHIEF: RUNS}, 12 * SECOND)
    assert (found.state, found.code) == (FAILED, 4)
    assert "10s" in found.message
