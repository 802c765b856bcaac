"""The short form of `python -m tests.faults.hostile_load`, which runs for an hour."""

from tests.faults.hostile_load import run


def test_hostile_requests_and_containers_break_no_promise() -> None:
    report = run(seconds=8, seed=7)
    assert report.wrong == []
    assert {"2xx", "4xx", "501", "left"} <= set(report.statuses)
    assert report.jobs
