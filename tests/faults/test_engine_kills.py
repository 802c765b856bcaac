"""The short form of `python -m tests.faults.engine_kills`, which kills 100 times in a stack of 20 jobs."""

from tests.faults.engine_kills import kill


def test_killing_pulumi_neither_duplicates_nor_loses_jobs() -> None:
    report = kill(kills=3, seed=42, jobs=4)
    assert report.wrong == []
    assert report.killed == 3
