"""What earlier runs of a job took: one line of text for each, the record of the last ones, and what they foretell.

    run = Run.of(kind, job, region, prices, metrics)     # a job that has ended, as the service holds it
    str(run)   # 2026-11-26T13:04:11Z 7412 s on 4 n1-standard-8: 31.20 USD at 15.1538 an hour; accuracy 0.97
    Past.of(record, job, cost)                           # what the runs of a record would cost as the job is now

A line is all that is kept of a run: a thousand jobs with ten runs each are a megabyte of a stack's state.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from vertex_api.estimates.cost import Cost, estimate_cost
from vertex_api.estimates.prices import CURRENCY, Money, Prices
from vertex_api.job import Job, stored_job, training_of
from vertex_api.jobspec import replica_count
from vertex_api.machines import accelerator_of
from vertex_api.names import JobJson, Kind

MAX_RUNS = 10
"""How many runs of a job a record has: the last ones."""
ONE_LINE = " | "
"""What stands between the runs of a record in one line. Pulumi shows a text of several lines that is YAML as a map."""
MAX_METRICS = 6
"""How many metrics of a run its line has."""
MAX_LENGTH = 400
"""Characters of a line; more of its metrics are cut."""
_TOOK = (
    r"(?P<ended>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (?P<seconds>\d+) s"
    r"(?:, (?P<busy>\d+) s of (?P<trials>\d+) trials?)? on (?P<here>this machine, declared for )?"
    r"(?P<machines>[^:;\n]+)"
)
_LINE = re.compile(rf"{_TOOK}(?:: [\d,.]+ (?P<currency>\S+) at (?P<hourly>\d+\.\d+) an hour)?(?:; (?P<metrics>.+))?")
_LINES = re.compile(f"^{_TOOK}", re.MULTILINE)
"""Finds what runs took in a record: a preview of 1,000 jobs reads 10,000 lines."""


@dataclass(frozen=True)
class Run:
    """A run that has ended at `ended`, after `seconds` on `machines`; with `is_local`, on this machine in their place.

    `busy` are the seconds for which the machines of one trial were taken, summed up over all `trials` of a search;
    elsewhere they are `seconds`, of no trials. `hourly` is what those machines cost by list price when it ended, None
    on this machine, on a persistent resource, without a price on file, and for a search whose trials are not known.
    `metrics` is a text.
    """

    ended: str
    seconds: int
    machines: str
    busy: int
    trials: int = 0
    hourly: float | None = None
    metrics: str = ""
    is_local: bool = False

    @classmethod
    def of(
        cls, kind: Kind, job: JobJson, region: str, prices: Prices | None, metrics: Mapping[str, float]
    ) -> Self | None:
        """Return the run of a job that has ended, with the tuning job attached of a pipeline that runs one.

        `prices` is None on this machine, where nothing is billed. None for a job that has never run.
        """
        if "startTime" not in job or "endTime" not in job:
            return None
        stored = stored_job(kind, job)
        training = training_of(job)
        trials = [each for each in training.get("trials", ()) if "startTime" in each and "endTime" in each]
        cost = estimate_cost(stored, region, prices) if prices else Cost()
        is_timed = bool(trials) or "studySpec" not in training
        return cls(
            f"{_time(job['endTime']).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            _seconds(job),
            machines(stored),
            sum(map(_seconds, trials)) if trials else _seconds(job),
            len(trials),
            one_trial(stored, cost) if is_timed and cost.hourly and not cost.unpriced else None,
            ", ".join(f"{name} {value:.4g}" for name, value in [*metrics.items()][:MAX_METRICS]),
            prices is None,
        )

    @classmethod
    def parse(cls, line: str) -> Self | None:
        """Return the run of a line, None for any other text. Amounts in another currency than ours are left out."""
        if not (match := _LINE.fullmatch(line)):
            return None
        seconds, hourly = int(match["seconds"]), match["hourly"]
        return cls(
            match["ended"],
            seconds,
            match["machines"],
            int(match["busy"] or seconds),
            int(match["trials"] or 0),
            float(hourly) if hourly and match["currency"] == CURRENCY else None,
            match["metrics"] or "",
            match["here"] is not None,
        )

    def __str__(self) -> str:
        trials = f", {self.busy} s of {self.trials} trial{'' if self.trials == 1 else 's'}" if self.trials else ""
        cost = f": {self.cost} at {self.hourly:.4f} an hour" if self.hourly is not None else ""
        metrics = f"; {self.metrics}" if self.metrics else ""
        where = "this machine, declared for " if self.is_local else ""
        run = f"{self.ended} {self.seconds} s{trials} on {where}{self.machines}{cost}"
        return f"{run}{metrics}"[: max(MAX_LENGTH, len(run))]

    @property
    def cost(self) -> Money | None:
        """What it has cost by list price, None if that is unknown or nothing."""
        return None if self.hourly is None else Money(self.hourly * self.busy / 3600)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _seconds(fields: Mapping[str, Any]) -> int:
    return max(0, round((_time(fields["endTime"]) - _time(fields["startTime"])).total_seconds()))


def machines(job: Job) -> str:
    """Return what a run of a job takes, or each trial of a search, such as `2 n1-standard-8 with 1 NVIDIA_L4`."""
    found = []
    for pool in filter(None, job.job_spec["workerPoolSpecs"]):
        spec = pool.get("machineSpec", {})
        kind, count = accelerator_of(spec)
        accelerators = f" with {count} {kind}" if kind and count else ""
        found.append(f"{replica_count(pool)} {spec.get('machineType', 'machine')}{accelerators}")
    return " and ".join(found)


def one_trial(job: Job, cost: Cost) -> float:
    """Return what the machines of one run or trial cost an hour."""
    return float(cost.hourly) / job.parallel_trials


def extended(record: str, line: str) -> str:
    """Return a record with one more run, in the order in which they ended; a run that it has already is not added."""
    runs = {run.ended: str(run) for each in (*record.splitlines(), line) if (run := Run.parse(each))}
    return "\n".join(runs[ended] for ended in sorted(runs)[-MAX_RUNS:])


@dataclass(frozen=True)
class Past:
    """What the runs of a record took, and what their seconds would cost in USD at today's price.

    `costs` are empty for a job without a price. `others` is how many ran on other machines than the job has now.
    """

    seconds: Sequence[int]
    costs: Sequence[float]
    others: int

    @classmethod
    def of(cls, record: str, job: Job, cost: Cost) -> Self | None:
        """Return that of a job; None for a record without runs."""
        found = _LINES.findall(record)
        if not found:
            return None
        hourly = one_trial(job, cost) if cost.hourly and not cost.unpriced else None
        now = machines(job)
        return cls(
            [int(seconds) for _, seconds, *_ in found],
            [] if hourly is None else [hourly * int(busy or seconds) / 3600 for _, seconds, busy, *_ in found],
            sum(on != now for *_, on in found),
        )

    @property
    def expected(self) -> Money | None:
        """What a run can be expected to cost: the mean of all; None without a price."""
        return Money(sum(self.costs) / len(self.costs)) if self.costs else None

    def __str__(self) -> str:
        """The range of them: `the last 6 runs took 31.02 to 44.10 USD (2.1 to 3 h), 2 of them on other machines`."""
        count, times = len(self.seconds), span(self.seconds)
        what = "the last run" if count == 1 else f"the last {count} runs"
        took = (
            f"{_range(Money(each).digits for each in sorted(self.costs))} {CURRENCY} ({times})" if self.costs else times
        )
        which = "" if self.others == count else f"{self.others} of them "
        return f"{what} took {took}{f', {which}on other machines' if self.others else ''}"


def span(seconds: Iterable[float]) -> str:
    """Return from the shortest to the longest of some durations, in one unit: `2.1 to 3 h`, `40 to 95 s`, `7 min`."""
    ordered = sorted(seconds)
    unit, length = next((each for each in (("h", 3600), ("min", 60)) if ordered[-1] >= 2 * each[1]), ("s", 1))
    return f"{_range(f'{each / length:.1f}'.removesuffix('.0') for each in ordered)} {unit}"


def _range(ordered: Iterable[str]) -> str:
    texts = [*ordered]
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"
