"""Stages: which of the jobs that come after one another can run at the same time.

`above` maps every job to those that have succeeded before it is submitted.
"""

from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

Above = Mapping[str, Collection[str]]


def cycles(above: Above) -> Iterator[list[str]]:
    """Jobs that come after themselves: `[a, b, a]` where a comes after b, and b after a. No link is in two of them."""
    left = {name: set(others) for name, others in above.items()}
    order = {name: place for place, name in enumerate(left)}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # Each of its names stands before one that comes after it.
            ring = error.args[1][:0:-1]
            first = ring.index(min(ring, key=order.__getitem__))
            ring = [*ring[first:], *ring[: first + 1]]
            yield ring
            left[ring[0]].discard(ring[1])
        else:
            return


def levels(above: Above) -> dict[str, int]:
    """How many jobs come one after another before each: 0 for one that comes after none. There are no cycles."""
    found: dict[str, int] = {}
    for name in TopologicalSorter(above).static_order():
        found[name] = 1 + max((found[other] for other in above.get(name, ())), default=-1)
    return found
