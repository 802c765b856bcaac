"""`vertex-emulator inject second-start`: a container that fails its job starts again before the tear-down."""

from dataclasses import replace

import pytest

from tests.vertex_emulator.fakes import Emulator, Machine
from tests.vertex_emulator.jobs import custom_job, custom_job_spec, pool
from tests.vertex_emulator.scheduling.steps import CHIEF, WORKER, cancel, inject, log_texts, submit
from vertex_emulator.database.records import FAILED, Ending, Job, Replica, RestartHistory
from vertex_emulator.faults import InjectedFault
from vertex_emulator.replicas.containers import ReplicaStatus
from vertex_emulator.scheduling.outcome import Outcome, Restart, SecondStart, decide

SECOND = 10**9
RUNS = ReplicaStatus("running", started=2 * SECOND)
EXITED = ReplicaStatus("exited", 1, started=2 * SECOND, finished=10 * SECOND)
RUNS_AGAIN = ReplicaStatus("running", started=81 * SECOND)


def second_start(**fields: float | str) -> InjectedFault:
    return InjectedFault.parse({"kind": "second-start", **fields})


def judge(job: Job, now_s: float, chief: ReplicaStatus | None = RUNS, worker: ReplicaStatus = RUNS) -> Outcome:
    statuses = {CHIEF: chief, WORKER: worker}
    present = {replica: status for replica, status in statuses.items() if status}
    return decide(job, present, int(now_s * SECOND), lambda replica: "")


def job_under(fault: InjectedFault, **scheduling: str) -> Job:
    return custom_job(custom_job_spec(pool(), pool(), scheduling=scheduling), fault=fault)


def with_failure(job: Job, replica: Replica = CHIEF) -> Job:
    """The job after the first exit of a replica, with code 1 at second 10."""
    plan = judge(job, 10.1, **{"chief" if replica == CHIEF else "worker": EXITED})
    assert isinstance(plan, Restart), plan
    assert not plan.whole_job
    assert f"{replica.task_name} exited with a non-zero status of 1. As injected" in plan.log_message
    return replace(job, restarts=plan.history)


def test_container_waits_then_starts_then_runs() -> None:
    job = with_failure(job_under(second_start()))
    assert judge(job, 79.9, chief=EXITED) is None
    start = judge(job, 80, chief=EXITED)
    assert isinstance(start, SecondStart)
    assert start.replica == CHIEF
    assert judge(job, 110.9, chief=RUNS_AGAIN) is None
    ending = judge(job, 111, chief=RUNS_AGAIN)
    plain = judge(job_under(InjectedFault("debug")), 111, chief=EXITED)
    assert isinstance(ending, Ending)
    assert ending == plain == replace(start.ending_if_impossible, at=ending.at)
    assert (ending.state, ending.code) == (FAILED, 3)


@pytest.mark.parametrize(
    "chief", [None, replace(RUNS_AGAIN, phase="exited", finished=82 * SECOND), replace(RUNS_AGAIN, phase="exited")]
)
def test_second_exit_or_removal_tears_down_at_once(chief: ReplicaStatus | None) -> None:
    job = with_failure(job_under(second_start()))
    ending = judge(job, 82.5, chief=chief)
    assert isinstance(ending, Ending)
    assert "workerpool0-0 exited with a non-zero status of 1." in ending.message


def test_other_replicas_do_not_matter_any_more() -> None:
    job = with_failure(job_under(second_start(after=1, run_for=5)), WORKER)
    assert judge(job, 10.5, chief=replace(EXITED, exit_code=0), worker=EXITED) is None
    assert judge(job, 10.5, chief=None, worker=EXITED) is None
    assert judge(job, 12, chief=EXITED, worker=replace(RUNS, started=11 * SECOND)) is None
    ending = judge(job, 16, chief=EXITED, worker=replace(RUNS, started=11 * SECOND))
    assert isinstance(ending, Ending)
    assert "workerpool1-0 exited" in ending.message


