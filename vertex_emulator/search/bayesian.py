"""The default algorithm: Gaussian processes over the finished trials say where the next one pays most.

Vertex's own default is of the same family (Golovin et al., Google Vizier, 2017; Song et al., The Vizier Gaussian
Process Bandit Algorithm, 2024). Differences that a user can notice are the first, space-filling trials.
"""

from collections.abc import Sequence
from random import Random

from vertex_api.studies.metrics import is_safe, list_objectives, list_safety_metrics
from vertex_api.types import StudySpec
from vertex_emulator.search import proposals, surrogate
from vertex_emulator.search.acquisition import Acquisition
from vertex_emulator.search.candidates import Candidates
from vertex_emulator.search.domain import Value
from vertex_emulator.search.losses import scalarised, with_failures
from vertex_emulator.search.observation import Observation
from vertex_emulator.search.random_search import generator, point
from vertex_emulator.search.space import Parameter, Space, by_id, key

# The time of a fit grows with the cube of the points.
_FITTED_POINTS = 100
_DRAWS_FOR_A_NEW_POINT = 64
_BEST_TRIALS = 5
# How many standard deviations below the mean a loss is hoped for. Everywhere the coefficient of Vertex's own algorithm
# (Song et al. 2024); near the best trial less, or Rosenbrock's valley is not followed (measured).
_OPTIMISM_EVERYWHERE, _OPTIMISM_NEAR_THE_BEST = 1.8, 0.5

Seen = set[frozenset[tuple[str, Value]]]


def suggest(space: Space, study_spec: StudySpec, observations: Sequence[Observation], seed: int) -> dict[str, Value]:
    """The point with the best prospect of improving the objectives, one that has no trial if others are left.

    The first max(6, parameters + 2) points fill the space evenly. From then on models are fitted to the trials that
    ended: an infeasible one (or one without a finite value) counts as the worst, a running one as if it came out as
    predicted, so that parallel trials spread. Several objectives are weighed at random for each suggestion, so that in
    time all of their trade-offs are tried (ParEGO, Knowles 2006). Safety metrics have models of their own: an
    improvement counts as far as it is likely to be safe. A point is drawn at random while there is nothing to learn
    from, and when the fit fails.
    """
    random = generator(seed, "bayesian", len(observations))
    design_size = max(6, len(space.axes) + 2)
    seen = {key(observation.parameters) for observation in observations}
    proposed: dict[str, Value] | None
    if len(observations) < design_size:
        proposed = _design_point(space, len(observations), design_size, seed)
        if key(proposed) in seen:
            proposed = None
    else:
        proposed = _modelled_point(space, study_spec, observations, seen, random)
    return _new_point(space, seen, random) if proposed is None else proposed


def _design_point(space: Space, index: int, size: int, seed: int) -> dict[str, Value]:
    """One point of a Latin hypercube: `size` points, each in a slice of its own on every axis."""

    def value(parameter: Parameter) -> Value:
        random = generator(seed, "design", axes.index(parameter))
        slices = random.sample(range(size), size)
        return parameter.domain.draw((slices[index] + random.random()) / size)

    axes = space.axes
    return by_id(space.choose(value))


def _modelled_point(
    space: Space, study_spec: StudySpec, observations: Sequence[Observation], seen: Seen, random: Random
) -> dict[str, Value] | None:
    import numpy as np

    candidates = Candidates(space)
    ended = [observation for observation in observations if observation.state != "ACTIVE"]
    goals = list_objectives(study_spec)
    weights = [random.expovariate(1) for _ in goals]
    losses = scalarised([with_failures(goal.loss, ended) for goal in goals], weights)
    if not candidates.axes or not losses:
        return None
    safe = _safe_first(study_spec, losses, ended)
    fitted = _informative(safe)
    rows = np.array([candidates.row(ended[index].parameters) for index in fitted])
    running = [candidates.row(trial.parameters) for trial in observations if trial.state == "ACTIVE"]

    def model(values: Sequence[float]) -> surrogate.Surrogate | None:
        chosen = np.array([values[index] for index in fitted])
        found = surrogate.fit(candidates.features(rows), chosen, random.getrandbits(31))
        return found.believing(candidates.features(np.array(running))) if found is not None and running else found

    limits = [
        excesses for safety in list_safety_metrics(study_spec) if (excesses := with_failures(safety.excess, ended))
    ]
    objective = model(losses)
    limited = [found for found in map(model, limits) if found is not None]
    if objective is None and not limited:
        return None
    best = [fitted.index(index) for index in safe[:_BEST_TRIALS] if index in fitted]
    # Every other suggestion stays near the best trial: the local step of trust region methods.
    if len(observations) % 2:
        begin, optimism = proposals.near_the_best, _OPTIMISM_NEAR_THE_BEST
    else:
        begin, optimism = proposals.everywhere, _OPTIMISM_EVERYWHERE
    acquisition = Acquisition(objective, limited, _required_safety(study_spec, ended), optimism)
    generated = np.random.default_rng(random.getrandbits(32))
    points = begin(candidates, rows[best], generated)
    found = proposals.refined(candidates, acquisition, points, generated)
    return next((point for row in found if key(point := candidates.point(row)) not in seen), None)


def _safe_first(study_spec: StudySpec, losses: Sequence[float], ended: Sequence[Observation]) -> list[int]:
    """The trials by loss, those that are not safe or did not succeed after all others."""

    def rank(index: int) -> tuple[bool, float]:
        trial = ended[index]
        return trial.state != "SUCCEEDED" or not is_safe(study_spec, trial.metrics), losses[index]

    return sorted(range(len(ended)), key=rank)


def _informative(order: Sequence[int]) -> list[int]:
    """Which trials to fit, in their order: all up to `_FITTED_POINTS`, else the best half and the newest."""
    newest = reversed(range(len(order)))
    return sorted(list(dict.fromkeys([*order[: _FITTED_POINTS // 2], *newest]))[:_FITTED_POINTS])


def _new_point(space: Space, seen: Seen, random: Random) -> dict[str, Value]:
    """A random point without a trial; in an exhausted space any point."""
    for _ in range(_DRAWS_FOR_A_NEW_POINT):
        drawn = point(space, random)
        if key(drawn) not in seen:
            return drawn
    if space.is_finite:
        return next((other for other in space.points() if key(other) not in seen), drawn)
    return drawn


def _required_safety(study_spec: StudySpec, ended: Sequence[Observation]) -> float:
    """Return how probably the next point must be safe: the desired fraction, unless more of the trials are safe."""
    safe = sum(trial.state == "SUCCEEDED" and is_safe(study_spec, trial.metrics) for trial in ended)
    fraction = max((metric.min_safe_fraction for metric in list_safety_metrics(study_spec)), default=0.0)
    return fraction if safe <= fraction * len(ended) else 0.0
