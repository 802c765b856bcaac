"""The scales of a parameter: where a value lies between its bounds, from 0 to 1, and back."""

import math
from typing import Literal

Scale = Literal["SCALE_TYPE_UNSPECIFIED", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"]


def scale_to_unit(value: float, lower: float, upper: float, scale: Scale) -> float:
    """Return the position of `value` from 0 (`lower`) to 1 (`upper`); 0.5 where the bounds are equal.

    A log scale spreads out the values near `lower`, a reverse log scale those near `upper` (discovery document,
    ScaleType); both need `lower` above 0.
    """
    if lower == upper:
        return 0.5
    if scale == "UNIT_LOG_SCALE":
        return math.log(value / lower) / math.log(upper / lower)
    if scale == "UNIT_REVERSE_LOG_SCALE":
        return 1 - scale_to_unit(lower + upper - value, lower, upper, "UNIT_LOG_SCALE")
    return (value - lower) / (upper - lower)


def scale_from_unit(unit: float, lower: float, upper: float, scale: Scale) -> float:
    """Return the value at position `unit`, the inverse of `scale_to_unit`; it is always within the bounds."""
    if scale == "UNIT_LOG_SCALE":
        value = math.exp(math.log(lower) * (1 - unit) + math.log(upper) * unit)
    elif scale == "UNIT_REVERSE_LOG_SCALE":
        value = lower + upper - scale_from_unit(1 - unit, lower, upper, "UNIT_LOG_SCALE")
    else:
        value = lower * (1 - unit) + upper * unit
    return min(max(value, lower), upper)
