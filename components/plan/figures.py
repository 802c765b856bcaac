"""Figures: the numbers that previews and reviews show of each job and of all, and the guardrails that limit them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from vertex_api.estimates.cost import Cost
from vertex_api.estimates.prices import CURRENCY, Money


@dataclass(frozen=True)
class Figure:
    """A number of each job and of all that previews and reviews show, and the guardrail that limits it, if any.

    `name` is that of the attribute of a Cost, `sum_name` what reviews in JSON call the sum, `column` what heads the
    numbers of each job, and `unit` what stands behind a sum. `show` formats a number. `missing` names what a job lacks
    for its number to be known.
    """

    name: str
    sum_name: str
    column: str
    unit: str
    rule: str = ""
    show: Callable[[float], str] = lambda usd: Money(usd).digits
    missing: Callable[[Cost], Sequence[str]] = lambda cost: cost.unpriced

    def of(self, cost: Cost) -> float:
        """Return the number of one job; infinite for a total without an end."""
        return float(getattr(cost, self.name))

    def is_countable(self, cost: Cost) -> bool:
        """Whether sums have the number of a job: it is known, and has an end."""
        return not self.missing(cost) and isfinite(self.of(cost))

    def sum(self, costs: Iterable[Cost]) -> float:
        """Return the sum of those that are countable."""
        return sum(self.of(cost) for cost in costs if self.is_countable(cost))


FIGURES = (
    Figure("hourly", "hourly", "an hour", f"{CURRENCY} an hour", "maxHourlyCost"),
    Figure("total", "ceiling", "at most", f"{CURRENCY} at most", "maxTotalCost"),
)
