"""The results of trials as the search sees them: measurements, with their form in the API, and observations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from vertex_api.scalars import to_seconds
from vertex_emulator.search.parameter_domains import Value


@dataclass(frozen=True)
class Measurement:
    """Values of one trial reported together: at `step_count`, `elapsed` seconds after its start, by metric id."""

    step_count: int
    elapsed: float
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Observation:
    """A trial as the search sees it.

    `parameters` by parameter id (active ones only, as suggested), `state` by the API's names, `metrics` by metric id:
    the final measurement, empty when there is none.
    """

    parameters: Mapping[str, Value]
    state: Literal["ACTIVE", "SUCCEEDED", "INFEASIBLE"]
    metrics: Mapping[str, float] = field(default_factory=dict)


def parse_api_measurement(canonical: Mapping[str, Any]) -> Measurement:
    """Parse the API's Measurement message in canonical form."""
    return Measurement(
        step_count=canonical["stepCount"],
        elapsed=to_seconds(canonical["elapsedDuration"]),
        metrics={measurement["metricId"]: measurement["value"] for measurement in canonical["metrics"]},
    )


def serialize_api_measurement(measurement: Measurement) -> dict[str, Any]:
    """Format a measurement as the API's message in canonical form."""
    return {
        "stepCount": measurement.step_count,
        "elapsedDuration": f"{measurement.elapsed:.6f}s",
        "metrics": [{"metricId": name, "value": value} for name, value in measurement.metrics.items()],
    }
