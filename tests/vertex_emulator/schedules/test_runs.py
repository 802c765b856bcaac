"""The times of schedules: their clock, the runs that are begun or skipped, and what prune, export and import keep."""

import logging
from pathlib import Path

import pytest

from tests.vertex_api.futures import future_job
from tests.vertex_api.jobs import edited
from tests.vertex_emulator.jobs import LOCATION
from tests.vertex_emulator.schedules.emulator import (
    SchedulingEmulator,
    create_emulator,
    nights,
    output_folder,
    reports_if_trial,
    scheduled_job,
)
from vertex_api.names import HYPERPARAMETER_TUNING_JOB, KINDS, Kind
from vertex_emulator.database import Database
from vertex_emulator.errors import ApiError, EmulatorError
from vertex_emulator.pruning import prune_jobs
from vertex_emulator.snapshots.export import export
from vertex_emulator.snapshots.restore import restore
from vertex_emulator.times import now_ns, parse_time


def test_an_overlapping_run_is_skipped_unless_allowed(emulator: SchedulingEmulator) -> None:
    emulator.put()
    emulator.put("allowing", overlap="allow")
    emulator.move_clock("2026-11-23T02:00:00Z")
    assert [state for _, state in emulator.runs()] == ["RUNNING", "SKIPPED"]
    skipped, under_way = emulator.get()["runs"]
    assert skipped["reason"] == f"the run {under_way['runId']} is still under way (overlap: skip)"
    emulator.finish_runs()
    assert emulator.runs("allowing") == nights(22, 23)


def test_missed_times_are_one_skipped_run(emulator: SchedulingEmulator, caplog: pytest.LogCaptureFixture) -> None:
    emulator.put()
    emulator.put("paused", paused=True)
    emulator.let_clock_pass_while_down("2026-11-24T02:00:59Z")
    with caplog.at_level(logging.WARNING):
        emulator.finish_runs()
    assert emulator.runs() == [("2026-11-23T02:00:00Z", "SKIPPED"), *nights(24, 24)]  # the last one is not late
    reason = "missed 2 times from 2026-11-22T02:00:00Z to 2026-11-23T02:00:00Z: the emulator was not running"
    assert emulator.get()["runs"][1]["reason"] == reason
    assert caplog.messages == [f"the schedule nightly has {reason}"]
    emulator.let_clock_pass_while_down("2026-11-25T12:00:00Z")
    emulator.finish_runs()
    assert emulator.get()["runs"][0]["reason"] == "missed 2026-11-25T02:00:00Z: the emulator was not running"
    assert emulator.runs("paused") == []


def test_missed_times_are_counted_to_a_limit(emulator: SchedulingEmulator) -> None:
    emulator.put(cron="* * * * *")
    emulator.let_clock_pass_while_down("2046-11-22T00:00:30Z")
    emulator.loop.advance()
    (skipped, state), (run, _) = emulator.runs()
    assert (skipped, state, run) == ("2026-11-22T16:40:00Z", "SKIPPED", "2046-11-22T00:00:00Z")
    assert "missed at least 1000 times" in emulator.get()["runs"][1]["reason"]


def test_paused_schedules_run_only_when_fired(emulator: SchedulingEmulator) -> None:
    emulator.put()
    assert emulator.schedules.pause(LOCATION, "nightly")["nextTimes"] == []
    emulator.move_clock("2026-11-23T12:00:00Z")
    emulator.finish_runs()
    assert emulator.runs() == []
    emulator.schedules.fire(LOCATION, "nightly")
    with pytest.raises(ApiError, match=r"nightly was not fired: the run .* is still under way"):
        emulator.schedules.fire(LOCATION, "nightly")
    emulator.finish_runs()
    emulator.schedules.fire(LOCATION, "nightly")
    emulator.finish_runs()
    assert emulator.runs() == [("2026-11-23T12:00:00Z", "SUCCEEDED")] * 2
    assert len({run["runId"] for run in emulator.get()["runs"]}) == 2
    resumed = emulator.schedules.resume(LOCATION, "nightly")
    assert resumed["nextTimes"][0] == "2026-11-24T02:00:00Z"


def test_an_edit_keeps_earlier_runs(emulator: SchedulingEmulator) -> None:
    emulator.put()
    emulator.move_clock("2026-11-22T12:00:00Z")
    emulator.finish_runs()
    edited = emulator.put(cron="0 6 * * *", timeZone="Asia/Tokyo")
    assert edited["nextTimes"][0] == "2026-11-22T21:00:00Z"
    assert emulator.runs() == nights(22, 22)


def test_a_hundred_ended_runs_are_kept(emulator: SchedulingEmulator) -> None:
    emulator.put(cron="* * * * *")
    emulator.move_clock("2026-11-22T02:30:00Z")
    with emulator.database.read() as transaction:
        (schedule,) = transaction.schedules.all()
        states = [run.state for run in transaction.schedules.runs(schedule, 1000)]
    assert states == [*["SKIPPED"] * 100, "RUNNING"]


def test_the_loop_waits_for_the_next_time(emulator: SchedulingEmulator) -> None:
    emulator.put("paused", paused=True)
    assert emulator.loop.advance() is None
    emulator.put()
    emulator.put("later", cron="0 3 * * *")
    assert emulator.loop.advance() is None  # a set clock stands
    emulator.schedules.unset_clock()
    next_times = [emulator.get(name)["nextTimes"][0] for name in ("nightly", "later")]
    assert emulator.loop.advance() == parse_time(min(next_times))


