"""Functions with a known minimum, as studies: the subjects of the tuning benchmark."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Point = Mapping[str, Any]


@dataclass(frozen=True)
class SyntheticStudy:
    """A study whose minimum is 0 under `regret`; `one_at_a_time` and `four_at_a_time` are what it is held against."""

    name: str
    parameters: list[dict[str, Any]]
    regret: Callable[[Point], float]
    one_at_a_time: float | None = None
    four_at_a_time: float | None = None

    def spec(self, algorithm: str = "ALGORITHM_UNSPECIFIED") -> dict[str, Any]:
        """Return the StudySpec that asks for the minimum."""
        metrics = [{"metricId": "regret", "goal": "MINIMIZE"}]
        return {"metrics": metrics, "parameters": self.parameters, "algorithm": algorithm}


def double(name: str, lower: float, upper: float, scale: str = "UNIT_LINEAR_SCALE") -> dict[str, Any]:
    """A DOUBLE parameter."""
    return {"parameterId": name, "scaleType": scale, "doubleValueSpec": {"minValue": lower, "maxValue": upper}}


def integer(name: str, lower: int, upper: int) -> dict[str, Any]:
    """An INTEGER parameter."""
    return {"parameterId": name, "integerValueSpec": {"minValue": lower, "maxValue": upper}}


def log_discrete(name: str, *values: float) -> dict[str, Any]:
    """A DISCRETE parameter on a logarithmic scale."""
    return {"parameterId": name, "scaleType": "UNIT_LOG_SCALE", "discreteValueSpec": {"values": list(values)}}


def categorical(name: str, *values: str) -> dict[str, Any]:
    """A CATEGORICAL parameter."""
    return {"parameterId": name, "categoricalValueSpec": {"values": list(values)}}


def _cube(dimensions: int, lower: float, upper: float) -> list[dict[str, Any]]:
    return [double(f"x{axis}", lower, upper) for axis in range(dimensions)]


def _branin(point: Point) -> float:
    x, y = 15 * point["x0"] - 5, 15 * point["x1"]
    bowl = (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
    return float(bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.39788735772973816)


_HARTMANN_A = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
_HARTMANN_P = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)


def _hartmann(point: Point) -> float:
    total = 3.32236801141551
    for weight, row, place in zip((1, 1.2, 3, 3.2), _HARTMANN_A, _HARTMANN_P, strict=True):
        total -= weight * math.exp(
            -sum(a * (point[f"x{i}"] - p) ** 2 for i, (a, p) in enumerate(zip(row, place, strict=True)))
        )
    return max(total, 0.0)


def _rosenbrock(point: Point) -> float:
    x = [point[f"x{axis}"] for axis in range(4)]
    return float(sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(3)))


def _ackley(point: Point) -> float:
    x = [point[f"x{axis}"] for axis in range(5)]
    near = -20 * math.exp(-0.2 * math.sqrt(sum(value**2 for value in x) / 5))
    return near - math.exp(sum(math.cos(2 * math.pi * value) for value in x) / 5) + 20 + math.e


def _levy(point: Point) -> float:
    w = [1 + (point[f"x{axis}"] - 1) / 4 for axis in range(3)]
    middle = sum((value - 1) ** 2 * (1 + 10 * math.sin(math.pi * value + 1) ** 2) for value in w[:-1])
    last = (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return math.sin(math.pi * w[0]) ** 2 + float(middle) + float(last)


def _network(point: Point) -> float:
    """A trainer as users have it: the best rate depends on the batch, the best depth on nothing, adam wins."""
    rate = math.log10(point["rate"]) + 3 - 0.3 * math.log2(point["batch"] / 64)
    decay = (math.log10(point["decay"]) + 4) / 4
    depth = (point["layers"] - 7) / 4
    batch = math.log2(point["batch"] / 64) / 3
    lost = {"adam": 0.0, "sgd": 0.3, "lion": 0.15, "rmsprop": 0.4}[point["optimizer"]]
    return rate**2 + decay**2 + depth**2 + batch**2 + lost


def _model_choice(point: Point) -> float:
    """Three kinds of model with parameters of their own; the network is best, when it is deep enough and wide."""
    if point["model"] == "linear":
        return 0.5 + 0.2 * (math.log10(point["l2"]) + 2) ** 2
    if point["model"] == "trees":
        return 0.2 + 0.1 * ((point["depth"] - 6) / 2) ** 2 + (math.log10(point["shrinkage"]) + 1) ** 2
    width = 0.4 if point["layers"] == 1 else abs(math.log2(point["width"] / 128)) / 4
    return (
        (math.log10(point["rate"]) + 2.5) ** 2
        + ((point["layers"] - 3) / 3) ** 2
        + width
        + (point["dropout"] - 0.2) ** 2
    )


def _conditional(parent_values_field: str, parent_values: list[Any], parameter: dict[str, Any]) -> dict[str, Any]:
    return {parent_values_field: {"values": parent_values}, "parameterSpec": parameter}


_NETWORK_PARAMETERS = [
    double("rate", 1e-6, 1.0, "UNIT_LOG_SCALE"),
    double("decay", 1e-8, 1.0, "UNIT_LOG_SCALE"),
    integer("layers", 1, 12),
    log_discrete("batch", 8, 16, 32, 64, 128, 256, 512),
    categorical("optimizer", "sgd", "rmsprop", "adam", "lion"),
]
_LAYERS_PARAMETER = integer("layers", 1, 6) | {
    "conditionalParameterSpecs": [
        _conditional("parentIntValues", [2, 3, 4, 5, 6], log_discrete("width", 16, 32, 64, 128, 256))
    ]
}
_MODEL_CHOICE_PARAMETERS = [
    categorical("model", "linear", "trees", "network")
    | {
        "conditionalParameterSpecs": [
            _conditional("parentCategoricalValues", ["linear"], double("l2", 1e-6, 10.0, "UNIT_LOG_SCALE")),
            _conditional("parentCategoricalValues", ["trees"], integer("depth", 1, 16)),
            _conditional("parentCategoricalValues", ["trees"], double("shrinkage", 1e-4, 1.0, "UNIT_LOG_SCALE")),
            _conditional("parentCategoricalValues", ["network"], _LAYERS_PARAMETER),
            _conditional("parentCategoricalValues", ["network"], double("rate", 1e-6, 1.0, "UNIT_LOG_SCALE")),
            _conditional("parentCategoricalValues", ["network"], double("dropout", 0.0, 0.9)),
        ]
    }
]

# The numbers: medians over 20 seeds after 50 trials of egobox alone, and of a tree-structured Parzen estimator.
STUDIES = [
    SyntheticStudy("Branin, 2", _cube(2, 0.0, 1.0), _branin, 1e-6, 0.109),
    SyntheticStudy("Hartmann, 6", _cube(6, 0.0, 1.0), _hartmann, 0.014, 0.330),
    SyntheticStudy("Rosenbrock, 4", _cube(4, -2.0, 2.0), _rosenbrock, 3.78, 9.09),
    SyntheticStudy("Ackley, 5", _cube(5, -15.0, 30.0), _ackley, 3.08, 8.83),
    SyntheticStudy("Levy, 3", _cube(3, -10.0, 10.0), _levy, 0.364, 0.271),
    SyntheticStudy("mixed kinds, 5", _NETWORK_PARAMETERS, _network),
    SyntheticStudy("conditional, 8", _MODEL_CHOICE_PARAMETERS, _model_choice),
]
