"""The loop of schedules, and the jobs of a run: submitted one after another, as a client would, and each once."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.fakes import Clock, Machine, use_clock
from tests.vertex_emulator.jobs import LOCATION
from tests.vertex_emulator.kills import assert_that_no_kill_changes_the_end
from tests.vertex_emulator.running import PATIENCE_SECONDS, until
from tests.vertex_emulator.schedules.emulator import (
    SchedulingEmulator,
    create_emulator,
    output_folder,
    reports_if_trial,
    scheduled_job,
    scheduled_search,
)
from tests.vertex_emulator.scheduling.steps import inject, submit
from tests.vertex_emulator.scheduling.test_pipeline import MODEL, saves
from vertex_api.names import CUSTOM_JOB, KINDS, ResourceName
from vertex_api.pipelines import TUNING_TASK
from vertex_api.schedules import fill_run_id
from vertex_emulator.api.schedule_loop import begin_until
from vertex_emulator.api.schedules import ScheduleService


@pytest.fixture
def threaded(tmp_path: Path) -> Iterator[SchedulingEmulator]:
    """An emulator whose service wakes the thread of its loop."""
    emulator = create_emulator(tmp_path)
    emulator.schedules = ScheduleService(emulator.database, emulator.jobs, emulator.loop.wake)
    yield emulator
    emulator.loop.stop(PATIENCE_SECONDS)
    emulator.database.close()


def has_thread() -> bool:
    return "schedules" in {thread.name for thread in threading.enumerate()}


def test_a_thread_starts_with_the_first_schedule(threaded: SchedulingEmulator) -> None:
    threaded.loop.start()
    threaded.move_clock("2026-11-22T00:00:00Z")
    assert not has_thread()
    threaded.put()
    assert has_thread()
    threaded.loop.stop(PATIENCE_SECONDS)
    assert not has_thread()


def test_the_thread_runs_what_is_due(threaded: SchedulingEmulator) -> None:
    threaded.move_clock("2026-11-22T00:00:00Z")
    threaded.put(jobs=[scheduled_job("prepare"), scheduled_job("train")])
    threaded.move_clock("2026-11-22T02:00:00Z")
    for count in (1, 2):  # the end of the first job wakes the thread, which submits the second
        until(lambda count=count: len(threaded.all_jobs()) == count)  # type: ignore[misc]
        threaded.run_jobs()
    until(lambda: threaded.runs() == [("2026-11-22T02:00:00Z", "SUCCEEDED")])
    threaded.schedules.fire(LOCATION, "nightly")
    until(lambda: len(threaded.all_jobs()) == 3)


def test_the_thread_wakes_at_times(threaded: SchedulingEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_795_312_799_900_000_000]  # a tenth of a second before 02:00
    monkeypatch.setattr("vertex_emulator.api.schedule_loop.now_ns", lambda: now[0])
    threaded.put()
    assert threaded.get()["nextTimes"][0] == "2026-11-22T02:00:00Z"
    now[0] += 10**9  # nobody wakes the thread: it looks at the clock when its sleep ends
    until(lambda: threaded.runs() == [("2026-11-22T02:00:00Z", "RUNNING")])


def test_other_jobs_wake_nothing(threaded: SchedulingEmulator) -> None:
    threaded.move_clock("2026-11-22T00:00:00Z")
    threaded.put()
    sleeps: list[str] = []
    sleep = threaded.loop._sleep

    def record_and_sleep(next_time: int | None) -> None:
        sleeps.append("begun")
        sleep(next_time)
        sleeps.append("ended")

    threaded.loop._sleep = record_and_sleep  # type: ignore[method-assign]

    def sleeps_for_good() -> bool:
        before = [*sleeps]
        return before[-1:] == ["begun"] and not threaded.loop._changed.is_set() and sleeps == before

    threaded.move_clock("2026-11-22T02:00:00Z")
    until(lambda: threaded.all_jobs())
    threaded.run_jobs()
    until(lambda: threaded.runs() == [("2026-11-22T02:00:00Z", "SUCCEEDED")])
    until(sleeps_for_good)
    before = len(sleeps)
    submit(threaded)
    threaded.run_jobs()
    assert (len(sleeps), threaded.loop._changed.is_set()) == (before, False)


def test_cron_loads_only_with_schedules() -> None:
    program = "import sys, vertex_emulator.server; print({'cronsim', 'vertex_api.cron'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


DAY_NS = 86_400 * 10**9
NIGHT = "2026-11-22T02:00:00Z"
BEST = "${jobs.tune.bestTrial.parameters.x} ${jobs.tune.bestTrial.metrics.acc} ${jobs.tune.bestTrial.id}"


def fetch(emulator: SchedulingEmulator, name: str) -> dict[str, Any]:
    parts = ResourceName.parse(name)
    return emulator.jobs.get(parts.kind, LOCATION, parts.id)


def without_own_fields(job: dict[str, Any]) -> dict[str, Any]:
    """What two jobs of equal requests have in common."""
    return {key: value for key, value in job.items() if key not in ("name", "trials") and not key.endswith("Time")}


def last_run(emulator: SchedulingEmulator) -> Any:
    return emulator.get()["runs"][0]


def test_scheduled_jobs_equal_those_of_clients(emulator: SchedulingEmulator) -> None:
    jobs = [scheduled_job("train"), scheduled_search("tune")]
    emulator.machine.program = reports_if_trial
    emulator.put(jobs=jobs)
    emulator.move_clock(NIGHT)
    emulator.finish_runs()
    run = last_run(emulator)
    for job in jobs:
        body = fill_run_id(job["body"], run["runId"])
        created = emulator.jobs.create(KINDS[job["collection"]], LOCATION, body)
        emulator.run_jobs()
        fetched, expected = (fetch(emulator, name) for name in (run["jobs"][job["name"]], created["name"]))
        assert without_own_fields(fetched) == without_own_fields(expected)
        assert run["runId"] in str(fetched)


def test_later_jobs_wait_and_use_earlier_results(emulator: SchedulingEmulator) -> None:
    emulator.machine.program = reports_if_trial
    args = [BEST, "${jobs.tune.modelDir}", "${jobs.prepare.step.name}"]
    emulator.put(jobs=[scheduled_job("prepare.step"), scheduled_search("tune"), scheduled_job("train", args=args)])
    emulator.move_clock(NIGHT)
    emulator.loop.advance()
    assert len(emulator.all_jobs()) == 1
    emulator.finish_runs()
    run = last_run(emulator)
    assert (run["state"], list(run["jobs"])) == ("SUCCEEDED", ["prepare.step", "tune", "train"])
    tune, train = (fetch(emulator, run["jobs"][name]) for name in ("tune", "train"))
    best = tune["trials"][0]
    folder = f"gs://bucket/nightly/{run['runId']}"
    model_dir = f"{folder}/tune/{best['id']}/model/"
    assert train["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == [
        f"{best['parameters'][0]['value']} 0.5 {best['id']}",
        model_dir,
        run["jobs"]["prepare.step"],
    ]
    assert run["modelDirs"] == {
        "prepare.step": f"{folder}/prepare.step/model/",
        "tune": model_dir,
        "train": f"{folder}/train/model/",
    }


def test_a_pipelines_results_are_filled_in(emulator: SchedulingEmulator) -> None:
    emulator.machine.program = saves
    search = scheduled_search("search")["body"]
    inputs = {name: value for name, value in search.items() if name != "displayName"}
    fields = {"trainingTaskDefinition": TUNING_TASK, "trainingTaskInputs": inputs, "modelToUpload": MODEL}
    pipeline = {"name": "pipeline", "collection": "trainingPipelines", "body": {"displayName": "a pipeline", **fields}}
    results = ("backingJob", "model", "bestTrial.id", "modelDir")
    args = [f"${{jobs.pipeline.{result}}}" for result in results]
    emulator.put(jobs=[pipeline, scheduled_job("train", args=args)])
    emulator.move_clock(NIGHT)
    emulator.finish_runs()
    run = last_run(emulator)
    assert run["state"] == "SUCCEEDED", run
    shown, train = (fetch(emulator, run["jobs"][name]) for name in ("pipeline", "train"))
    best = train["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"][2]
    assert train["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == [
        shown["trainingTaskMetadata"]["backingHyperparameterTuningJob"],
        shown["modelToUpload"]["name"],
        best,
        f"gs://bucket/nightly/{run['runId']}/search/{best}/model/",
    ]
    assert run["modelDirs"]["pipeline"].endswith(f"/search/{best}/model/")


def test_a_failed_job_ends_its_run(emulator: SchedulingEmulator, caplog: pytest.LogCaptureFixture) -> None:
    emulator.machine.program = lambda _spec: 1
    emulator.put(jobs=[scheduled_job("prepare"), scheduled_job("train")])
    emulator.move_clock(NIGHT)
    emulator.finish_runs()
    run = last_run(emulator)
    assert (run["state"], list(run["jobs"]), run["modelDirs"]) == ("FAILED", ["prepare"], {})
    assert run["reason"].startswith("prepare is FAILED: The replica workerpool0-0 exited with a non-zero status of 1")
    assert caplog.messages == [f"the run {run['runId']} has failed: {run['reason']}"]


def test_a_rejected_job_ends_its_run(emulator: SchedulingEmulator) -> None:
    emulator.put(jobs=[scheduled_job("train")])
    inject(emulator, "quota")
    emulator.move_clock(NIGHT)
    emulator.finish_runs()
    assert last_run(emulator)["state"] == "FAILED"
    assert last_run(emulator)["reason"].startswith("train was not submitted: The following quota metrics exceed")
    later = scheduled_job("later", args=["${jobs.train.model}"])
    emulator.put(jobs=[scheduled_job("train"), later])
    emulator.move_clock("2026-11-23T02:00:00Z")
    emulator.finish_runs()
    assert last_run(emulator)["reason"] == "later was not submitted: there is no ${jobs.train.model}"


def test_deleting_a_schedule_leaves_its_jobs(emulator: SchedulingEmulator) -> None:
    emulator.put(jobs=[scheduled_job("prepare"), scheduled_job("train")])
    emulator.move_clock(NIGHT)
    emulator.loop.advance()
    emulator.schedules.delete(LOCATION, "nightly")
    emulator.finish_runs()
    assert [job.state for job in emulator.all_jobs()] == ["JOB_STATE_SUCCEEDED"]


def test_deleted_schedules_submit_no_job(emulator: SchedulingEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody deletes the schedule while its loop submits a job."""
    emulator.put()
    emulator.move_clock(NIGHT)
    create = type(emulator.jobs).create

    def delete_and_create(*arguments: Any) -> Any:
        emulator.schedules.delete(LOCATION, "nightly")
        return create(*arguments)

    monkeypatch.setattr(type(emulator.jobs), "create", delete_and_create)
    emulator.finish_runs()
    assert emulator.all_jobs() == []


