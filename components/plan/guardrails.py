"""Guardrails: limits that a stack sets for its jobs and machines. A preview fails if one is broken.

A job is checked as it will be submitted: with its vars filled in, the stack's labels, and Vertex AI's default timeout
of seven days if it has none.

A guardrail is a key of `shapes.Guardrails`, and one of `LIMITS` or `FIGURES` (then a review says too how near a
stack is to it) or a few lines of `violations`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import isfinite
from typing import Any

from vertex_api.estimates.cost import Cost, show_nearest
from vertex_api.estimates.prices import CURRENCY, Money
from vertex_api.job import Job
from vertex_api.jobspec import DEFAULT_TIMEOUT, replica_count
from vertex_api.machines import accelerator_of
from vertex_api.messages import KeyPath
from vertex_api.names import either
from vertex_api.scalars import to_seconds
from vertex_api.validation.formats import Violation

from ..schema import interpolation
from ..schema.shapes import Guardrails, Image
from .training import labels_of

Rules = Mapping[str, Any]
"""Those of a stack file, in the shape of `shapes.Guardrails`."""


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


@dataclass(frozen=True)
class Limit:
    """A guardrail on a number of each job, which stands at `path` in the job that trains, or in its pools."""

    rule: str
    noun: str
    count: Callable[[Job], int]
    path: KeyPath = ()


LIMITS = (
    Limit(
        "maxReplicas",
        "replicas in all pools",
        lambda job: sum(replica_count(pool) for pool in job.job_spec["workerPoolSpecs"] if pool),
    ),
    Limit("maxTrials", "trials", lambda job: job.trials if job.study_spec else 0, ("maxTrialCount",)),
    Limit(
        "maxParallelTrials",
        "trials at once",
        lambda job: job.parallel_trials if job.study_spec else 0,
        ("parallelTrialCount",),
    ),
)


MONTHLY = "maxMonthlyCost"
"""The guardrail on what comes back each month; `FIGURES` limit what one `pulumi up` may cost."""
EXPECTED = "maxExpectedCost"
"""The guardrail on what jobs are expected to cost by their earlier runs."""
_WARN, _DEFAULT_WARN_FACTOR = "warnCostFactor", 10.0
NEAR_SHARE = 0.8
"""A guardrail is near from this share of its limit on."""
PATTERNS = ("machineTypes", "acceleratorTypes", "registries")
"""The rules that list what is allowed."""
_MAX_NAMES = 3
_UNKNOWN_YET = "stands for a value that is not known yet, so it cannot be checked; write the value"


@dataclass(frozen=True)
class Near:
    """A guardrail that is nearly reached: by how many, and by which job the most; a sum names none."""

    rule: str
    value: float
    limit: float
    unit: str
    name: str

    @property
    def text(self) -> str:
        """Both numbers, such as `0.78 of 0.97 USD an hour`."""
        amounts = {each.rule: each.show for each in FIGURES} | dict.fromkeys(
            (MONTHLY, EXPECTED), lambda usd: Money(usd).digits
        )
        show = amounts.get(self.rule, "{:,.0f}".format)
        return f"{show(self.value)} of {show(self.limit)}{f' {self.unit}' if self.unit else ''}"


def empty(guardrails: Any) -> Iterator[Violation]:
    """Find what is empty in `guardrails`, as written: it guards nothing. Elsewhere an empty value means "unset"."""
    if guardrails == {}:
        yield (), "is empty, so it limits nothing; take the key away, or give it a rule"
    for rule in Guardrails.__annotations__:
        if isinstance(guardrails, Mapping) and rule in guardrails and guardrails[rule] in (None, []):
            value = "write [none] to allow none" if rule in PATTERNS else "give it a value"
            yield (rule,), f"is empty; remove it, or {value}"


def violations(
    rules: Rules,
    job: Job,
    images: Mapping[str, Image],
    labels: Mapping[str, str],
    built: Collection[str] = (),
) -> Iterator[Violation]:
    """Find every guardrail that a valid job breaks. `labels` are those that the stack gives all its jobs.

    `built` are images that the program builds, without tags: they are pushed to the stack's own registry. A pipeline is
    checked by the job that it runs, and by the image that serves its model.
    """
    if built and "registries" in rules:
        rules = {**rules, "registries": [*rules["registries"], *sorted(built)]}
    training = job.backing
    for path, message in _training_violations(rules, training, images, labels):
        yield job.own_path(path), message
    serving = job.fields.get("modelToUpload", {}).get("containerSpec", {}).get("imageUri")
    yield from _registry_violations(rules, serving, images, ("modelToUpload", "containerSpec", "imageUri"))


def _training_violations(
    rules: Rules, job: Job, images: Mapping[str, Image], labels: Mapping[str, str]
) -> Iterator[Violation]:
    field, fields = job.kind.spec_field, job.fields
    pools: KeyPath = (field, "workerPoolSpecs")
    for index, pool in enumerate(fields[field]["workerPoolSpecs"]):
        at = (*pools, index)
        yield from machine_violations(rules, pool.get("machineSpec", {}), (*at, "machineSpec"))
        for task, image in (("containerSpec", "imageUri"), ("pythonPackageSpec", "executorImageUri")):
            yield from _registry_violations(rules, pool.get(task, {}).get(image), images, (*at, task, image))
    for limit in LIMITS:
        count, most = limit.count(job), rules.get(limit.rule)
        if isinstance(most, int) and count > most:
            message = f"guardrails.{limit.rule}: {count} {limit.noun}; at most {most} are allowed here"
            yield limit.path or pools, message
    timeout, longest = job.timeout, rules.get("maxTimeout")
    at = (field, "scheduling", "timeout")
    if timeout is None and rules.get("requireTimeout"):
        yield at, f'guardrails.requireTimeout: is required here, such as "{longest or "3600s"}"'
    elif longest is not None and job.max_seconds > to_seconds(longest):
        shown = f'"{timeout}"' if timeout else f'seven days ("{DEFAULT_TIMEOUT}"), the default,'
        yield at, f'guardrails.maxTimeout: {shown} is longer than the "{longest}" that is allowed here'
    for label in rules.get("requiredLabels", ()):
        if not labels_of(job, labels).get(label):
            message = f'guardrails.requiredLabels: has no label "{label}"; set it here, or for all jobs in the stack'
            yield ("labels", label), message


def machine_violations(rules: Rules, machine: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find the guardrails that a MachineSpec breaks, of a job or of a persistent resource."""
    types = {"machineType": machine.get("machineType"), "acceleratorType": accelerator_of(machine)[0]}
    for field, value in types.items():
        allowed = rules.get(rule := f"{field}s")
        if not isinstance(allowed, list) or value is None:
            continue
        if interpolation.is_unresolved(value):
            yield (*at, field), f'guardrails.{rule}: "{value}" {_UNKNOWN_YET}'
        elif not is_allowed(rule, value, allowed):
            yield (*at, field), f'guardrails.{rule}: "{value}" is not allowed here; allowed: {_shown(allowed)}'