def test_timeout_ends_wait() -> None:
    job = with_failure(job_under(second_start(), timeout="20s"))
    assert judge(job, 21.9, chief=EXITED) is None
    ending = judge(job, 22, chief=EXITED)
    assert isinstance(ending, Ending)
    assert ending.message == "The job exceeded its timeout of 20s."


def test_only_permanent_failures_of_replica_count() -> None:
    elsewhere = job_under(second_start(replica="workerpool1-0"))
    assert isinstance(judge(elsewhere, 11, chief=EXITED), Ending)
    plan = judge(job_under(second_start()), 11, chief=replace(EXITED, exit_code=139))
    assert isinstance(plan, Restart)
    assert plan.history.unnoticed_failure is None
    success = judge(job_under(second_start()), 11, chief=replace(EXITED, exit_code=0))
    assert isinstance(success, Ending)
    assert success.code == 0
    without_retries = job_under(second_start(), disableRetries="true")
    assert isinstance(judge(without_retries, 11, chief=replace(EXITED, exit_code=139)), Restart)


def begin(emulator: Emulator, **fields: float) -> str:
    """Run a job of two replicas until its worker has exited with 1."""
    inject(emulator, "second-start", **fields)
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run_ready_steps()
    emulator.machine.end(job, WORKER, 1)
    emulator.queue.add(job)
    emulator.run_ready_steps()
    return job


def pass_time(emulator: Emulator, job: str, seconds: float = 0.0) -> None:
    emulator.machine.clock.advance(seconds)
    emulator.run_ready_steps()
    emulator.queue.add(job)  # as the exits of containers do
    emulator.run_ready_steps()


def test_job_runs_on_until_its_late_teardown(emulator: Emulator) -> None:
    job = begin(emulator)
    pass_time(emulator, job, 69)
    assert emulator.machine.started[job, WORKER] == 1
    pass_time(emulator, job, 2)
    assert emulator.machine.started[job, WORKER] == 2
    assert (emulator.job(job).state, emulator.job(job).ending) == ("JOB_STATE_RUNNING", None)
    assert emulator.machine.signals == []
    pass_time(emulator, job, 31)
    assert emulator.machine.signals == ["SIGTERM", "SIGTERM"]
    ended = emulator.job(job)
    assert ended.ending is not None
    assert (ended.state, ended.ending.code) == (FAILED, 3)
    assert "The replica workerpool1-0 exited with a non-zero status of 1." in ended.ending.message
    assert emulator.machine.started == {(job, CHIEF): 1, (job, WORKER): 2}
    [line] = [text for text in log_texts(emulator, job) if "in place 70 s later" in text]
    assert line.startswith("The replica workerpool1-0 exited with a non-zero status of 1. As injected")


def test_container_that_cannot_start_again_ends_its_job(
    emulator: Emulator, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begin(emulator, after=5)
    monkeypatch.setattr(machine, "restart", lambda job_id, replica: False)
    pass_time(emulator, job, 6)
    assert emulator.job(job).state == FAILED


def test_cancellation_does_not_wait_for_teardown(emulator: Emulator) -> None:
    job = begin(emulator)
    cancel(emulator, job)
    pass_time(emulator, job)
    assert emulator.job(job).state == "JOB_STATE_CANCELLED"
    assert emulator.machine.started[job, WORKER] == 1


def test_emulator_that_was_down_starts_it_late(emulator: Emulator) -> None:
    job = begin(emulator, after=5, run_for=5)
    emulator.database.close()
    emulator.machine.clock.advance(600)
    emulator.start()
    emulator.run_ready_steps()
    assert emulator.machine.started[job, WORKER] == 2
    assert emulator.job(job).restarts != RestartHistory()
    pass_time(emulator, job, 4)
    assert emulator.job(job).state == "JOB_STATE_RUNNING"
    pass_time(emulator, job, 2)
    assert emulator.job(job).state == FAILED


def test_restarts_of_earlier_checkout_are_read(emulator: Emulator) -> None:
    job = submit(emulator)
    with emulator.database.write() as transaction:
        transaction.rows._connection.execute("UPDATE jobs SET restarts = ?", ('{"retries": 1, "attempts": {}}',))
    assert emulator.job(job).restarts == RestartHistory(retries=1)
