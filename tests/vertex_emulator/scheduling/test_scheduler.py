import threading

import pytest

from tests.vertex_emulator.fakes import Emulator
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, pool, tuning_job_spec
from tests.vertex_emulator.running import PATIENCE_SECONDS
from tests.vertex_emulator.scheduling.steps import (
    CHIEF,
    cancel,
    inject,
    log_texts,
    mounted,
    reports,
    submit,
    submit_study,
    trials,
)
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.replicas.logs import SavedLog
from vertex_emulator.replicas.spec import ReplicaSpec
from vertex_emulator.scheduling.scheduler import WorkQueue


def test_job_passes_through_service_states(emulator: Emulator) -> None:
    job = submit(emulator)
    assert emulator.job(job).state == "JOB_STATE_PENDING"
    emulator.run_ready_steps()
    assert emulator.job(job).state == "JOB_STATE_RUNNING"
    emulator.run()
    ended = emulator.job(job)
    assert ended.state == "JOB_STATE_SUCCEEDED"
    assert ended.created < (ended.started or 0) < (ended.ended or 0) <= ended.updated
    assert emulator.machine.containers == {}
    saved = SavedLog(emulator.data.logs, job, CHIEF).read()
    assert saved is not None
    assert [line.text for line in saved] == ["hello from workerpool0-0"]


def test_service_lines_come_in_its_order(emulator: Emulator) -> None:
    job = submit(emulator)
    emulator.run()
    assert [text.partition(".")[0] for text in log_texts(emulator, job)] == [
        "Waiting for job to be provisioned",
        "Vertex AI is provisioning job running framework",
        "Vertex AI is setting up this job",
        "Waiting for training program to start",
        "Job is preparing",
        "Job is running",
        "Tearing down training program",
        "Finished tearing down training program",
        "Job completed successfully",
    ]


def test_create_answers_pending_even_without_room(emulator: Emulator) -> None:
    first, second = (emulator.jobs.create(CUSTOM_JOB, LOCATION, custom_job_spec(pool(), pool(3))) for _ in range(2))
    assert (first["state"], second["state"]) == ("JOB_STATE_PENDING", "JOB_STATE_PENDING")
    states = [emulator.job(job["name"].rpartition("/")[2]).state for job in (first, second)]
    assert states == ["JOB_STATE_PENDING", "JOB_STATE_QUEUED"]


