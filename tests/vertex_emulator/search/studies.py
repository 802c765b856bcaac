"""Studies for tests: parameters of every kind, and functions with a known optimum."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from vertex_emulator.search import Observation, suggest

Value = float | int | str

SCALES = ["SCALE_TYPE_UNSPECIFIED", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"]


def study(*parameters: dict[str, Any], algorithm: str | None = None, goal: str | None = "MINIMIZE") -> Any:
    metric = {"metricId": "loss"} | ({"goal": goal} if goal else {})
    return {"metrics": [metric], "parameters": list(parameters)} | ({"algorithm": algorithm} if algorithm else {})


def double(name: str, lower: float, upper: float, scale: str = "UNIT_LINEAR_SCALE") -> dict[str, Any]:
    return {"parameterId": name, "scaleType": scale, "doubleValueSpec": {"minValue": lower, "maxValue": upper}}


def integer(name: str, lower: int, upper: int, scale: str = "UNIT_LINEAR_SCALE") -> dict[str, Any]:
    return {"parameterId": name, "scaleType": scale, "integerValueSpec": {"minValue": lower, "maxValue": upper}}


def discrete(name: str, *values: float, scale: str = "UNIT_LINEAR_SCALE") -> dict[str, Any]:
    return {"parameterId": name, "scaleType": scale, "discreteValueSpec": {"values": list(values)}}


def categorical(name: str, *values: str) -> dict[str, Any]:
    return {"parameterId": name, "categoricalValueSpec": {"values": list(values)}}


def under(values: list[Any], child: dict[str, Any], kind: str = "parentCategoricalValues") -> dict[str, Any]:
    return {kind: {"values": values}, "parameterSpec": child}


def parent(parameter: dict[str, Any], *conditions: dict[str, Any]) -> dict[str, Any]:
    return parameter | {"conditionalParameterSpecs": list(conditions)}


def every_kind() -> Any:
    """A study with each kind of parameter on each scale that it may have."""
    numeric = [
        parameter
        for number, scale in enumerate(SCALES)
        for parameter in (
            double(f"double{number}", 1e-4, 0.5, scale),
            integer(f"integer{number}", 2, 9, scale),
            discrete(f"discrete{number}", 0.5, 2, 64, scale=scale),
        )
    ]
    return study(*numeric, categorical("categorical", "sgd", "adam", "lion"), double("negative", -3, -1))


def conditional() -> Any:
    """An optimizer whose values decide on momentum or one of two ranges of `lr`, and layers with a width each."""
    return study(
        parent(
            categorical("optimizer", "sgd", "adam", "none"),
            under(["sgd"], double("momentum", 0.1, 0.9)),
            under(["sgd"], double("lr", 0.1, 1, "UNIT_LOG_SCALE")),
            under(["adam"], double("lr", 1e-5, 1e-2, "UNIT_LOG_SCALE")),
        ),
        parent(integer("layers", 1, 3), under([2, 3], parent(discrete("width", 16, 32.5)), "parentIntValues")),
    )


def succeeded(parameters: Mapping[str, Value], value: float) -> Observation:
    return Observation(parameters, "SUCCEEDED", {"loss": value})


def run(study_spec: Any, trials: int, seed: int, loss: Callable[[Mapping[str, Any]], float]) -> list[Observation]:
    """A study of `trials` trials one after another."""
    observations: list[Observation] = []
    for _ in range(trials):
        parameters = suggest(study_spec, observations, seed)
        observations.append(succeeded(parameters, loss(parameters)))
    return observations


def best(observations: list[Observation]) -> float:
    return min(observation.metrics["loss"] for observation in observations)


def branin(point: Mapping[str, Any]) -> float:
    """Regret on Branin's function, with `x` from -5 to 10 and `y` from 0 to 15; its three minima are 0."""
    x, y = point["x"], point["y"]
    bowl = (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.39788735772973816


def branin_study(algorithm: str | None = None, goal: str | None = "MINIMIZE") -> Any:
    return study(double("x", -5, 10), double("y", 0, 15), algorithm=algorithm, goal=goal)
