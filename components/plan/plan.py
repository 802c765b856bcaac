"""Plan: all jobs of one stack, with what is needed to judge them: what they break, cost and need.

A stack's settings make one, a program adds its jobs to it, and each side of a preview is one. What holds for all jobs
of a stack is computed here and nowhere else; what shows it takes a Plan.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from vertex_api.errors import Refusal, first_problems
from vertex_api.estimates import availability, prices
from vertex_api.estimates.cost import Cost, estimate_cost, persistent_cost, show_nearest
from vertex_api.estimates.prices import HOURS_PER_MONTH, ZERO, Money
from vertex_api.estimates.quota import needed_quota, persistent_quota
from vertex_api.estimates.runs import Past
from vertex_api.job import Job
from vertex_api.messages import KeyPath, show_path
from vertex_api.validation.formats import Violation

from ..errors import Problem
from ..schema import shapes
from . import guardrails, job_rules
from .folders import WritableFolders
from .guardrails import FIGURES, Near, Rules
from .limits import KEY, Limits, Source
from .training import ALLOW, LIFECYCLE, Place, Timetable, Training

Result = TypeVar("Result")
LIFTED = "allowed by the job's lifecycle"
"""What the message of a lifted refusal begins with."""
PERSISTENT_RESOURCE = "persistentResource"
"""The key of the persistent resource. It is also its name among costs: names of jobs are in lower case."""


@dataclass(frozen=True)
class Totals:
    """Sums over the jobs and machines of a stack.

    `sums` are those of `FIGURES`: `hourly`, and `ceiling` if each job runs until its timeout.
    `unpriced` and `unknown` name jobs that the sums leave out: for lack of a price, or as their spec is not known yet.
    `nearest` says what `sums` count with the price of another region. `expected` is the sum of `Plan.expected`.
    """

    sums: Mapping[str, float] = field(default_factory=lambda: {each.sum_name: each.sum(()) for each in FIGURES})
    endless: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    nearest: str = ""
    unknown: tuple[str, ...] = ()
    quota: Mapping[str, int] = field(default_factory=dict)
    expected: float = 0.0


@dataclass(frozen=True)
class Plan:
    """`stack` has the valid values of the stack file, in the shape of `shapes.Stack`.

    `region` is where jobs are billed and must have what they use, None unless the target is `gcp`. `images` are the
    declared ones, `built` those that the program builds, without tags. `file` is the place of the stack file. `pools`
    are those of the persistent resource. `unknown` are jobs that a preview does not know. `records` looks up what the
    stack keeps of earlier runs, by job (`vertex_api.estimates.runs`): it is called when that is first needed. `around`
    are guardrails from outside the stack file, `own` those of the arguments of a `TrainingStack`. `prefix` is what the
    names of the stack's resources begin with.
    """

    stack: Mapping[str, Any]
    trainings: tuple[Training, ...] = ()
    timetables: tuple[Timetable, ...] = ()
    region: str | None = None
    images: Mapping[str, shapes.Image] = field(default_factory=dict)
    built: frozenset[str] = frozenset()
    folders: WritableFolders | None = None
    file: Place = field(default=lambda path, message: Problem("", show_path(path), message), compare=False)
    pools: Sequence[Mapping[str, Any]] = ()
    unknown: tuple[str, ...] = ()
    records: Callable[[], Mapping[str, str]] = field(default=dict, compare=False)
    around: tuple[Source, ...] = ()
    own: tuple[Source, ...] = ()
    prefix: str = ""

    def with_program(
        self, trainings: Sequence[Training], timetables: Sequence[Timetable], built: Collection[str]
    ) -> "Plan":
        """Return this plan with what a program makes: a job whose name another one has too is named with its kind."""
        counts = Counter(each.name for each in (*self.trainings, *trainings))
        named = [each if counts[each.name] == 1 else replace(each, name=each.title) for each in trainings]
        return replace(
            self,
            trainings=(*self.trainings, *named),
            timetables=(*self.timetables, *timetables),
            built=frozenset(built),
        )

    @property
    def is_cloud(self) -> bool:
        """Whether the jobs run on Google Cloud."""
        return bool(self.stack.get("target") == "gcp")

    @property
    def project(self) -> str:
        """The Google Cloud project, also of the emulator's resource names."""
        return str(self.stack.get("project", "local"))

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that the stack gives all jobs, for rules of labels; `Defaults` give them to a job."""
        found: Mapping[str, str] = self.stack.get("labels", {})
        return found

    @cached_property
    def limits(self) -> Limits:
        """The guardrails that hold for the jobs: those of the stack file, and all others."""
        return Limits.of([*self.around, Source(self.stack.get(KEY, {}), place=self.file), *self.own])

    @property
    def guardrails(self) -> Rules:
        """The guardrails that hold, as one mapping."""
        return self.limits.rules

    @cached_property
    def prices(self) -> prices.Prices:
        """The prices on file, with the stack's own in their place."""
        return prices.prices_with(self.stack.get("prices"))

    def problems(self) -> Iterator[Problem]:
        """Find everything that is wrong with the jobs, each by itself and all together."""
        for training in self.trainings:
            violations = first_problems(self.job_violations(training))
            yield from (training.place(*violation) for violation in violations)
        if self.folders:
            yield from (self.file(*violation) for violation in self.folders.violations())
        for training, message in job_rules.repeated_adoptions(self.trainings):
            yield training.place((LIFECYCLE, "adopt"), message)
        for at, pool in resource_pools(self.stack):
            found = self.limits.machine_violations(pool["machineSpec"], (*at, "machineSpec"))
            yield from (self.file(*violation) for violation in found)
        yield from self.sum_problems()

    def job_violations(self, training: Training) -> Iterator[Violation]:
        """Find all that makes a job invalid in this stack; if its spec has problems, in its lifecycle only."""
        if training.is_scheduled:
            yield from job_rules.scheduled_lifecycle(training.lifecycle)
        elif training.is_adopted:
            yield from job_rules.adoption(training, self.stack)
        if not isinstance(job := training.spec, Job):
            return
        if training.is_scheduled:
            yield from job_rules.scheduled_fields(job.fields)
        named = {} if training.is_adopted else dict(job_rules.image_names(job, self.images))
        yield from named.items()
        yield from (each for each in self._refused(training) if not is_allowed(training, each) and each[0] not in named)
        if not training.is_adopted:
            yield from (
                (("labels", *path), message)
                for path, message in job_rules.labels(job.fields.get("labels", {}), self.labels)
            )
            if self.folders:
                yield from self.folders.job_violations(job)
        yield from self.limits.violations(job, self.images, self.labels, self.built)

    def warnings(self) -> Iterator[Problem]:
        """Find what to look at again in the jobs: a preview and a review show it, and nothing is refused."""
        for training in self._known:
            if training.allowed:
                yield from self._lifted(training)
            if not training.is_adopted:
                yield from (training.place(*each) for each in job_rules.advice(training.job))

    def _refused(self, training: Training) -> Iterable[Violation]:
        """Find what rules of the service refuse in a valid job, lifted or not."""
        return job_rules.service(training.job, self.region, is_cloud=self.is_cloud, is_adopted=training.is_adopted)

    def _lifted(self, training: Training) -> Iterator[Problem]:
        """Find what a job has although it is refused, and what it lifts without a need."""
        found = {each.path: each.message for each in training.job.lifted}
        found |= {path: message for path, message in self._refused(training) if is_allowed(training, (path, message))}
        for path, message in found.items():
            yield training.place(path, f"{LIFTED}, although the rules on file refuse it: {message}")
        places = {*map(show_path, found)}
        for index, place in enumerate(training.allowed):
            if place not in places:
                message = f'"{place}" lifts nothing, as nothing refuses it; take it out'
                yield training.place((LIFECYCLE, ALLOW, index), message)

    def sum_problems(self, others: Sequence["Plan"] = ()) -> Iterator[Problem]:
        """Find the limits of cost that the jobs break, each alone or all together.

        `others` are the plans of the other stacks of the program, whose jobs count for all but `own` guardrails.
        """
        places = {f"{self.prefix}{each.name}": each.place for each in self.trainings}
        persistent = f"{self.prefix}{PERSISTENT_RESOURCE}"
        for source in self.limits.sources:
            rules, plans = source.rules, [self] if source.is_own else [self, *others]
            costs = _all(plans, lambda plan: plan.costs)
            for name, rule, message in guardrails.sum_violations(rules, costs, self.region or "", persistent):
                if name is None:
                    yield source.place((KEY, rule), message)
                elif name in places:
                    yield places[name]((), source.said(message))
                elif name == persistent:
                    yield self.file((PERSISTENT_RESOURCE,), source.said(message))
            monthly, returning = (
                _all(plans, lambda plan: plan.monthly),
                (each for plan in plans for each in plan.returning),
            )
            if exceeded := guardrails.monthly_violation(rules, monthly, returning):
                yield source.place((KEY, guardrails.MONTHLY), exceeded)
            if guardrails.EXPECTED in rules and (
                exceeded := guardrails.expected_violation(
                    rules,
                    _all(plans, lambda plan: plan.expected),
                    [plan.costs[name] for plan in plans for name in plan.expected if name in plan.costs],
                )
            ):
                yield source.place((KEY, guardrails.EXPECTED), exceeded)

    def estimate(self, training: Training) -> tuple[Cost, Mapping[str, int]]:
        """Return the cost of a job and how much of each quota it needs."""
        region = training.region or self.region or ""
        return estimate_cost(training.job, region, self.prices), needed_quota(training.job)

    @cached_property
    def costs(self) -> Mapping[str, Cost]:
        """The cost of each job by name, and that of `PERSISTENT_RESOURCE`; empty unless the target is `gcp`."""
        costs = {each.name: self.estimate(each)[0] for each in self._known if each.region or self.region}
        if self.pools and self.region:
            costs[PERSISTENT_RESOURCE] = persistent_cost(self.pools, self.region, self.prices)
        return costs

    @cached_property
    def monthly(self) -> Mapping[str, Money]:
        """What is spent in a month at most, by schedule that is not paused, and by `PERSISTENT_RESOURCE`.

        A schedule is left out as long as one of its jobs has no known cost or no price on file.
        """
        found = {
            each.name: self.run_cost(each) * each.runs_a_month
            for each in self.timetables
            if not each.paused and self.costs.keys() >= {*each.jobs} and not self.unpriced(each)
        }
        if (machines := self.costs.get(PERSISTENT_RESOURCE)) and not machines.unpriced:
            found[PERSISTENT_RESOURCE] = machines.hourly * HOURS_PER_MONTH
        return found

    @property
    def returning(self) -> Iterator[Cost]:
        """The costs of what `monthly` counts."""
        yield from (self.costs[name] for each in self.timetables if each.name in self.monthly for name in each.jobs)
        if PERSISTENT_RESOURCE in self.monthly:
            yield self.costs[PERSISTENT_RESOURCE]

    @cached_property
    def past(self) -> Mapping[str, Past]:
        """What the last runs of jobs took, by name, and would cost as the jobs are now; of jobs with a record."""
        records = self.records()
        found = {
            each.name: Past.of(records[each.name], each.job, self.costs.get(each.name, Cost()))
            for each in self._known
            if each.name in records and not each.is_scheduled
        }
        return {name: past for name, past in found.items() if past}

    @cached_property
    def expected(self) -> Mapping[str, Money]:
        """What a run is expected to cost, by job with priced earlier runs."""
        return {name: past.expected for name, past in self.past.items() if past.expected is not None}

    def run_cost(self, timetable: Timetable) -> Money:
        """Return what a run of a schedule costs at most; the costs of its jobs are known."""
        return sum((self.costs[name].total for name in timetable.jobs), ZERO)

    @property
    def schedule_costs(self) -> Mapping[str, str]:
        """What schedules cost at most, by name, as one line each; of those whose jobs have known costs."""
        return {each.name: self._schedule_cost(each) for each in self.scheduled}

    @property
    def scheduled(self) -> list[Timetable]:
        """The schedules whose jobs have known costs."""
        return [each for each in self.timetables if self.costs.keys() >= {*each.jobs}]

    @property
    def scheduled_monthly(self) -> Money:
        """What all schedules that are not paused cost in a month at most, as far as that is known."""
        return sum((self.monthly.get(each.name, ZERO) for each in self.scheduled), ZERO)

    def _schedule_cost(self, timetable: Timetable) -> str:
        runs = f"{timetable.runs_a_month:,.1f}".removesuffix(".0") + " runs a month"
        if unpriced := self.unpriced(timetable):
            amount = f"no price on file for {', '.join(unpriced)}, {runs}"
        else:
            total = self.run_cost(timetable)
            nearest = show_nearest(self.costs[name] for name in timetable.jobs)
            amount = (
                f"{total} a run, {total * timetable.runs_a_month} a month ({runs}){f', {nearest}' if nearest else ''}"
            )
        return f"{amount}{', paused' if timetable.paused else ''}"

    def unpriced(self, timetable: Timetable) -> list[str]:
        """Return what the jobs of a schedule use that has no price on file."""
        return list(dict.fromkeys(item for name in timetable.jobs for item in self.costs[name].unpriced))

    @cached_property
    def quotas(self) -> Mapping[str, Mapping[str, int]]:
        """How much of each quota each of the jobs and the persistent resource needs, by the names of `costs`."""
        quotas = {each.name: needed_quota(each.job) for each in self._known}
        if self.pools:
            quotas[PERSISTENT_RESOURCE] = persistent_quota(self.pools)
        return quotas

    @property
    def submitted(self) -> list[str]:
        """The names among `costs` of what `pulumi up` brings about: all but the jobs that schedules submit."""
        scheduled = {each.name for each in self.trainings if each.is_scheduled}
        return [name for name in self.costs if name not in scheduled]

    @property
    def totals(self) -> Totals:
        """The sums of all that `pulumi up` brings about."""
        costs = {name: self.costs[name] for name in self.submitted}
        return Totals(
            sums={each.sum_name: each.sum(costs.values()) for each in FIGURES},
            endless=tuple(name for name, cost in costs.items() if cost.is_endless),
            unpriced=tuple(name for name, cost in costs.items() if cost.unpriced),
            nearest=show_nearest(costs.values()),
            unknown=self.unknown,
            quota=dict(sorted(add(self.quotas[name] for name in costs).items())),
            expected=sum(self.expected.values()),
        )

    @property
    def near(self) -> list[Near]:
        """The guardrails that are nearly reached."""
        jobs = {each.name: each.job for each in self._known}
        return guardrails.near(
            self.guardrails, jobs, self.costs, sum(self.monthly.values()), sum(self.expected.values())
        )

    @property
    def unavailable(self) -> Mapping[str, Sequence[str]]:
        """The names of what needs an accelerator that the region does not offer, by accelerator."""
        region = self.region or ""
        needed = {each.name: availability.missing_accelerators(each.job.pools, region) for each in self._known}
        needed[PERSISTENT_RESOURCE] = availability.missing_accelerators(self.pools, region)
        return {
            accelerator: [name for name, accelerators in needed.items() if accelerator in accelerators]
            for accelerator in sorted(set().union(*needed.values()))
        }

    @property
    def _known(self) -> Iterator[Training]:
        return (each for each in self.trainings if isinstance(each.spec, Job))


def is_allowed(training: Training, violation: Violation) -> bool:
    """Return whether a job lifts a rule of the service that it breaks."""
    path, message = violation
    return isinstance(message, Refusal) and show_path(path) in training.allowed


def add(amounts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """Return the sums of amounts by metric."""
    return sum(map(Counter, amounts), Counter[str]())


def _all(plans: Iterable[Plan], amounts: Callable[[Plan], Mapping[str, Result]]) -> dict[str, Result]:
    """Return amounts of several stacks, by the names of their resources."""
    return {f"{plan.prefix}{name}": amount for plan in plans for name, amount in amounts(plan).items()}


def resource_pools(stack: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """Yield the pools of the persistent resource in a stack file, each with its path."""
    for index, pool in enumerate(stack.get(PERSISTENT_RESOURCE, {}).get("resourcePools", ())):
        yield (PERSISTENT_RESOURCE, "resourcePools", index), pool