def test_trials_have_boot_disk_of_their_study(emulator: Emulator) -> None:
    study = submit_study(emulator)
    emulator.run_ready_steps()
    with emulator.database.read() as transaction:
        specs = [emulator.job(study).spec["trialJobSpec"]]
        specs += [job.spec["jobSpec"] for job in transaction.jobs.of_study(study)]
    disks = [pool.get("diskSpec") for spec in specs for pool in spec["workerPoolSpecs"]]
    assert disks == [{"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}] * 3


def test_launch_is_logged_before_containers_start(emulator: Emulator) -> None:
    emulator.machine.images.clear()
    job = submit(emulator)
    emulator.run()
    texts = [text.partition(".")[0] for text in log_texts(emulator, job)]
    assert texts[3:5] == ["Waiting for training program to start", "Job is preparing"]
    assert "Job is running" not in texts


def test_failure_is_logged_line_by_line_before_end(emulator: Emulator) -> None:
    inject(emulator, "fail", code=13, message="first\n\nsecond")
    job = submit(emulator)
    emulator.run()
    with emulator.database.read() as transaction:
        lines = transaction.jobs.messages(job)[-4:]
    assert [(line.severity, line.text) for line in lines] == [
        ("ERROR", "first"),
        ("ERROR", "second"),
        ("INFO", "Finished tearing down training program."),
        ("INFO", "Job failed."),
    ]


def test_primary_end_stops_other_replicas(emulator: Emulator) -> None:
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run()
    ended = emulator.job(job)
    assert ended.state == "JOB_STATE_SUCCEEDED"
    assert [found["exit_code"] for found in ended.replica_outcomes] == [0, 143]


def test_replica_ignoring_sigterm_is_killed(emulator: Emulator) -> None:
    emulator.machine.ignores_sigterm = True
    job = submit(emulator, custom_job_spec(pool(), pool()))
    emulator.run(lambda _: emulator.job(job).ending is not None)
    emulator.machine.finish_one = lambda: None  # type: ignore[method-assign]
    emulator.queue.add(job)
    emulator.run_ready_steps()
    emulator.queue.add(job)
    emulator.run()
    assert emulator.machine.signals == ["SIGTERM", "SIGKILL"]
    assert [found["exit_code"] for found in emulator.job(job).replica_outcomes] == [0, 137]


def test_failed_job_names_its_missing_image(emulator: Emulator) -> None:
    job = submit(emulator, custom_job_spec({**pool(), "containerSpec": {"imageUri": "absent:1"}}))
    emulator.run()
    ended = emulator.job(job)
    assert ended.state == "JOB_STATE_FAILED"
    assert ended.ending is not None
    assert "absent:1" in ended.ending.message


def test_jobs_queue_until_machine_has_room(emulator: Emulator) -> None:
    first, second, third = (submit(emulator, custom_job_spec(pool(), pool(2))) for _ in range(3))
    emulator.run_ready_steps()
    assert [emulator.job(job).state for job in (first, second, third)] == [
        "JOB_STATE_RUNNING",
        "JOB_STATE_QUEUED",
        "JOB_STATE_QUEUED",
    ]
    emulator.run()
    assert emulator.machine.most_at_once == 3
    ends = [emulator.job(job).ended or 0 for job in (first, second, third)]
    assert ends == sorted(ends)


def test_oversized_job_runs_alone(emulator: Emulator) -> None:
    small, large, late = submit(emulator), submit(emulator, custom_job_spec(pool(), pool(9))), submit(emulator)
    emulator.run_ready_steps()
    assert emulator.job(large).state == "JOB_STATE_QUEUED"
    emulator.run()
    assert {emulator.job(job).state for job in (small, large, late)} == {"JOB_STATE_SUCCEEDED"}
    assert emulator.machine.most_at_once == 10


def test_study_shares_machine_with_later_jobs(emulator: Emulator) -> None:
    emulator.machine.program = lambda spec: reports(spec) if mounted(spec, "/tmp/hypertune") else 0
    study = submit_study(emulator, trials=30, parallel=12)
    emulator.run_ready_steps()
    jobs = [submit(emulator) for _ in range(6)]
    emulator.run(lambda _: all(emulator.job(job).is_terminal for job in jobs))
    ended = [number for number, state in trials(emulator, study) if state == "SUCCEEDED"]
    assert 1 <= len(ended) <= 12
    emulator.run()
    assert len(trials(emulator, study)) == 30


def test_large_job_waits_for_running_trials_only(emulator: Emulator) -> None:
    emulator.machine.program = lambda spec: reports(spec) if mounted(spec, "/tmp/hypertune") else 0
    study = submit_study(emulator, trials=30, parallel=12)
    emulator.run_ready_steps()
    large = submit(emulator, custom_job_spec(pool(), pool(3)))
    emulator.run(lambda _: emulator.job(large).started is not None)
    # The four that ran, and one more: the study had waited since before the large job came.
    assert [state for _, state in trials(emulator, study)].count("SUCCEEDED") <= 5


def test_only_flexible_job_gives_up_waiting(emulator: Emulator) -> None:
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


def test_job_pulling_its_image_can_be_cancelled(emulator: Emulator) -> None:
    emulator.machine.ensure_image = lambda job, image: False  # type: ignore[method-assign]
    job = submit(emulator)
    emulator.run_ready_steps()
    assert emulator.job(job).state == "JOB_STATE_PENDING"
    cancel(emulator, job)
    emulator.run_ready_steps()
    assert emulator.job(job).state == "JOB_STATE_CANCELLED"


def test_jobs_wait_while_docker_is_down(emulator: Emulator) -> None:
    emulator.machine.is_down = True
    job = submit(emulator)
    for _ in range(5):
        emulator.run_ready_steps()
        emulator.machine.clock.advance(60)
    assert emulator.job(job).state == "JOB_STATE_PENDING"
    assert len([text for text in log_texts(emulator, job) if "Docker" in text]) == 1
    emulator.machine.is_down = False
    emulator.run()
    assert emulator.job(job).state == "JOB_STATE_SUCCEEDED"


def test_failing_step_fails_only_its_own_job(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_queued_and_running_jobs_can_be_cancelled(emulator: Emulator) -> None:
    running = submit(emulator, custom_job_spec(pool(), pool(3)))
    queued = submit(emulator)
    emulator.run_ready_steps()
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


def test_timeout_ends_job(emulator: Emulator) -> None:
    job = submit(emulator, custom_job_spec(scheduling={"timeout": "60s"}))
    emulator.machine.finish_one = lambda: None  # type: ignore[method-assign]
    emulator.run()
    ended = emulator.job(job)
    assert ended.state == "JOB_STATE_FAILED"
    assert 60 <= ((ended.ended or 0) - (ended.started or 0)) / 10**9 < 70


def test_study_keeps_measurements_of_its_parallel_trials(emulator: Emulator) -> None:
    emulator.machine.program = reports
    study = submit_study(emulator, trials=5, parallel=2)
    emulator.run()
    assert emulator.job(study).state == "JOB_STATE_SUCCEEDED"
    assert trials(emulator, study) == [(i, "SUCCEEDED") for i in range(1, 6)]
    assert emulator.machine.most_at_once == 2
    shown = emulator.jobs.get(HYPERPARAMETER_TUNING_JOB, LOCATION, study)["trials"][0]
    assert shown["finalMeasurement"]["metrics"] == [{"metricId": "acc", "value": 0.5}]
    with emulator.database.read() as transaction:
        assert all(len(trial.measurements) == 1 for trial in transaction.trials.all(study))


def test_trial_without_measurements_is_infeasible(emulator: Emulator) -> None:
    study = submit_study(emulator, trials=3, parallel=1)
    emulator.run()
    assert trials(emulator, study) == [(1, "INFEASIBLE")]
    assert emulator.job(study).state == "JOB_STATE_FAILED"
    shown = emulator.jobs.get(HYPERPARAMETER_TUNING_JOB, LOCATION, study)["trials"][0]
    assert "without reporting the metric acc" in shown["infeasibleReason"]


def test_cancelled_study_ends_its_trials(emulator: Emulator) -> None:
    study = submit_study(emulator, trials=9, parallel=3)
    emulator.run_ready_steps()
    cancel(emulator, study)
    emulator.run()
    assert emulator.job(study).state == "JOB_STATE_CANCELLED"
    assert trials(emulator, study) == [(i, "INFEASIBLE") for i in (1, 2, 3)]
    assert emulator.machine.containers == {}


def test_exhausted_grid_ends_study(emulator: Emulator) -> None:
    emulator.machine.program = reports
    spec = tuning_job_spec()["studySpec"] | {
        "algorithm": "GRID_SEARCH",
        "parameters": [{"parameterId": "kind", "categoricalValueSpec": {"values": ["a", "b"]}}],
    }
    study = submit_study(emulator, trials=9, parallel=3, studySpec=spec)
    emulator.run()
    assert emulator.job(study).state == "JOB_STATE_SUCCEEDED"
    assert len(trials(emulator, study)) == 2


def test_deleting_job_keeps_its_outputs(emulator: Emulator) -> None:
    job = submit(emulator, custom_job_spec(baseOutputDirectory={"outputUriPrefix": "gs://my-bucket/run"}))
    emulator.run()
    outputs = emulator.data.buckets / "my-bucket" / "run"
    assert not outputs.exists()
    outputs.mkdir()
    emulator.jobs.delete(CUSTOM_JOB, LOCATION, job)
    emulator.run_ready_steps()
    assert not list(emulator.data.job_ids())
    assert outputs.is_dir()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_key_added_twice_is_taken_once() -> None:
    queue = WorkQueue(Clock())
    queue.add("a")
    queue.add("a")
    assert queue.reserve(0) == "a"
    queue.release("a")
    assert queue.reserve(0) is None


def test_taken_key_returns_only_after_its_release() -> None:
    queue = WorkQueue(Clock())
    queue.add("a")
    assert queue.reserve(0) == "a"
    queue.add("a")
    assert queue.reserve(0) is None
    queue.release("a")
    assert queue.reserve(0) == "a"


def test_timer_rings_once_when_it_is_due() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    queue.add("a")
    queue.reserve(0)
    queue.release("a", delay=5)
    assert queue.reserve(0) is None
    clock.now = 5.0
    assert queue.reserve(0) == "a"
    queue.release("a")
    clock.now = 50.0
    assert queue.reserve(0) is None


def test_latest_release_sets_key_timer() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    for again in (1, 3):
        queue.add("a")
        assert queue.reserve(0) == "a"
        queue.release("a", delay=again)
    clock.now = 2.0
    assert queue.reserve(0) is None
    clock.now = 3.0
    assert queue.reserve(0) == "a"


def test_release_without_delay_cancels_timer() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    for again in (5, None):
        queue.add("a")
        assert queue.reserve(0) == "a"
        queue.release("a", delay=again)
    clock.now = 50.0
    assert queue.reserve(0) is None


def test_closing_lets_waiting_worker_go() -> None:
    queue = WorkQueue()
    taken: list[str | None] = ["never"]
    worker = threading.Thread(target=lambda: taken.append(queue.reserve()))
    worker.start()
    queue.close()
    worker.join(PATIENCE_SECONDS)
    assert taken == ["never", None]
