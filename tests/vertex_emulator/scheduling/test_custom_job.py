from dataclasses import replace

import pytest

from tests.vertex_emulator.fakes import Emulator
from tests.vertex_emulator.jobs import custom_job_spec, pool
from tests.vertex_emulator.scheduling.steps import (
    CHIEF,
    WORKER,
    cancel,
    crashes_once,
    inject,
    log_texts,
    reports,
    submit,
    submit_study,
    trials,
)
from vertex_emulator.errors import ApiError
from vertex_emulator.replicas.logs import SavedLog


def test_restarted_job_succeeds_and_keeps_both_logs(emulator: Emulator) -> None:
    emulator.machine.program = crashes_once
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run(lambda _: emulator.job(job).restarts.retries == 1)
    assert emulator.job(job).state in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING")
    first_start = emulator.job(job).started
    emulator.run()
    emulator.run_ready_steps()
    ended = emulator.job(job)
    assert (ended.state, ended.started) == ("JOB_STATE_SUCCEEDED", first_start)
    assert set(emulator.machine.started) == {(job, replica) for replica in ended.all_replicas}
    assert [len(list(SavedLog(emulator.data.logs, job, replica).read() or ())) for replica in ended.all_replicas] == [
        1
    ] * 4
    texts = log_texts(emulator, job)
    assert [text.partition(".")[0] for text in texts[-8:]] == [
        "Job is running",
        "The replica workerpool0-0 exited with a non-zero status of 139",
        "Waiting for training program to start",
        "Job is preparing",
        "Job is running",
        "Tearing down training program",
        "Finished tearing down training program",
        "Job completed successfully",
    ]


def test_vanished_container_is_replaced_alone(emulator: Emulator) -> None:
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run_ready_steps()
    del emulator.machine.containers[job, WORKER]
    emulator.queue.add(job)
    emulator.run_ready_steps()
    again = replace(WORKER, attempt=1)
    assert set(emulator.machine.containers) == {(job, CHIEF), (job, again)}
    spec = emulator.machine.containers[job, again].spec
    assert spec.cluster_name in spec.peers and spec.hostname.startswith(f"{spec.cluster_name}-")
    assert emulator.job(job).state == "JOB_STATE_RUNNING"
    emulator.run()
    assert emulator.job(job).state == "JOB_STATE_SUCCEEDED"
    assert emulator.machine.started[job, CHIEF] == 1


def test_all_replicas_end_before_job_restarts(emulator: Emulator) -> None:
    emulator.machine.program = crashes_once
    emulator.machine.ignores_sigterm = True
    job = submit(emulator, custom_job_spec(pool(), pool(2)))
    emulator.run_ready_steps()
    emulator.machine.end(job, WORKER)
    emulator.queue.add(job)
    emulator.run_ready_steps()
    assert emulator.machine.signals == ["SIGTERM", "SIGTERM"]
    assert emulator.machine.most_at_once == 3
    emulator.machine.clock.advance(6)
    emulator.run_ready_steps()
    assert emulator.machine.signals[2:] == ["SIGKILL", "SIGKILL"]
    emulator.queue.add(job)
    emulator.run_ready_steps()
    assert [replica.attempt for _, replica in emulator.machine.started] == [0, 0, 0, 1, 1, 1]
    assert emulator.machine.most_at_once == 3


def test_job_can_be_cancelled_while_it_restarts(emulator: Emulator) -> None:
    emulator.machine.program = crashes_once
    emulator.machine.ignores_sigterm = True
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run_ready_steps()
    emulator.machine.end(job, WORKER)
    emulator.queue.add(job)
    emulator.run_ready_steps()
    assert emulator.job(job).state == "JOB_STATE_PENDING"
    cancel(emulator, job)
    emulator.run()
    assert emulator.job(job).state == "JOB_STATE_CANCELLED"
    assert {replica.attempt for _, replica in emulator.machine.started} == {0}


def test_timeout_counts_through_restarts(emulator: Emulator) -> None:
    inject(emulator, "preempt", after=40.0, times=5)
    job = submit(emulator, custom_job_spec(scheduling={"timeout": "100s", "strategy": "SPOT"}))
    emulator.machine.finish_one = lambda: None  # type: ignore[method-assign]
    emulator.run()
    ended = emulator.job(job)
    assert (ended.restarts.preemptions, ended.ending and ended.ending.code) == (2, 4)
    assert 100 <= ((ended.ended or 0) - (ended.started or 0)) / 10**9 < 110


def test_fault_strikes_only_next_matching_job(emulator: Emulator) -> None:
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
        (8, "Replicas low on memory: workerpoo"),
    ]
    with emulator.database.read() as transaction:
        assert transaction.faults.pending() == []


def test_fault_strikes_trial_like_any_job(emulator: Emulator) -> None:
    emulator.machine.program = reports
    inject(emulator, "fail", exit_code=4, name="*-trial-2")
    study = submit_study(emulator, trials=3, parallel=1)
    emulator.run()
    assert trials(emulator, study) == [(1, "SUCCEEDED"), (2, "INFEASIBLE"), (3, "SUCCEEDED")]


def test_injected_quota_rejects_its_count_of_requests(emulator: Emulator) -> None:
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
    with emulator.database.read() as transaction:
        assert len(transaction.jobs.unfinished()) == 1


def test_stockout_fails_jobs_with_that_machine_type(emulator: Emulator) -> None:
    inject(emulator, "stockout", machine_type="a2-highgpu-1g", after=30.0)
    spared = submit(emulator)
    accelerator = {"acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1}
    struck = submit(
        emulator, custom_job_spec(pool() | {"machineSpec": {"machineType": "a2-highgpu-1g", **accelerator}})
    )
    emulator.run()
    assert emulator.job(spared).state == "JOB_STATE_SUCCEEDED"
    job = emulator.job(struck)
    assert job.ending and (job.ending.code, job.started) == (8, None)
    assert job.ending.message.startswith("Resources are insufficient in region: us-central1.")
    assert (job.ended or 0) - job.created >= 30 * 10**9