def _registry_violations(
    rules: Rules, uri: str | None, images: Mapping[str, Image], at: KeyPath
) -> Iterator[Violation]:
    """Images that the stack builds are allowed: they are pushed to its own registry."""
    allowed = rules.get("registries")
    if allowed is None or uri is None:
        return
    name = uri.removeprefix("${images.").removesuffix("}")
    if name in images and "uri" not in images[name]:
        return
    uri = images[name]["uri"] if name in images else uri
    if interpolation.is_unresolved(uri):
        yield at, f'guardrails.registries: "{uri}" {_UNKNOWN_YET}'
    elif not is_within(uri, allowed):
        yield at, _refusal(uri, allowed)


def image_violations(rules: Rules, uri: str) -> Iterator[str]:
    """Find why the image of another stack is refused, once that stack's outputs are known."""
    allowed = rules.get("registries")
    if allowed is not None and not is_within(uri, allowed):
        yield _refusal(uri, allowed)


def is_allowed(rule: str, value: str, allowed: Iterable[str]) -> bool:
    """Whether one of `PATTERNS` allows a value."""
    if rule == "registries":
        return is_within(value, allowed)
    return any(fnmatchcase(value, pattern) for pattern in allowed)


def is_within(uri: str, allowed: Iterable[str]) -> bool:
    """Whether an image is below one of the `allowed` prefixes; `host/team` is not one of `host/team-b/image`."""
    return any(uri == prefix or uri.startswith(tuple(prefix.rstrip("/") + end for end in "/:@")) for prefix in allowed)


def _refusal(uri: str, allowed: Sequence[str]) -> str:
    return f'guardrails.registries: "{uri}" is not in an allowed registry; allowed: {_shown(allowed)}'


def _shown(allowed: Sequence[str]) -> str:
    return either(allowed) if allowed else "none"


