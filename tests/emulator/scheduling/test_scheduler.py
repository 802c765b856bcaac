import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator import logs
from emulator.containers.executor import ReplicaSpec
from emulator.errors import ApiError
from emulator.faults import Fault
from emulator.records import Replica
from tests.emulator.fakes import Clock, Emulator, Fuse, Killed, Machine, use_clock
from tests.emulator.jobs import LOCATION, custom_job_spec, pool, tuning_job_spec
from vertex.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB

CHIEF, WORKER = Replica(0, 0), Replica(1, 0)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    clock = Clock()
    use_clock(clock, monkeypatch)
    return Machine(clock)


@pytest.fixture
def emulator(tmp_path: Path, machine: Machine) -> Emulator:
    return Emulator(tmp_path, machine)


def submit(emulator: Emulator, spec: dict[str, Any] | None = None) -> str:
    created = emulator.jobs.create(CUSTOM_JOB, LOCATION, spec or custom_job_spec())
    return str(created["name"]).rpartition("/")[2]


def submit_study(emulator: Emulator, **fields: Any) -> str:
    created = emulator.jobs.create(HYPERPARAMETER_TUNING_JOB, LOCATION, tuning_job_spec(**fields))
    return str(created["name"]).rpartition("/")[2]


def cancel(emulator: Emulator, job_id: str) -> None:
    emulator.jobs.cancel(emulator.job(job_id).kind, LOCATION, job_id)


def reports(spec: ReplicaSpec, value: float = 0.5) -> int:
    """A trainer that reports `acc` once."""
    folder = next(here for here, there in spec.mounts.items() if there == "/tmp/hypertune")
    line = {"timestamp": 1_700_000_100.0, "trial": "1", "acc": str(value), "global_step": "1"}
    (Path(folder) / "output.metrics").write_text(json.dumps(line) + "\n")
    return 0


def crashes_once(spec: ReplicaSpec) -> int:
    """A trainer that dies of SIGSEGV at its first attempt."""
    return 139 if spec.replica.attempt == 0 else 0


def inject(emulator: Emulator, kind: str, **fields: Any) -> None:
    with emulator.store.transaction() as change:
        change.injections.add(Fault.parse({"kind": kind, **fields}))


def trials(emulator: Emulator, study: str) -> list[tuple[int, str]]:
    with emulator.store.reading() as look:
        return [(trial.number, trial.state) for trial in look.trials(study)]


def log_texts(emulator: Emulator, job: str) -> list[str]:
    with emulator.store.reading() as look:
        return [line.text for line in look.service_lines(job)]


def test_a_job_goes_through_the_service_s_states_and_leaves_its_log_and_no_container(emulator: Emulator) -> None:
    job = submit(emulator)
    assert emulator.job(job).state == "JOB_STATE_QUEUED"
    emulator.look()
    assert emulator.job(job).state == "JOB_STATE_RUNNING"
    emulator.run()
    ended = emulator.job(job)
    assert ended.state == "JOB_STATE_SUCCEEDED"
    assert ended.created < (ended.started or 0) < (ended.ended or 0) <= ended.updated
    assert emulator.machine.containers == {}
    saved = logs.saved(emulator.data.logs, job, CHIEF)
    assert saved is not None
    assert [line.text for line in saved] == ["hello from workerpool0-0"]


def test_the_service_s_lines_come_in_its_order(emulator: Emulator) -> None:
    job = submit(emulator)
    emulator.run()
    assert [text.partition(".")[0] for text in log_texts(emulator, job)] == [
        "Waiting for job to be provisioned",
        "Vertex AI is provisioning job running framework",
        "Vertex AI is setting up this job",
        "Waiting for training program to start",
        "Job is preparing",
        "Job is running",
        "Job completed successfully",
    ]


def test_when_the_primary_is_done_the_other_replicas_are_stopped(emulator: Emulator) -> None:
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run()
    ended = emulator.job(job)
    assert ended.state == "JOB_STATE_SUCCEEDED"
    assert [found["exit_code"] for found in ended.replicas] == [0, 143]


def test_a_replica_is_asked_once_to_stop_and_killed_when_it_does_not(emulator: Emulator) -> None:
    emulator.machine.ignores_sigterm = True
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run(lambda _: emulator.job(job).ending is not None)
    emulator.machine.finish_one = lambda: None  # type: ignore[method-assign]
    emulator.queue.add(job)
    emulator.look()
    emulator.queue.add(job)
    emulator.run()
    assert emulator.machine.signals == ["SIGTERM", "SIGKILL"]
    assert [found["exit_code"] for found in emulator.job(job).replicas] == [0, 137]


