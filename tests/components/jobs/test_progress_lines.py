"""Progress: a line for each change, a few lines where many change at once, and signs of life that say who waits."""

from typing import Any

import pytest
from vertex_training.jobs.progress_lines import HEARTBEAT_SECONDS, Progress, describe_run_summary_change_or_none

from tests.components.fakes import NOON

CREATED = "2026-01-31T12:00:00Z"


def job(state: str, **fields: Any) -> dict[str, Any]:
    return {"state": f"JOB_STATE_{state}", "createTime": CREATED, "jobSpec": {}, **fields}


def search(state: str, done: int, total: int = 10) -> dict[str, Any]:
    metrics = [{"metricId": "loss", "goal": "MINIMIZE"}]
    trials = [{"id": str(number), "state": "SUCCEEDED"} for number in range(1, done + 1)]
    return job(state, studySpec={"metrics": metrics}, maxTrialCount=total, trials=trials)


def many(count: int, state: str, first: int = 1) -> dict[str, Any]:
    return {f"job{number}": job(state) for number in range(first, first + count)}


def test_a_few_changes_print_one_line_each() -> None:
    progress = Progress()
    jobs = many(5, "PENDING")
    assert progress.take_change_and_heartbeat_lines(jobs, NOON) == [f"job{number}: PENDING" for number in range(1, 6)]
    assert progress.take_change_and_heartbeat_lines(jobs, NOON + 1) == []
    assert progress.take_change_and_heartbeat_lines({**jobs, "job2": job("RUNNING")}, NOON + 2) == ["job2: RUNNING"]


def test_many_changes_print_one_count_per_state() -> None:
    jobs = many(150, "RUNNING") | many(40, "SUCCEEDED", 151) | many(3, "QUEUED", 191)
    assert Progress().take_change_and_heartbeat_lines(jobs, NOON) == [
        "RUNNING: job1, job2, job3, job4, job5 and 145 more",
        "SUCCEEDED: job151, job152, job153, job154, job155 and 35 more",
        "QUEUED: job191, job192, job193",
        "40 of 193 jobs done",
    ]


def test_200_jobs_print_under_one_line_each() -> None:
    progress = Progress()
    printed = 0
    for step in range(30):
        # Ten begin and ten end at every look.
        jobs = many(200, "QUEUED") | many(min(200, step * 10), "RUNNING") | many(max(0, step - 5) * 10, "SUCCEEDED")
        printed += len(
            progress.take_change_and_heartbeat_lines({f"job{n}": jobs[f"job{n}"] for n in range(1, 201)}, NOON + step)
        )
    assert printed <= 30 * 4


def test_trials_of_many_tuning_jobs_are_summed() -> None:
    progress = Progress()
    jobs = {f"s{number}": search("RUNNING", 0) for number in range(100)}
    progress.take_change_and_heartbeat_lines(jobs, NOON)
    jobs = {name: search("RUNNING", 3) for name in jobs}
    assert progress.take_change_and_heartbeat_lines(jobs, NOON + 1)[-1] == "0 of 100 jobs done, 300 of 1000 trials done"


def test_the_best_trial_is_by_the_declared_metric() -> None:
    found = search("RUNNING", 1)
    found["studySpec"]["metrics"].insert(0, {"metricId": "heat", "safetyConfig": {"safetyThreshold": 5}})
    metrics = [{"metricId": "heat", "value": 7}, {"metricId": "loss", "value": 0.25}]
    found["trials"][0]["finalMeasurement"] = {"metrics": metrics}
    (line,) = Progress().take_change_and_heartbeat_lines({"a": found}, NOON)
    assert line == "a: RUNNING, 1 of 10 trials done, best loss 0.25 in trial 1"


