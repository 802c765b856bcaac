"""GRID_SEARCH: every point of a finite space in turn."""

from collections.abc import Sequence

from vertex_emulator.errors import SearchSpaceExhausted
from vertex_emulator.search.domain import Value
from vertex_emulator.search.observation import Observation
from vertex_emulator.search.space import Space, key


def suggest(space: Space, observations: Sequence[Observation]) -> dict[str, Value]:
    """The first point of the grid that no observation has, whatever became of the others.

    Points come in the order of the study's parameters and of their values, the last parameter fastest. Raises
    `SearchSpaceExhausted` when there is none left, and ValueError when a parameter is a continuum.
    """
    seen = {key(observation.parameters) for observation in observations}
    for point in space.points():
        if key(point) not in seen:
            return point
    raise SearchSpaceExhausted(f"all {len(seen)} points of the grid have a trial")