def test_a_missing_image_fails_the_job_with_the_image_s_name(emulator: Emulator) -> None:
    job = submit(emulator, custom_job_spec({**pool(), "containerSpec": {"imageUri": "absent:1"}}))
    emulator.run()
    ended = emulator.job(job)
    assert ended.state == "JOB_STATE_FAILED"
    assert ended.ending is not None
    assert "absent:1" in ended.ending.message


def test_the_queue_lets_in_what_the_machine_holds_in_order(emulator: Emulator) -> None:
    first, second, third = (submit(emulator, custom_job_spec(pool(), pool(2))) for _ in range(3))
    emulator.look()
    assert [emulator.job(job).state for job in (first, second, third)] == [
        "JOB_STATE_RUNNING",
        "JOB_STATE_QUEUED",
        "JOB_STATE_QUEUED",
    ]
    emulator.run()
    assert emulator.machine.most_at_once == 3
    ends = [emulator.job(job).ended or 0 for job in (first, second, third)]
    assert ends == sorted(ends)


def test_a_job_that_is_larger_than_the_machine_runs_alone(emulator: Emulator) -> None:
    small, large, late = submit(emulator), submit(emulator, custom_job_spec(pool(), pool(9))), submit(emulator)
    emulator.look()
    assert emulator.job(large).state == "JOB_STATE_QUEUED"
    emulator.run()
    assert {emulator.job(job).state for job in (small, large, late)} == {"JOB_STATE_SUCCEEDED"}
    assert emulator.machine.most_at_once == 10


def test_a_study_shares_the_machine_with_the_jobs_that_come_after_it(emulator: Emulator) -> None:
    emulator.machine.program = lambda spec: reports(spec) if "/tmp/hypertune" in spec.mounts.values() else 0
    study = submit_study(emulator, trials=30, parallel=12)
    emulator.look()
    jobs = [submit(emulator) for _ in range(6)]
    emulator.run(lambda _: all(emulator.job(job).is_terminal for job in jobs))
    ended = [number for number, state in trials(emulator, study) if state == "SUCCEEDED"]
    assert 1 <= len(ended) <= 12
    emulator.run()
    assert len(trials(emulator, study)) == 30


