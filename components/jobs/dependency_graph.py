"""Cycles and levels of jobs that depend on one another: those of one level can run at the same time."""

from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

UpstreamJobs = Mapping[str, Collection[str]]
"""By name of a job: the jobs that must have succeeded before it is submitted."""


def find_cycles(upstream_jobs: UpstreamJobs) -> Iterator[list[str]]:
    """Find jobs that come after themselves: `[a, b, a]` if a comes after b, and b after a. No link is in two cycles."""
    remaining = {name: set(others) for name, others in upstream_jobs.items()}
    positions = {name: position for position, name in enumerate(remaining)}
    while True:
        try:
            TopologicalSorter(remaining).prepare()
        except CycleError as error:
            # In the error, each job is followed by one that comes after it.
            cycle = error.args[1][:0:-1]
            first = cycle.index(min(cycle, key=positions.__getitem__))
            cycle = [*cycle[first:], *cycle[: first + 1]]
            yield cycle
            remaining[cycle[0]].discard(cycle[1])
        else:
            return


def compute_level_by_job(upstream_jobs: UpstreamJobs) -> dict[str, int]:
    """Return how many jobs come before each job, one after another: 0 for a job without upstream jobs.

    There must be no cycles.
    """
    levels: dict[str, int] = {}
    for name in TopologicalSorter(upstream_jobs).static_order():
        levels[name] = 1 + max((levels[other] for other in upstream_jobs.get(name, ())), default=-1)
    return levels