def test_a_run_whose_job_is_deleted_fails(emulator: SchedulingEmulator) -> None:
    emulator.put()
    emulator.move_clock(NIGHT)
    emulator.loop.advance()
    emulator.run_jobs()
    (job,) = emulator.all_jobs()
    emulator.jobs.delete(CUSTOM_JOB, LOCATION, job.id)
    emulator.finish_runs()
    assert (last_run(emulator)["state"], last_run(emulator)["reason"]) == ("FAILED", "train was deleted")


def test_an_edit_leaves_current_runs_unchanged(emulator: SchedulingEmulator) -> None:
    emulator.put(jobs=[scheduled_job("prepare"), scheduled_job("train")])
    emulator.move_clock(NIGHT)
    emulator.loop.advance()
    emulator.put(jobs=[scheduled_job("other")])
    emulator.finish_runs()
    assert list(last_run(emulator)["jobs"]) == ["prepare", "train"]


def test_a_stuck_run_stops_no_other(emulator: SchedulingEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator.put("broken")
    emulator.put()
    emulator.move_clock(NIGHT)
    create = type(emulator.jobs).create
    created: list[Any] = []

    def create_all_but_the_first(*arguments: Any) -> Any:
        created.append(arguments)
        if len(created) == 1:
            raise OSError("the disk fails")
        return create(*arguments)

    monkeypatch.setattr(type(emulator.jobs), "create", create_all_but_the_first)
    assert emulator.loop.advance() is not None  # it is tried again
    assert len(emulator.all_jobs()) == 1
    emulator.finish_runs()
    assert emulator.runs("broken") == emulator.runs() == [(NIGHT, "SUCCEEDED")]


TIMES = [NIGHT, "2026-11-22T12:00:00Z"]


class OneNight(SchedulingEmulator):
    """Moves the clock over a night in two steps, and after a kill again."""

    def run(self, until: object = None) -> None:
        for time in TIMES:
            self.move_clock(time)
            self.finish_runs()


def test_kills_neither_double_nor_lose_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    use_clock(clock, monkeypatch)

    def begin(folder: Path) -> tuple[SchedulingEmulator, Any]:
        emulator = OneNight(folder, Machine(clock))
        emulator.move_clock("2026-11-22T00:00:00Z")
        emulator.put(jobs=[scheduled_job("prepare"), scheduled_job("train", args=["${jobs.prepare.name}"])])

        def outcome() -> Any:
            runs = emulator.get()["runs"]
            jobs = {job.name: output_folder(job) for job in emulator.all_jobs()}
            assert len(jobs) == len(set(jobs.values())) == sum(len(run["jobs"]) for run in runs)
            assert all(run["runId"] in jobs[name] for run in runs for name in run["jobs"].values())
            assert set(emulator.machine.started.values()) == {1}
            return [(run["scheduleTime"], run["state"], sorted(run["jobs"])) for run in runs], len(jobs)

        return emulator, outcome

    assert_that_no_kill_changes_the_end(tmp_path, begin)


def test_a_time_has_one_run(emulator: SchedulingEmulator) -> None:
    emulator.put(overlap="allow")
    emulator.move_clock("2026-11-24T02:00:00Z")
    before = emulator.get()["runs"]
    with emulator.database.write() as transaction:
        (schedule,) = transaction.schedules.all()
        earlier = schedule.handled_until - 3 * DAY_NS
        begin_until(transaction, replace(schedule, handled_until=earlier), schedule.handled_until)
    assert emulator.get()["runs"] == before