def sum_violations(
    rules: Rules, costs: Mapping[str, Cost], region: str, persistent: str
) -> Iterator[tuple[str | None, str, str]]:
    """Find what breaks the limits of `FIGURES`, which apply to the sum of all `costs`: `(name, rule, message)`.

    The name is that of a job that alone exceeds the limit or lacks a price on file, or None for the sum. A persistent
    resource (its name is `persistent`) has no total cost, because it has no end, so `maxTotalCost` does not apply.
    """
    limits = [(each, limit) for each in FIGURES if isinstance(limit := rules.get(each.rule), float)]
    for name, cost in costs.items():
        # An unknown machine type is reported by machineTypes already.
        is_reported = interpolation.is_unresolved if "machineTypes" in rules else lambda _: False
        missing = ", ".join(item for item in cost.unpriced if not is_reported(item))
        limited = (each.rule for each, _ in limits if each.missing(cost) and isfinite(each.of(cost)))
        if missing and (rule := min(limited, default=None)):
            message = f"no price on file for {missing} in {region}; add it under vertex-training:prices"
            yield name, rule, f"guardrails.{rule}: {message}"
    for each, limit in limits:
        amounts = {name: each.of(cost) for name, cost in costs.items() if each.is_countable(cost)}
        everything = f"all jobs{f' and {persistent}' if persistent in amounts else ''}"
        allowed = f"; allowed: {each.show(limit)} for {everything}"
        expensive = [name for name in amounts if amounts[name] > limit]
        for name in expensive:
            said = f"{each.show(amounts[name])} {each.unit} by list price{_stand_ins([costs[name]])}"
            yield name, each.rule, f"guardrails.{each.rule}: {said}{allowed}"
        if not expensive and (total := each.sum(costs.values())) > limit:
            names = sorted(amounts, key=lambda name: -amounts[name])[:_MAX_NAMES]
            items = ", ".join(f"{name} {each.show(amounts[name])}" for name in names)
            said = f"{each.show(total)} {each.unit} by list price{_stand_ins(costs[name] for name in amounts)}"
            yield None, each.rule, f"{said}{allowed}; most expensive: {items}"


def _stand_ins(costs: Iterable[Cost]) -> str:
    nearest = show_nearest(costs)
    return f" ({nearest})" if nearest else ""


def monthly_violation(rules: Rules, monthly: Mapping[str, Money], costs: Iterable[Cost]) -> str | None:
    """Return what breaks the limit of a month: schedules that run and machines that stay, of these costs of a run."""
    limit, total = rules.get(MONTHLY), Money(sum(monthly.values()))
    if not isinstance(limit, float) or total <= limit:
        return None
    return (
        f"{total.digits} {CURRENCY} a month at most by list price{_stand_ins(costs)}; allowed: "
        f"{Money(limit).digits} for all schedules and machines that stay; most expensive: {_most_expensive(monthly)}"
    )


def expected_violation(rules: Rules, expected: Mapping[str, Money], costs: Iterable[Cost]) -> str | None:
    """Return what breaks the limit of the cost that earlier runs let expect, by job, with the costs of these jobs."""
    limit, total = rules.get(EXPECTED), Money(sum(expected.values()))
    if not isinstance(limit, float) or total <= limit:
        return None
    said = f"allowed: {Money(limit).digits} for all jobs; most expensive: {_most_expensive(expected)}"
    return f"{total.digits} {CURRENCY} expected, the mean of the last runs by list price{_stand_ins(costs)}; {said}"


def warn_factor(rules: Rules) -> float:
    """Return how many times as much a cost must be for a review to warn of it."""
    return float(rules.get(_WARN, _DEFAULT_WARN_FACTOR))


def _most_expensive(amounts: Mapping[str, float]) -> str:
    names = sorted(amounts, key=lambda name: -amounts[name])[:_MAX_NAMES]
    return ", ".join(f"{name} {Money(amounts[name]).digits}" for name in names)


def near(
    rules: Rules, jobs: Mapping[str, Job], costs: Mapping[str, Cost], monthly: float, expected: float
) -> list[Near]:
    """Find the guardrails of which a stack uses `NEAR_SHARE` or more; a preview with a broken one fails.

    `monthly` is what all schedules and machines that stay cost in a month at most, `expected` what earlier runs let
    expect.
    """
    found = [Near(MONTHLY, monthly, rules.get(MONTHLY, 0), f"{CURRENCY} a month", "")]
    found.append(Near(EXPECTED, expected, rules.get(EXPECTED, 0), f"{CURRENCY} expected", ""))
    found += [Near(each.rule, each.sum(costs.values()), rules.get(each.rule, 0), each.unit, "") for each in FIGURES]
    for limit in LIMITS:
        counts = {name: limit.count(job) for name, job in jobs.items()}
        found += _largest(limit.rule, counts, rules.get(limit.rule, 0), "")
    longest = to_seconds(rules.get("maxTimeout", "0s"))
    found += _largest("maxTimeout", {name: costs[name].max_seconds for name in jobs}, longest, "seconds")
    return [each for each in found if each.limit and each.value >= NEAR_SHARE * each.limit]


def _largest(rule: str, values: Mapping[str, float], limit: float, unit: str) -> list[Near]:
    name = max(values, key=values.__getitem__, default="")
    return [Near(rule, values[name], limit, unit, name)] if values else []