def test_a_flexible_job_gives_up_when_it_has_waited_long_enough_and_another_does_not(emulator: Emulator) -> None:
    patient = submit(emulator, custom_job_spec(pool(), pool(3)))
    scheduling = {"strategy": "FLEX_START", "maxWaitDuration": "60s"}
    accelerator = {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
    flexible = submit(emulator, custom_job_spec(pool() | {"machineSpec": accelerator}, scheduling=scheduling))
    other = submit(emulator)
    emulator.machine.finish_one = lambda: None  # type: ignore[method-assign]
    emulator.run(lambda _: emulator.job(flexible).is_terminal)
    ending = emulator.job(flexible).ending
    assert ending is not None
    assert (ending.state, ending.code) == ("JOB_STATE_FAILED", 8)
    assert 60 <= ((emulator.job(flexible).ended or 0) - emulator.job(flexible).created) / 10**9 < 61
    assert (emulator.job(patient).state, emulator.job(other).state) == ("JOB_STATE_RUNNING", "JOB_STATE_QUEUED")


def test_a_job_that_crashes_once_succeeds_at_its_second_attempt_and_keeps_both_logs(emulator: Emulator) -> None:
    emulator.machine.program = crashes_once
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run(lambda _: emulator.job(job).restarts.retries == 1)
    assert emulator.job(job).state in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING")
    first_start = emulator.job(job).started
    emulator.run()
    emulator.look()
    ended = emulator.job(job)
    assert (ended.state, ended.started) == ("JOB_STATE_SUCCEEDED", first_start)
    assert set(emulator.machine.started) == {(job, replica) for replica in ended.attempts}
    assert [len(list(logs.saved(emulator.data.logs, job, replica) or ())) for replica in ended.attempts] == [1] * 4
    texts = log_texts(emulator, job)
    assert [text.partition(".")[0] for text in texts[-6:]] == [
        "Job is running",
        "The replica workerpool0-0 exited with a non-zero status of 139",
        "Waiting for training program to start",
        "Job is preparing",
        "Job is running",
        "Job completed successfully",
    ]


def test_a_container_that_vanishes_is_replaced_and_the_others_go_on(emulator: Emulator) -> None:
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.look()
    del emulator.machine.containers[job, WORKER]
    emulator.queue.add(job)
    emulator.look()
    again = replace(WORKER, attempt=1)
    assert set(emulator.machine.containers) == {(job, CHIEF), (job, again)}
    assert emulator.machine.containers[job, again].spec.hostname.endswith("-0")
    assert emulator.job(job).state == "JOB_STATE_RUNNING"
    emulator.run()
    assert emulator.job(job).state == "JOB_STATE_SUCCEEDED"
    assert emulator.machine.started[job, CHIEF] == 1


def test_before_a_job_begins_again_all_its_replicas_have_ended_if_need_be_by_force(emulator: Emulator) -> None:
    emulator.machine.program = crashes_once
    emulator.machine.ignores_sigterm = True
    job = submit(emulator, custom_job_spec(pool(), pool(2)))
    emulator.look()
    emulator.machine.end(job, WORKER)
    emulator.queue.add(job)
    emulator.look()
    assert emulator.machine.signals == ["SIGTERM", "SIGTERM"]
    assert emulator.machine.most_at_once == 3
    emulator.machine.clock.advance(6)
    emulator.look()
    assert emulator.machine.signals[2:] == ["SIGKILL", "SIGKILL"]
    emulator.queue.add(job)
    emulator.look()
    assert [replica.attempt for _, replica in emulator.machine.started] == [0, 0, 0, 1, 1, 1]
    assert emulator.machine.most_at_once == 3


def test_a_job_can_be_cancelled_while_it_restarts(emulator: Emulator) -> None:
    emulator.machine.program = crashes_once
    emulator.machine.ignores_sigterm = True
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.look()
    emulator.machine.end(job, WORKER)
    emulator.queue.add(job)
    emulator.look()
    assert emulator.job(job).state == "JOB_STATE_PENDING"
    cancel(emulator, job)
    emulator.run()
    assert emulator.job(job).state == "JOB_STATE_CANCELLED"
    assert {replica.attempt for _, replica in emulator.machine.started} == {0}


def test_a_job_whose_image_is_being_pulled_can_be_cancelled(emulator: Emulator) -> None:
    emulator.machine.prepare = lambda job, image: False  # type: ignore[method-assign]
    job = submit(emulator)
    emulator.look()
    assert emulator.job(job).state == "JOB_STATE_PENDING"
    cancel(emulator, job)
    emulator.look()
    assert emulator.job(job).state == "JOB_STATE_CANCELLED"


def test_a_timeout_counts_through_restarts(emulator: Emulator) -> None:
    inject(emulator, "preempt", after=40.0, times=5)
    job = submit(emulator, custom_job_spec(scheduling={"timeout": "100s", "strategy": "SPOT"}))
    emulator.machine.finish_one = lambda: None  # type: ignore[method-assign]
    emulator.run()
    ended = emulator.job(job)
    assert (ended.restarts.preemptions, ended.ending and ended.ending.code) == (2, 4)
    assert 100 <= ((ended.ended or 0) - (ended.started or 0)) / 10**9 < 110


def test_a_fault_strikes_the_next_job_it_is_for_and_no_other(emulator: Emulator) -> None:
    inject(emulator, "fail", code=13, message="as told", name="b*")
    inject(emulator, "oom", replica="workerpool1-0")
    spared = submit(emulator)
    struck = submit(emulator, {**custom_job_spec(), "displayName": "b-1"})
    spared_too = submit(emulator, {**custom_job_spec(), "displayName": "b-2"})
    distributed = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run()
    endings = [emulator.job(job).ending for job in (spared, struck, spared_too, distributed)]
    assert [(ending.code, ending.message[:33]) for ending in endings if ending] == [
        (0, ""),
        (13, "as told"),
        (0, ""),
        (9, "The replica workerpool1-0 ran out"),
    ]
    with emulator.store.reading() as look:
        assert look.injections.waiting() == []


def test_a_fault_strikes_a_study_s_trials_like_other_jobs(emulator: Emulator) -> None:
    emulator.machine.program = reports
    inject(emulator, "fail", exit_code=4, name="*-trial-2")
    study = submit_study(emulator, trials=3, parallel=1)
    emulator.run()
    assert trials(emulator, study) == [(1, "SUCCEEDED"), (2, "INFEASIBLE"), (3, "SUCCEEDED")]


def test_an_injected_quota_refuses_as_many_requests_as_it_says_and_leaves_no_job(emulator: Emulator) -> None:
    inject(emulator, "quota", count=2)
    accelerator = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
    accelerated = custom_job_spec(pool() | {"machineSpec": {"machineType": "n1-standard-4", **accelerator}})
    wanted = ["custom_model_training_cpus", "custom_model_training_nvidia_t4_gpus"]
    for spec, metric in zip((custom_job_spec(), accelerated), wanted, strict=True):
        with pytest.raises(ApiError) as refused:
            submit(emulator, spec)
        assert (refused.value.http, refused.value.status) == (429, "RESOURCE_EXHAUSTED")
        assert refused.value.message.endswith(f"exceed quota limits: aiplatform.googleapis.com/{metric}")
    submit(emulator)
    with emulator.store.reading() as look:
        assert len(look.unfinished()) == 1


def test_while_docker_is_down_jobs_wait_and_say_why_once_and_go_on_afterwards(emulator: Emulator) -> None:
    emulator.machine.is_down = True
    job = submit(emulator)
    for _ in range(5):
        emulator.look()
        emulator.machine.clock.advance(60)
    assert emulator.job(job).state == "JOB_STATE_PENDING"
    assert len([text for text in log_texts(emulator, job) if "Docker" in text]) == 1
    emulator.machine.is_down = False
    emulator.run()
    assert emulator.job(job).state == "JOB_STATE_SUCCEEDED"


def test_a_step_that_keeps_failing_fails_the_job_and_no_other(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = submit(emulator)
    broken = submit(emulator)
    start = emulator.machine.start

    def breaks(spec: ReplicaSpec) -> None:
        if spec.job == broken:
            raise RuntimeError("a bug")
        start(spec)

    monkeypatch.setattr(emulator.machine, "start", breaks)
    emulator.run()
    assert emulator.job(healthy).state == "JOB_STATE_SUCCEEDED"
    ending = emulator.job(broken).ending
    assert ending is not None
    assert (ending.state, ending.code) == ("JOB_STATE_FAILED", 13)
    assert "a bug" in ending.message


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_by_its_containers(emulator: Emulator) -> None:
    running = submit(emulator, custom_job_spec(pool(), pool(3)))
    queued = submit(emulator)
    emulator.look()
    cancel(emulator, queued)
    cancel(emulator, running)
    assert emulator.job(queued).state == "JOB_STATE_CANCELLED"
    assert emulator.job(running).state == "JOB_STATE_CANCELLING"
    emulator.run()
    ended = emulator.job(running)
    assert ended.state == "JOB_STATE_CANCELLED"
    assert ended.ending is not None
    assert ended.ending.code == 1
    assert (queued, CHIEF) not in emulator.machine.started


def test_a_timeout_ends_the_job(emulator: Emulator) -> None:
    job = submit(emulator, custom_job_spec(scheduling={"timeout": "60s"}))
    emulator.machine.finish_one = lambda: None  # type: ignore[method-assign]
    emulator.run()
    ended = emulator.job(job)
    assert ended.state == "JOB_STATE_FAILED"
    assert 60 <= ((ended.ended or 0) - (ended.started or 0)) / 10**9 < 70


def test_a_study_runs_its_trials_a_few_at_a_time_and_keeps_what_they_measured(emulator: Emulator) -> None:
    emulator.machine.program = reports
    study = submit_study(emulator, trials=5, parallel=2)
    emulator.run()
    assert emulator.job(study).state == "JOB_STATE_SUCCEEDED"
    assert trials(emulator, study) == [(i, "SUCCEEDED") for i in range(1, 6)]
    assert emulator.machine.most_at_once == 2
    shown = emulator.jobs.get(HYPERPARAMETER_TUNING_JOB, LOCATION, study)["trials"][0]
    assert shown["finalMeasurement"]["metrics"] == [{"metricId": "acc", "value": 0.5}]
    assert shown["measurements"] == [shown["finalMeasurement"]]


def test_a_trial_that_reports_nothing_is_infeasible_and_says_that_the_metric_is_missing(emulator: Emulator) -> None:
    study = submit_study(emulator, trials=3, parallel=1)
    emulator.run()
    assert trials(emulator, study) == [(1, "INFEASIBLE")]
    assert emulator.job(study).state == "JOB_STATE_FAILED"
    shown = emulator.jobs.get(HYPERPARAMETER_TUNING_JOB, LOCATION, study)["trials"][0]
    assert "without reporting the metric acc" in shown["infeasibleReason"]


def test_a_cancelled_study_ends_its_trials(emulator: Emulator) -> None:
    study = submit_study(emulator, trials=9, parallel=3)
    emulator.look()
    cancel(emulator, study)
    emulator.run()
    assert emulator.job(study).state == "JOB_STATE_CANCELLED"
    assert trials(emulator, study) == [(i, "INFEASIBLE") for i in (1, 2, 3)]
    assert emulator.machine.containers == {}


def test_a_grid_that_is_used_up_ends_the_study(emulator: Emulator) -> None:
    emulator.machine.program = reports
    spec = tuning_job_spec()["studySpec"] | {
        "algorithm": "GRID_SEARCH",
        "parameters": [{"parameterId": "kind", "categoricalValueSpec": {"values": ["a", "b"]}}],
    }
    study = submit_study(emulator, trials=9, parallel=3, studySpec=spec)
    emulator.run()
    assert emulator.job(study).state == "JOB_STATE_SUCCEEDED"
    assert len(trials(emulator, study)) == 2


def test_deleting_a_job_removes_its_files_and_leaves_its_outputs(emulator: Emulator) -> None:
    job = submit(emulator, custom_job_spec(baseOutputDirectory={"outputUriPrefix": "gs://my-bucket/run"}))
    emulator.run()
    emulator.jobs.delete(CUSTOM_JOB, LOCATION, job)
    emulator.look()
    assert not list(emulator.data.jobs_with_files())
    assert (emulator.data.buckets / "my-bucket" / "run" / "model").is_dir()


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
    emulator.look()
    cancel(emulator, job)
    return [job]


def a_study(emulator: Emulator) -> list[str]:
    emulator.machine.program = reports
    return [submit_study(emulator, trials=3, parallel=2)]


def a_study_cancelled_while_it_runs(emulator: Emulator) -> list[str]:
    study = submit_study(emulator, trials=5, parallel=2)
    emulator.look()
    cancel(emulator, study)
    return [study]


def a_job_that_crashes_once(emulator: Emulator) -> list[str]:
    emulator.machine.program = crashes_once
    return [submit(emulator, custom_job_spec(pool(), pool()))]


def a_job_that_loses_a_worker(emulator: Emulator) -> list[str]:
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.look()
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
    emulator.look()
    emulator.machine.end(job, WORKER)
    emulator.queue.add(job)
    emulator.look()
    cancel(emulator, job)
    return [job]


def a_job_deleted(emulator: Emulator) -> list[str]:
    kept, gone = submit(emulator), submit(emulator)
    emulator.run()
    emulator.jobs.delete(CUSTOM_JOB, LOCATION, gone)
    return [kept]


def outcome(emulator: Emulator, jobs: list[str]) -> list[Any]:
    """All that must not depend on when the process was killed."""
    with emulator.store.reading() as look:
        found = [look.job(job) for job in jobs]
        studies = [
            [(trial.number, trial.state, trial.parameters["x"] is not None) for trial in look.trials(job)]
            for job in jobs
        ]
        orphans = look.unfinished()
    return [
        [(job.state, job.ending.code if job.ending else None) for job in found if job is not None],
        studies,
        orphans,
        sorted((place[1].task, place[1].attempt) for place in emulator.machine.started.elements()),
        emulator.machine.containers,
        len(list(emulator.data.jobs_with_files())),
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
        a_study,
        a_study_cancelled_while_it_runs,
        a_job_deleted,
    ],
)
def test_killed_at_any_step_the_next_process_comes_to_the_same_end(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(folder: Path, steps: int | None) -> tuple[list[Any], bool]:
        clock = Clock()
        use_clock(clock, monkeypatch)
        emulator = Emulator(folder, Machine(clock))
        jobs = scenario(emulator)
        emulator.machine.fuse.left = steps
        try:
            emulator.run()
            emulator.look()
            was_killed = False
        except Killed:
            was_killed = True
            emulator.machine.fuse.left = None
            emulator.store.close()
            emulator.start()
            emulator.run()
            emulator.look()
        result = outcome(emulator, jobs)
        emulator.store.close()
        return result, was_killed

    undisturbed, _ = run(tmp_path / "undisturbed", None)
    steps = 0
    while True:
        result, was_killed = run(tmp_path / str(steps), steps)
        assert result == undisturbed, f"killed at step {steps}"
        if not was_killed:
            break
        steps += 1
    assert steps > 1


def test_a_kill_during_a_restart_does_no_harm_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    use_clock(clock, monkeypatch)
    emulator = Emulator(tmp_path, Machine(clock))
    jobs = a_study(emulator)
    kills = 0
    for steps in range(1, 400):
        emulator.machine.fuse.left = steps % 17
        try:
            emulator.run()
            emulator.look()
            break
        except Killed:
            kills += 1
            emulator.store.close()
            emulator.machine.fuse = Fuse()
            emulator.start()
    assert kills > 10
    assert trials(emulator, jobs[0]) == [(1, "SUCCEEDED"), (2, "SUCCEEDED"), (3, "SUCCEEDED")]
    assert set(emulator.machine.started.values()) == {1}
    assert emulator.machine.containers == {}
