from tests.vertex_emulator.jobs import custom_job, custom_job_spec, pool
from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Job, Replica
from vertex_emulator.replicas.executor_protocol import ReplicaStatus
from vertex_emulator.scheduling.custom_job_outcome import decide_ending_or_restart
from vertex_emulator.scheduling.restart_rules import RestartPlan

CHIEF, WORKER = Replica(0, 0), Replica(1, 0)
RUNS = ReplicaStatus("running", started=1)
SECOND = 10**9
DISTRIBUTED = custom_job_spec(pool(), pool())
LINK = "http://127.0.0.1:1/jobs/customJobs/42"


def exited(code: int, at: int, out_of_memory: bool = False) -> ReplicaStatus:
    return ReplicaStatus("exited", code, out_of_memory, 1, at)


def ending(job: Job, statuses: dict[Replica, ReplicaStatus], now: int = 3 * SECOND) -> Ending:
    found = decide_ending_or_restart(job, statuses, now, LINK)
    assert isinstance(found, Ending)
    return found


def judged(statuses: dict[Replica, ReplicaStatus]) -> tuple[str, int] | None:
    found = decide_ending_or_restart(custom_job(DISTRIBUTED), statuses, 3 * SECOND, LINK)
    assert not isinstance(found, RestartPlan)
    return None if found is None else (found.state, found.code)


def test_a_job_runs_on_when_a_worker_succeeds() -> None:
    assert judged({CHIEF: RUNS, WORKER: RUNS}) is None
    assert judged({CHIEF: RUNS, WORKER: exited(0, 5)}) is None


def test_the_primary_s_success_is_the_job_s() -> None:
    assert judged({CHIEF: exited(0, 5), WORKER: RUNS}) == (SUCCEEDED, 0)


def test_any_replica_s_failure_fails_the_job() -> None:
    assert judged({CHIEF: RUNS, WORKER: exited(1, 5)}) == (FAILED, 3)


def test_what_ended_first_decides_however_late_we_look() -> None:
    assert judged({CHIEF: exited(0, 5), WORKER: exited(1, 6)}) == (SUCCEEDED, 0)
    assert judged({CHIEF: exited(0, 6), WORKER: exited(1, 5)}) == (FAILED, 3)


def test_a_failure_reads_like_the_service_s() -> None:
    assert ending(custom_job(), {CHIEF: exited(17, 5)}).message == (
        "The replica workerpool0-0 exited with a non-zero status of 17. Termination reason: Error. "
        f"To find out more about why your job exited please check the logs: {LINK}"
    )


def test_a_replica_out_of_memory_says_so() -> None:
    found = ending(custom_job(), {CHIEF: exited(137, 5, out_of_memory=True)})
    assert found.code == 9
    assert "workerpool0-0 ran out of memory and exited with a non-zero status of 137." in found.message


def test_the_timeout_counts_from_the_start() -> None:
    job = custom_job(custom_job_spec(scheduling={"timeout": "10s"}))
    assert decide_ending_or_restart(job, {CHIEF: RUNS}, 12 * SECOND - 1, LINK) is None
    found = ending(job, {CHIEF: RUNS}, 12 * SECOND)
    assert (found.state, found.code) == (FAILED, 4)
    assert "10s" in found.message
