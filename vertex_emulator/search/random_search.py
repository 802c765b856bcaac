"""RANDOM_SEARCH: every point as likely as the next, on the parameters' own scales."""

from random import Random

from vertex_emulator.search.parameter_domains import Value
from vertex_emulator.search.parameter_space import Space, map_values_by_id


def suggest_random_point(space: Space, observation_count: int, seed: int) -> dict[str, Value]:
    """Suggest a random point, determined by `seed` and the number of observations."""
    return draw_random_point(space, create_seeded_generator(seed, "random", observation_count))


def draw_random_point(space: Space, random: Random) -> dict[str, Value]:
    """Draw a random point: uniform on each active parameter's scale, uniform among listed values."""
    return map_values_by_id(
        space.choose_values_by_parameter(lambda parameter: parameter.domain.get_value_at_quantile(random.random()))
    )


def create_seeded_generator(*seed_parts: int | str) -> Random:
    """Create a random generator, the same for equal keys in every process (SHA-512 of a string seed)."""
    return Random("/".join(map(str, seed_parts)))
