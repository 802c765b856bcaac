"""The short form of `python -m tests.faults.engine_kills`, which kills 100 times in a stack of 20 jobs."""

from tests.faults.engine_kills import kill


def test_killed_at_random_moments_pulumi_leaves_no_job_twice_none_unrecorded_and_none_out() -> None:
    report = kill(kills=3, seed=4, jobs=4)
    assert report.wrong == []
    assert report.killed == 3
