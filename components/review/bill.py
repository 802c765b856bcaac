"""What an update costs: the jobs that it runs, and which costs grow out of proportion."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from vertex_api.estimates.cost import Cost, show_nearest
from vertex_api.estimates.prices import CURRENCY, ZERO

from ..plan.guardrails import FIGURES
from ..plan.plan import PERSISTENT_RESOURCE, Plan
from .changes import JobFinding
from .sides import plan_name


@dataclass(frozen=True)
class Bill:
    """What the `jobs` cost that an update runs, of `job_count` that the stack has after it.

    `ceiling` is the sum if each runs until its timeout, and `expected` that of the `expected_count` jobs which have run
    before, both in USD. `machines` are USD an hour of a persistent resource before and after, if they differ: it has no
    end. `without_timeout`, `unpriced` and `unknown` name jobs that run: the ceiling lacks the last two.
    `nearest` says what is counted with the price of another region, "" for nothing.
    """

    jobs: tuple[str, ...]
    job_count: int
    ceiling: float
    expected: float
    expected_count: int
    machines: tuple[float, float] | None
    without_timeout: tuple[str, ...]
    unpriced: tuple[str, ...]
    unknown: tuple[str, ...]
    nearest: str


def of(before: Plan | None, plan: Plan, run: Iterable[JobFinding]) -> Bill:
    """Return the bill of an update, after which `plan` holds and which runs these jobs."""
    names = [plan_name(plan, job.type, job.name) for job in run]
    old, new = (float(side.costs.get(PERSISTENT_RESOURCE, Cost()).hourly) if side else 0.0 for side in (before, plan))
    jobs = [name for name in names if name in plan.costs or name in plan.unknown]
    costs = {name: plan.costs[name] for name in jobs if name in plan.costs}
    expected = [plan.expected[name] for name in jobs if name in plan.expected]
    others = [name for name in plan.submitted if name != PERSISTENT_RESOURCE]
    return Bill(
        tuple(jobs),
        len(others) + len(plan.unknown),
        sum((cost.total for cost in costs.values()), ZERO),
        sum(expected, ZERO),
        len(expected),
        (old, new) if old != new else None,
        tuple(name for name, cost in costs.items() if not cost.has_timeout),
        tuple(name for name, cost in costs.items() if cost.unpriced),
        tuple(name for name in jobs if name in plan.unknown),
        show_nearest(costs.values()),
    )


@dataclass(frozen=True)
class Growth:
    """The costs of a job or a schedule that grow: each unit, such as `USD at most`, with both amounts.

    `name` is empty for the sum of all.
    """

    name: str
    amounts: tuple[tuple[str, float, float], ...]

    @property
    def factor(self) -> float:
        """How many times as much the one is that grows most."""
        return max(new / old for _, old, new in self.amounts)


def growths(before: Plan, after: Plan, factor: float) -> Iterator[Growth]:
    """Find the costs that grow by more than a factor: of jobs and schedules, or else of all together."""
    old, new = _amounts(before), _amounts(after)
    found = [
        Growth(name, grown)
        for name in old
        if name and name in new and (grown := tuple(_grown(old[name], new[name], factor)))
    ]
    yield from sorted(found, key=lambda each: -each.factor)
    if not found and (grown := tuple(_grown(old[""], new[""], factor))):
        yield Growth("", grown)


def _amounts(plan: Plan) -> dict[str, dict[str, float]]:
    """Return what each job and schedule costs, and under "" the sums, by unit."""
    found: dict[str, dict[str, float]] = {"": {each.unit: each.sum(plan.costs.values()) for each in FIGURES}}
    for name, cost in plan.costs.items():
        found[name] = {each.unit: each.of(cost) for each in FIGURES if each.is_countable(cost)}
    month = f"{CURRENCY} a month"
    for name, amount in plan.monthly.items():
        found.setdefault(name, {})[month] = amount
    found[""][month] = sum(plan.monthly.values(), ZERO)
    return found


def _grown(old: Mapping[str, float], new: Mapping[str, float], factor: float) -> Iterator[tuple[str, float, float]]:
    for unit, amount in old.items():
        if amount > 0 and max(amount, factor * amount) < new.get(unit, 0):
            yield unit, amount, new[unit]
