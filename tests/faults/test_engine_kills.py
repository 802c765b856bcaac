"""The short form of `python -m tests.faults.engine_kills`, which kills 100 times in a stack of 20 jobs."""

from tests.faults.engine_kills import kill


def test_killing_pulumi_neither_duplicates_nor_loses_jobs() -> None:
    report = kill(kills=3, seed=42, jobs=4)
    assert report.wrong == []
    assert report.killed == 3


def test_kills_and_a_faulty_api_neither_duplicate_nor_lose_jobs() -> None:
    report = kill(kills=2, seed=7, jobs=4, faulty_api=True)
    assert report.wrong == []
    assert report.killed == 2
