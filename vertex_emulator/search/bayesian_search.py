"""The default algorithm: Bayesian optimization with Gaussian processes over the finished trials.

Vertex's own default is of the same family (Golovin et al., Google Vizier, 2017; Song et al., The Vizier Gaussian
Process Bandit Algorithm, 2024). What users may notice as a difference are the first, space-filling trials.
"""

from collections.abc import Sequence
from random import Random

from vertex_api.studies import is_safe, objectives_of, safety_metrics
from vertex_api.types import StudySpec
from vertex_emulator.search.measurements_and_observations import Observation
from vertex_emulator.search.parameter_domains import Value
from vertex_emulator.search.parameter_space import Parameter, Space, build_point_key, map_values_by_id
from vertex_emulator.search.random_search import create_seeded_generator, draw_random_point
from vertex_emulator.search.surrogate_training_targets import (
    fill_missing_and_compress_outliers,
    scalarize_losses_by_trial,
)

# The time of a fit grows with the cube of the points.
_MAX_FITTED_POINTS = 100
_DRAWS_FOR_A_NEW_POINT = 64
_BEST_TRIALS = 5
# The weight of the standard deviation in the confidence bound. For global steps it is that of Vertex's own algorithm
# (Song et al. 2024); for steps near the best trial it is less, or Rosenbrock's valley is not followed (measured).
_GLOBAL_EXPLORATION, _LOCAL_EXPLORATION = 1.8, 0.5

Seen = set[frozenset[tuple[str, Value]]]


def suggest_bayesian_point(
    space: Space, study_spec: StudySpec, observations: Sequence[Observation], seed: int
) -> dict[str, Value]:
    """Suggest the point that most probably improves the objectives, one without a trial while there are any.

    The first max(6, parameters + 2) points are a space-filling design. Then models are fitted to the trials that ended.
    An infeasible trial, or one without a finite value, counts as the worst. A running trial counts as if it met its
    prediction, so that parallel trials differ. Several objectives are weighted at random for each suggestion, which
    covers all trade-offs in time (ParEGO, Knowles 2006). Safety metrics have models of their own: an improvement counts
    as far as it is likely to be safe. A point is drawn at random while there is nothing to learn from, and if the fit
    fails.
    """
    random = create_seeded_generator(seed, "bayesian", len(observations))
    design_size = max(6, len(space.distinct_parameters) + 2)
    seen_points = {build_point_key(observation.parameters) for observation in observations}
    proposed: dict[str, Value] | None
    if len(observations) < design_size:
        proposed = _draw_latin_hypercube_point(space, len(observations), design_size, seed)
        if build_point_key(proposed) in seen_points:
            proposed = None
    else:
        proposed = _fit_models_and_propose_point_or_none(space, study_spec, observations, seen_points, random)
    return _draw_preferably_unseen_point(space, seen_points, random) if proposed is None else proposed


def _draw_latin_hypercube_point(space: Space, index: int, size: int, seed: int) -> dict[str, Value]:
    """Draw point `index` of a Latin hypercube of `size` points, each in its own slice of every axis."""

    def draw_value(parameter: Parameter) -> Value:
        random = create_seeded_generator(seed, "design", axes.index(parameter))
        slices = random.sample(range(size), size)
        return parameter.domain.get_value_at_quantile((slices[index] + random.random()) / size)

    axes = space.distinct_parameters
    return map_values_by_id(space.choose_values_by_parameter(draw_value))


