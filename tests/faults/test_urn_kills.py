"""Kills while URNs change, a few of them: `python -m tests.faults.urn_kills` has more."""

from tests.faults import urn_kills


def test_kills_touch_no_job_that_moves() -> None:
    assert urn_kills.kill(2, seed=3) == []
