from tests.vertex_emulator.jobs import LOCATION, custom_job, custom_job_spec, pool
from vertex_emulator.database.records import FAILED, SUCCEEDED, Ending, Job, Replica
from vertex_emulator.replicas.executor_protocol import ReplicaStatus
from vertex_emulator.scheduling.ending_or_restart import decide_ending_or_restart_or_none
from vertex_emulator.scheduling.restart_rules import RestartPlan

CHIEF, WORKER = Replica(0, 0), Replica(1, 0)
RUNS = ReplicaStatus("running", started=1)
SECOND = 10**9
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


def exited(code: int, at: int, out_of_memory: bool = False) -> ReplicaStatus:
    return ReplicaStatus("exited", code, out_of_memory, 1, at)


def ending(job: Job, statuses: dict[Replica, ReplicaStatus], now: int = 3 * SECOND, traceback: str = "") -> Ending:
    found = decide_ending_or_restart_or_none(job, statuses, now, lambda replica: traceback)
    assert isinstance(found, Ending)
    return found


def judged(statuses: dict[Replica, ReplicaStatus]) -> tuple[str, int] | None:
    found = decide_ending_or_restart_or_none(custom_job(DISTRIBUTED), statuses, 3 * SECOND, unread)
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
    found = ending(custom_job(), {CHIEF: exited(17, 5)}, traceback="Traceback of a container")
    assert found.message == f"The replica workerpool0-0 exited with a non-zero status of 17. {HINT}"
    trial = custom_job(id="4", study="42", trial=1)
    assert ending(trial, {CHIEF: exited(17, 5)}).message == found.message


def test_a_package_s_failure_shows_its_traceback() -> None:
    packages = custom_job(custom_job_spec({"machineSpec": {}, "pythonPackageSpec": PACKAGE}))
    traceback = "Traceback (most recent call last):\nValueError: no"
    assert ending(packages, {CHIEF: exited(1, 5)}, traceback=traceback).message == (
        "The replica workerpool0-0 exited with a non-zero status of 1. Termination reason: Error. \n"
        f"Traceback (most recent call last):\nValueError: no\n\n{HINT}"
    )
    found = ending(packages, {CHIEF: exited(1, 5)})
    assert found.message == f"The replica workerpool0-0 exited with a non-zero status of 1. {HINT}"


def test_the_pool_without_memory_is_named() -> None:
    advice = "Specify a machine with larger memory and try again."
    found = ending(custom_job(), {CHIEF: exited(137, 5, out_of_memory=True)})
    assert (found.code, found.message) == (8, f"Replicas low on memory: workerpool0. {advice}")
    found = ending(custom_job(DISTRIBUTED), {CHIEF: RUNS, WORKER: exited(1, 5, out_of_memory=True)})
    assert (found.code, found.message) == (8, f"Replicas low on memory: workerpool1. {advice}")


def test_the_timeout_counts_from_the_start() -> None:
    job = custom_job(custom_job_spec(scheduling={"timeout": "10s"}))
    assert decide_ending_or_restart_or_none(job, {CHIEF: RUNS}, 12 * SECOND - 1, unread) is None
    found = ending(job, {CHIEF: RUNS}, 12 * SECOND)
    assert (found.state, found.code) == (FAILED, 4)
    assert "10s" in found.message
