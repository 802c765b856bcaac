"""The short form of `python -m tests.faults.engine_kills`, which kills 100 times in a stack of 20 jobs."""

from tests.faults.engine_kills import kill

SEED = 250
"""It kills the provider, then the engine, then all processes of an `up`, and ends with a clean `up` and `destroy`."""


def test_kills_neither_duplicate_nor_lose_jobs() -> None:
    report = kill(kills=3, seed=SEED, jobs=4, faulty_api=True)
    assert report.wrong == []
    assert report.killed == 3
