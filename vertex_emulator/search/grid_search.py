"""GRID_SEARCH: every point of a finite space in turn."""

from collections.abc import Sequence

from vertex_emulator.errors import SearchSpaceExhausted
from vertex_emulator.search.measurements_and_observations import Observation
from vertex_emulator.search.parameter_domains import Value
from vertex_emulator.search.parameter_space import Space, build_point_key


def require_unseen_grid_point(space: Space, observations: Sequence[Observation]) -> dict[str, Value]:
    """Suggest the first point of the grid that has no trial yet.

    Points come in the order of the study's parameters and of their values, the last parameter fastest. Raises
    `SearchSpaceExhausted` when there is none left, and ValueError when a parameter is a continuum.
    """
    seen_points = {build_point_key(observation.parameters) for observation in observations}
    for point in space.enumerate_points():
        if build_point_key(point) not in seen_points:
            return point
    raise SearchSpaceExhausted(f"all {len(seen_points)} points of the grid have a trial")
