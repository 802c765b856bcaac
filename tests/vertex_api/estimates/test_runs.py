"""Runs of jobs: the line of each, the record of the last ones, and what they would cost."""

from dataclasses import replace
from typing import Any

import pytest

from tests.vertex_api.estimates.test_cost import N1_STANDARD_4, POOLS, REGION, SSD_100, pool
from tests.vertex_api.jobs import custom_job, edited, tuning_job, tuning_pipeline
from vertex_api.estimates.cost import estimate_cost
from vertex_api.estimates.prices import bundled_prices
from vertex_api.estimates.runs import MAX_RUNS, Past, Run, extended, span
from vertex_api.job import TUNING_JOB, Job
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind

HOURLY = N1_STANDARD_4 + SSD_100
TIMES = {"startTime": "2026-11-26T12:00:00.5Z", "endTime": "2026-11-26T14:00:00.7Z"}


def job(*pools: dict[str, Any], **job_spec: Any) -> dict[str, Any]:
    fields = edited(custom_job(), *POOLS, to=[*pools] or [pool("n1-standard-4")])
    fields["jobSpec"].update(job_spec)
    return fields


def run_of(fields: dict[str, Any], kind: Kind = CUSTOM_JOB, is_billed: bool = True, **metrics: float) -> Run | None:
    return Run.of(kind, fields, REGION, bundled_prices() if is_billed else None, metrics)


def past(record: str, *pools: dict[str, Any], **job_spec: Any) -> Past | None:
    now = Job(CUSTOM_JOB, job(*pools, **job_spec))
    return Past.of(record, now, estimate_cost(now, REGION, bundled_prices()))


def line(day: int, seconds: int, machines: str = "1 n1-standard-4") -> str:
    return str(Run(f"2026-11-{day:02}T09:00:00Z", seconds, machines, seconds))


def test_a_line_has_time_machines_cost_metrics() -> None:
    workers = pool("n1-standard-8", 3, acceleratorType="NVIDIA_TESLA_T4", acceleratorCount=2)
    run = run_of(job(pool("n1-standard-4"), {}, workers) | TIMES, accuracy=0.97221, loss=0.1)
    assert run and run.cost == pytest.approx(run.hourly * 2)
    assert str(run) == (
        f"2026-11-26T14:00:00Z 7200 s on 1 n1-standard-4 and 3 n1-standard-8 with 2 NVIDIA_TESLA_T4: {run.cost} at "
        f"{run.hourly:.4f} an hour; accuracy 0.9722, loss 0.1"
    )


def test_a_search_costs_the_hours_of_its_trials() -> None:
    times = [("12:00", "12:30"), ("12:00", "13:00"), ("12:30", "14:00")]
    trials = [
        {"startTime": f"2026-11-26T{start}:00Z", "endTime": f"2026-11-26T{end}:00Z", "state": "SUCCEEDED"}
        for start, end in times
    ]
    search = edited(tuning_job(), "trialJobSpec", "workerPoolSpecs", to=[pool("n1-standard-4")])
    search |= {"parallelTrialCount": 2, "trials": [*trials, {"state": "REQUESTED"}]} | TIMES
    pools = search["trialJobSpec"]["workerPoolSpecs"]
    whole = edited(tuning_pipeline(), "trainingTaskInputs", "trialJobSpec", "workerPoolSpecs", to=pools)
    for found in (
        run_of(search, HYPERPARAMETER_TUNING_JOB),
        run_of(whole | {TUNING_JOB: search} | TIMES, TRAINING_PIPELINE),
    ):
        assert found and (found.seconds, found.busy, found.trials) == (7200, 10800, 3)
        assert found.cost == pytest.approx(3 * HOURLY)
        assert " 7200 s, 10800 s of 3 trials on 1 n1-standard-4: 0.74 USD at 0.2453 an hour" in str(found)


@pytest.mark.parametrize(
    ("fields", "is_billed"),
    [
        (job(), False),
        (job(pool("a4-highgpu-8g")), True),
        (job(persistentResourceId="training"), True),
        (tuning_job(), True),  # without trials, their time is unknown
    ],
)
def test_what_has_no_price_has_no_cost(fields: dict[str, Any], is_billed: bool) -> None:
    kind = HYPERPARAMETER_TUNING_JOB if "studySpec" in fields else CUSTOM_JOB
    run = run_of(fields | TIMES, kind, is_billed=is_billed)
    assert run and run.cost is None and "USD" not in str(run)
    assert ("on this machine, declared for 1 n1-standard-4" in str(run)) is not is_billed


def test_a_job_that_never_ran_is_no_run() -> None:
    assert run_of(job() | {"endTime": TIMES["endTime"]}) is None


@pytest.mark.parametrize(
    "run",
    [
        Run("2026-11-26T14:00:00Z", 7, "1 n1-standard-4", 7),
        Run("2026-11-26T14:00:00Z", 7, "2 a and 1 b with 8 C", 90, 1, 1234.5, "a: b; c on d: 1 USD at 2 an hour 1"),
        Run("2026-11-26T14:00:00Z", 7, "1 a", 7, 0, 0.25, "x" * 1000),
        Run("2026-11-26T14:00:00Z", 7, "1 a", 90, 8, metrics="loss 0.5", is_local=True),
    ],
)
def test_a_line_is_read_back_and_bounded(run: Run) -> None:
    read = Run.parse(str(run))
    assert read and str(read) == str(run) and len(str(run)) <= 400
    assert replace(read, metrics=run.metrics) == run
    foreign = Run.parse(str(run).replace(" USD at ", " EUR at "))
    assert foreign and (foreign.seconds, foreign.hourly) == (run.seconds, None)  # a record outlives the currency


def test_a_record_keeps_the_last_runs_once() -> None:
    record = ""
    for day in (2, 1, 3, 3, *range(4, 15)):
        record = extended(record, line(day, 60))
    assert record.splitlines() == [line(day, 60) for day in range(15 - MAX_RUNS, 15)]
    assert extended("some team's\nown text", line(1, 60)) == line(1, 60)


def test_past_runs_cost_their_seconds_at_today_s_price() -> None:
    record = "\n".join([line(1, 7200), line(2, 10800, "8 n1-standard-96"), "no run", line(3, 9000)])
    found = past(record)
    assert found and found.expected == pytest.approx(HOURLY * 2.5)
    assert str(found) == "the last 3 runs took 0.49 to 0.74 USD (2 to 3 h), 1 of them on other machines"
    doubled = past(record, pool("n1-standard-4", 2))
    assert doubled and doubled.expected == pytest.approx(2 * HOURLY * 2.5)
    assert str(doubled) == "the last 3 runs took 0.98 to 1.47 USD (2 to 3 h), on other machines"


def test_past_runs_without_a_price_have_times_alone() -> None:
    found = past(line(1, 90), persistentResourceId="training")
    assert found and found.expected is None and str(found) == "the last run took 90 s"
    assert past("") is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [((40, 95), "40 to 95 s"), ((420,), "7 min"), ((7560, 10800), "2.1 to 3 h"), ((1, 36000), "0 to 10 h")],
)
def test_durations_share_a_unit(seconds: tuple[float, ...], text: str) -> None:
    assert span(seconds) == text