def test_a_heartbeat_follows_an_unchanged_minute() -> None:
    progress = Progress()
    jobs = {"a": job("RUNNING"), "b": job("SUCCEEDED")}
    progress.take_change_and_heartbeat_lines(jobs, NOON)
    assert progress.take_change_and_heartbeat_lines(jobs, NOON + HEARTBEAT_SECONDS) == []
    assert progress.take_change_and_heartbeat_lines(jobs, NOON + HEARTBEAT_SECONDS + 1) == ["waiting: 1 of 2 jobs done"]
    assert progress.take_change_and_heartbeat_lines(jobs, NOON + HEARTBEAT_SECONDS + 2) == []


@pytest.mark.parametrize(
    ("state", "why"), [("QUEUED", "quota or machines are short"), ("PENDING", "machines and images are being prepared")]
)
def test_a_heartbeat_explains_each_queued_job(state: str, why: str) -> None:
    progress = Progress()
    jobs = {"a": job(state), "b": job("RUNNING")} | {"new": job(state, createTime="2026-01-31T12:11:30Z")}
    progress.take_change_and_heartbeat_lines(jobs, NOON)
    assert progress.take_change_and_heartbeat_lines(jobs, NOON + 12 * 60 + 5) == [
        f"waiting: 0 of 3 jobs done; a {state} for 12 min, as {why}",
    ]


def test_queued_jobs_are_named_once_a_minute() -> None:
    progress = Progress()
    said = []
    for second in range(0, 600, 10):
        jobs = {"a": job("QUEUED"), "b": search("RUNNING", second // 10, 100)}
        said += progress.take_change_and_heartbeat_lines(jobs, NOON + second)
    waits = [line for line in said if "a QUEUED for" in line]
    assert 7 <= len(waits) <= 9
    assert len(said) == 61 + len(waits)


def test_the_longest_queued_jobs_are_named() -> None:
    progress = Progress()
    jobs = {f"j{number}": job("QUEUED", createTime=f"2026-01-31T12:0{number}:00Z") for number in reversed(range(8))}
    progress.take_change_and_heartbeat_lines(jobs, NOON)
    (line,) = progress.take_change_and_heartbeat_lines(jobs, NOON + 600)
    assert "; j0, j1, j2, j3, j4 and 3 more QUEUED for 10 min" in line


def test_a_started_job_reports_its_queue_time() -> None:
    progress = Progress()
    soon, late = "2026-01-31T12:00:59Z", "2026-01-31T12:07:01Z"
    jobs = {"a": job("RUNNING", startTime=late), "b": job("RUNNING", startTime=soon)}
    assert progress.take_change_and_heartbeat_lines(jobs, NOON + 500) == [
        "a: RUNNING after 7 min in the queue",
        "b: RUNNING",
    ]


def test_a_slow_clock_shows_no_negative_time() -> None:
    progress = Progress()
    jobs = {"a": job("QUEUED")}
    progress.take_change_and_heartbeat_lines(jobs, NOON - 500)
    assert progress.take_change_and_heartbeat_lines(jobs, NOON - 400) == ["waiting: 0 of 1 jobs done"]


@pytest.mark.parametrize(
    ("before", "now", "line"),
    [
        ({"state": "JOB_STATE_QUEUED"}, {"state": "JOB_STATE_SUCCEEDED"}, "a: QUEUED → SUCCEEDED"),
        ({"state": "JOB_STATE_RUNNING"}, {"state": "JOB_STATE_FAILED", "error": "why"}, "a: RUNNING → FAILED: why"),
        (
            {"state": "JOB_STATE_RUNNING", "trials": {"ended": 1.0, "of": 4.0}},
            {"state": "JOB_STATE_RUNNING", "trials": {"ended": 2, "of": 4}},
            "a: RUNNING, 2 of 4 trials done",
        ),
        (
            {"state": "JOB_STATE_RUNNING", "trials": {"ended": 1.0, "of": 4.0}},
            {"state": "JOB_STATE_RUNNING", "trials": {"ended": 1, "of": 4}},
            None,
        ),
        ({}, {"state": "JOB_STATE_RUNNING"}, "a: RUNNING"),
    ],
)
def test_a_refresh_describes_each_change(before: dict[str, Any], now: dict[str, Any], line: str | None) -> None:
    assert describe_run_summary_change_or_none("a", before, now) == line