def _fit_models_and_propose_point_or_none(
    space: Space, study_spec: StudySpec, observations: Sequence[Observation], seen_points: Seen, random: Random
) -> dict[str, Value] | None:
    # Imported here because they load numpy and egobox.
    import numpy as np

    from vertex_emulator.search import acquisition_maximization, surrogate_model
    from vertex_emulator.search.point_encoder import PointEncoder
    from vertex_emulator.search.safe_confidence_bound import Acquisition

    encoder = PointEncoder(space)
    ended = [observation for observation in observations if observation.state != "ACTIVE"]
    objectives = objectives_of(study_spec)
    weights = [random.expovariate(1) for _ in objectives]
    losses_by_objective = [fill_missing_and_compress_outliers(goal.loss, ended) for goal in objectives]
    losses = scalarize_losses_by_trial(losses_by_objective, weights)
    if not encoder.varied_parameters or not losses:
        return None
    indices_best_first = _rank_trial_indices(study_spec, losses, ended)
    fitted = _select_best_and_newest_indices(indices_best_first)
    rows = np.array([encoder.encode_point(ended[index].parameters) for index in fitted])
    features = encoder.convert_to_features(rows)
    running = [encoder.encode_point(trial.parameters) for trial in observations if trial.state == "ACTIVE"]

    def try_to_fit_conditioned_model(values: Sequence[float]) -> surrogate_model.Surrogate | None:
        observed = np.array([values[index] for index in fitted])
        model = surrogate_model.try_to_fit_surrogate(features, observed, random.getrandbits(31))
        if model is None or not running:
            return model
        return model.condition_on_pending(encoder.convert_to_features(np.array(running)))

    excess_lists = [
        excesses
        for safety in safety_metrics(study_spec)
        if (excesses := fill_missing_and_compress_outliers(safety.shortfall, ended))
    ]
    objective = try_to_fit_conditioned_model(losses)
    safety_models = [model for model in map(try_to_fit_conditioned_model, excess_lists) if model is not None]
    if objective is None and not safety_models:
        return None
    best = [fitted.index(index) for index in indices_best_first[:_BEST_TRIALS] if index in fitted]
    # Every other suggestion stays near the best trial: the local step of trust region methods.
    if len(observations) % 2:
        sample, exploration_weight = acquisition_maximization.sample_points_near_best_trial, _LOCAL_EXPLORATION
    else:
        sample, exploration_weight = acquisition_maximization.sample_points_globally_and_near_best, _GLOBAL_EXPLORATION
    required_probability = _compute_required_safe_probability(study_spec, ended)
    acquisition = Acquisition(objective, safety_models, required_probability, exploration_weight)
    generated = np.random.default_rng(random.getrandbits(32))
    points = sample(encoder, rows[best], generated)
    rows_by_score = acquisition_maximization.refine_and_rank_points(encoder, acquisition, points, generated)
    proposals = map(encoder.decode_row, rows_by_score)
    return next((point for point in proposals if build_point_key(point) not in seen_points), None)


def _rank_trial_indices(study_spec: StudySpec, losses: list[float], ended_trials: Sequence[Observation]) -> list[int]:
    """Return the indices of the trials by loss; unsafe and unsuccessful ones come last."""

    def rank_with_unsafe_last(index: int) -> tuple[bool, float]:
        trial = ended_trials[index]
        return trial.state != "SUCCEEDED" or not is_safe(study_spec, trial.metrics), losses[index]

    return sorted(range(len(ended_trials)), key=rank_with_unsafe_last)


def _select_best_and_newest_indices(indices_best_first: Sequence[int]) -> list[int]:
    """Select which trials to fit, in order: all up to `_MAX_FITTED_POINTS`, else the best half and the newest."""
    newest = reversed(range(len(indices_best_first)))
    return sorted(list(dict.fromkeys([*indices_best_first[: _MAX_FITTED_POINTS // 2], *newest]))[:_MAX_FITTED_POINTS])


def _draw_preferably_unseen_point(space: Space, seen_points: Seen, random: Random) -> dict[str, Value]:
    """Draw a random point without a trial; any point if the space is exhausted."""
    for _ in range(_DRAWS_FOR_A_NEW_POINT):
        drawn = draw_random_point(space, random)
        if build_point_key(drawn) not in seen_points:
            return drawn
    if space.is_finite:
        return next((other for other in space.enumerate_points() if build_point_key(other) not in seen_points), drawn)
    return drawn


def _compute_required_safe_probability(study_spec: StudySpec, ended_trials: Sequence[Observation]) -> float:
    """Compute how probably the next point must be safe: the desired fraction, unless more trials are safe."""
    succeeded = (trial for trial in ended_trials if trial.state == "SUCCEEDED")
    safe = sum(is_safe(study_spec, trial.metrics) for trial in succeeded)
    fraction = max((metric.min_safe_fraction for metric in safety_metrics(study_spec)), default=0.0)
    return fraction if safe <= fraction * len(ended_trials) else 0.0
