"""What a study knows of its trials."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

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