def test_a_moved_clock_begins_passed_runs(emulator: SchedulingEmulator) -> None:
    schedule = emulator.put()
    assert schedule["nextTimes"] == [f"2026-11-{day}T02:00:00Z" for day in (22, 23, 24)]
    emulator.move_clock("2026-11-22T01:59:59Z")
    assert emulator.runs() == []
    for day in (22, 23):
        for _ in range(2):  # the second time, nothing new is due
            emulator.move_clock(f"2026-11-{day}T02:00:00Z")
            emulator.finish_runs()
    assert emulator.runs() == nights(22, 23)
    assert emulator.get()["nextTimes"][0] == "2026-11-24T02:00:00Z"


def test_the_clock_never_passes_back_a_run(emulator: SchedulingEmulator) -> None:
    emulator.put()
    emulator.move_clock("2026-11-22T12:00:00Z")
    with pytest.raises(ApiError, match=r"time is before the run 2026-11-22T02-00-00-\w+ of nightly; move"):
        emulator.move_clock("2026-11-22T01:00:00Z")
    emulator.finish_runs()
    emulator.move_clock("2026-11-22T02:00:00Z")
    emulator.move_clock("2026-11-23T02:00:00Z")
    emulator.finish_runs()
    assert emulator.runs() == nights(22, 23)


def test_an_unset_clock_repeats_no_run(emulator: SchedulingEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vertex_emulator.api.schedule_loop.now_ns", lambda: 1_795_312_800 * 10**9)
    emulator.put()
    for day in (22, 23):
        emulator.move_clock(f"2026-11-{day}T12:00:00Z")
        emulator.finish_runs()
    assert emulator.schedules.unset_clock() == {"time": "2026-11-22T02:00:00Z"}
    monkeypatch.setattr("vertex_emulator.api.schedule_loop.now_ns", lambda: 1_795_485_601 * 10**9)
    emulator.finish_runs()
    assert emulator.runs() == nights(22, 24)


def test_the_clock_passes_limited_times(emulator: SchedulingEmulator) -> None:
    emulator.put(cron="* * * * *", overlap="allow")
    with pytest.raises(ApiError, match="more than 1000 times until then; move the clock in smaller steps"):
        emulator.move_clock("2026-11-22T16:41:00Z")
    assert emulator.runs() == []


def test_pruning_keeps_outputs_schedules_need(emulator: SchedulingEmulator) -> None:
    emulator.put()
    for day in (22, 23):
        emulator.move_clock(f"2026-11-{day}T02:00:00Z")
        emulator.finish_runs()
    first, second = map(output_folder, emulator.all_jobs())
    emulator.put("evaluate", jobs=[scheduled_job("evaluate", args=[f"{first}/model"])], paused=True)
    report = prune_jobs(emulator.database, emulator.data, now_ns(), True, False)
    assert (report.jobs, report.kept_outputs) == (2, [first])
    assert second not in report.kept_outputs
    assert [state for _, state in emulator.runs()] == ["SUCCEEDED", "SUCCEEDED"]
    emulator.schedules.fire(LOCATION, "evaluate")
    emulator.finish_runs()
    assert emulator.runs("evaluate") == [("2026-11-23T02:00:00Z", "SUCCEEDED")]


def test_archives_have_no_schedules(emulator: SchedulingEmulator, tmp_path: Path) -> None:
    emulator.put()
    emulator.database.close()
    archive = tmp_path / "archive.tar.gz"
    lines = list(export(emulator.data.root, archive, redacts_env=True))
    assert lines[1:] == ["it has none of the 1 schedules of the folder"]
    with pytest.raises(EmulatorError, match="has schedules; import into another one"):
        restore(emulator.data.root, archive, None)
    restore(tmp_path / "other", archive, None)
    imported = Database(tmp_path / "other" / "emulator.db")
    with imported.read() as transaction:
        assert transaction.schedules.all() == []
    imported.close()


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_run_submits_what_its_schedule_lifts(tmp_path: Path, kind: Kind) -> None:
    emulator = create_emulator(tmp_path, program=reports_if_trial)
    emulator.move_clock("2026-11-22T00:00:00Z")
    body, places = future_job(kind)
    if kind == HYPERPARAMETER_TUNING_JOB:
        body = edited(body, "studySpec", "metrics", 0, "metricId", to="acc")
    first, later = ({"name": name, "collection": kind.collection, "body": body} for name in ("train", "again"))
    with pytest.raises(ApiError, match="machine_type"):
        emulator.put(jobs=[first])
    # What refers to a result is looked at when it is submitted.
    later["body"] = {**body, "displayName": "after ${jobs.train.name}"}
    emulator.put(jobs=[{**first, "allow": places}, {**later, "allow": places}])
    emulator.move_clock("2026-11-22T02:00:00Z")
    emulator.finish_runs()
    assert emulator.runs() == nights(22, 22)
    made = [job.spec for job in emulator.all_jobs() if job.kind == kind]
    assert [job[kind.spec_field]["pacing"] for job in made[:2]] == [body[kind.spec_field]["pacing"]] * 2
    emulator.database.close()
