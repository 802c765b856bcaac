"""RANDOM_SEARCH: every point as likely as the next, on the parameters' own scales."""

from collections.abc import Sequence
from random import Random

from vertex_emulator.search.domain import Value
from vertex_emulator.search.observation import Observation
from vertex_emulator.search.space import Space, map_values_by_id


def suggest_random_point(space: Space, observations: Sequence[Observation], seed: int) -> dict[str, Value]:
    """A random point; which one depends on `seed` and on how many observations there are."""
    return draw_point(space, create_generator(seed, "random", len(observations)))


def draw_point(space: Space, random: Random) -> dict[str, Value]:
    """A point at random: uniform on each active parameter's scale, uniform among listed values."""
    return map_values_by_id(space.assign_values(lambda parameter: parameter.domain.value_at_quantile(random.random())))


def create_generator(*key: int | str) -> Random:
    """A random generator that is the same for the same key in every process (a string seed goes through SHA-512)."""
    return Random("/".join(map(str, key)))
