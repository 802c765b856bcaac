"""What a rehearsal tells of the jobs of a preview: which ran, which metrics are better, and what they use that is new.

Which direction of a metric is better only a search says: it holds for the metrics of the search, and of the jobs that
run the same image or package. Of all others, only old and new values are known.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import isclose
from typing import Literal

from vertex_api.job import Job, stored_job
from vertex_api.studies import Metric

from ..rehearsal_file import Base, Drill, Files, JobReport, Outcome, Rehearsal, Replica
from .changes import KINDS_BY_TYPE, RUNNING, JobFinding
from .document import Step, shorten_paths

MAX_REASON_LINES, MAX_REASON = 10, 2_000
Verdict = Literal["better", "worse", "same", "", "new", "lost", "missing"]
"""What became of a metric of the base: empty if it is another, and no search says which one is better.

One that the base does not have is `new`. One that is not reported is `lost` if the base has it, else `missing`.
"""


@dataclass(frozen=True)
class MetricFinding:
    """A metric of a job. `needed_by` are the searches that need one that is not reported.

    With `has_other_parameters`, it is of a trial that had others than the base's best one, so that nothing is judged.
    """

    name: str
    old: float | None
    new: float | None
    verdict: Verdict
    needed_by: tuple[str, ...] = ()
    has_other_parameters: bool = False

    @property
    def texts(self) -> tuple[str, str]:
        """The old and the new value in four digits, or in as many as tell them apart; "" for none."""
        for digits in range(4, 18):
            old, new = ("" if value is None else f"{value:.{digits}g}" for value in (self.old, self.new))
            if old != new or self.verdict == "same":
                break
        return old, new


@dataclass(frozen=True)
class RehearsedJob:
    """What a job did. `outcome_before` and `seconds_before` are those of the base; empty and None without one.

    `reason` are the lines that say why it failed or was skipped. Memory is that of the replica that came nearest to
    what its machine type has, in bytes. `folders` are those below its output folder. `missing_inputs` are objects that
    were in no bucket, `lacking` permissions that its stack does not grant. `new` are the buckets, hosts, permissions
    and variables that the base does not have, each with its noun. `is_spot` is whether its machines may be taken away.
    """

    name: str
    type: str
    outcome: Outcome
    outcome_before: str = ""
    reason: tuple[str, ...] = ()
    seconds: float | None = None
    seconds_before: float | None = None
    peak_memory: int | None = None
    memory: int | None = None
    file_count: int = 0
    file_bytes: int = 0
    folders: tuple[str, ...] = ()
    metrics: tuple[MetricFinding, ...] = ()
    missing_inputs: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    new: tuple[tuple[str, str], ...] = ()
    drills: tuple[Drill, ...] = ()
    is_spot: bool = False

    @property
    def has_base(self) -> bool:
        """Whether it is compared with a job of the base."""
        return bool(self.outcome_before)

    @property
    def loses_work(self) -> bool:
        """Whether machines that may be taken away run it, and a drill shows that it then begins anew."""
        return self.is_spot and any(drill.get("resumed") is False for drill in self.drills)

    @property
    def unreported(self) -> tuple[MetricFinding, ...]:
        """The metrics that it should report and does not."""
        return tuple(each for each in self.metrics if each.new is None)

    def judged(self, verdict: Verdict) -> tuple[MetricFinding, ...]:
        """The metrics with this verdict."""
        return tuple(each for each in self.metrics if each.verdict == verdict)

    @cached_property
    def urgency(self) -> int:
        """How early a review shows it: the lower, the earlier."""
        signs = (
            self.outcome == "failed",
            bool(self.unreported),
            self.loses_work,
            bool(self.judged("worse")),
            self.outcome == "skipped",
            bool(self.judged("better")),
            bool(self.missing_inputs or self.lacking or self.new),
        )
        return next((place for place, sign in enumerate(signs) if sign), len(signs))


@dataclass(frozen=True)
class Rehearsed:
    """A rehearsal of stack `stack`, the most urgent jobs first; `base` is what it is compared with, "" for nothing.

    `not_rehearsed` are jobs that the preview submits, and that the rehearsal does not have. `recorded` are the nouns of
    what it watched for: `bucket`, `host`, `permission`, `variable`.
    """

    stack: str
    commit: str
    base: str
    jobs: tuple[RehearsedJob, ...]
    not_rehearsed: tuple[str, ...]
    recorded: tuple[str, ...]


def rehearsed(rehearsal: Rehearsal, steps: Iterable[Step], submitted: Iterable[JobFinding]) -> Rehearsed | None:
    """Return what a rehearsal tells of a preview with these steps, which submits the jobs of `submitted`.

    If none was rehearsed, and none had to be, that is None.
    """
    specs = _specs(steps)
    goals = _Goals(specs)
    jobs = []
    for report in rehearsal["jobs"]:
        spec = specs.get(report["name"], _UNKNOWN)
        jobs.append(_job(report, spec, goals.of(report["name"], spec)))
    names = {job.name for job in jobs}
    missing = [job.name for job in submitted if job.action in RUNNING and job.name not in names]
    if not jobs and not missing:
        return None
    return Rehearsed(
        rehearsal.get("stack", ""),
        rehearsal.get("commit") or "",
        shorten_paths(rehearsal.get("base", "")),
        tuple(sorted(jobs, key=lambda job: job.urgency)),
        tuple(missing),
        tuple(_recorded(rehearsal["jobs"])),
    )


def _recorded(reports: Sequence[JobReport]) -> Iterator[str]:
    """Yield what is watched for: an emulator that knows what replicas use, or what jobs need, sees buckets too."""
    if any(report.get("replicas") or report.get("buckets") or report.get("permissions") for report in reports):
        yield "bucket"
    if any(report.get("hosts") for report in reports):
        yield "host"
    if any(report.get("permissions") for report in reports):
        yield "permission"
    yield "variable"


@dataclass(frozen=True)
class _Spec:
    """What is known of a job after the update: the images and packages that it runs, and the metrics of its search."""

    programs: frozenset[str]
    metrics: tuple[Metric, ...]
    is_spot: bool

    @classmethod
    def of(cls, job: Job) -> "_Spec":
        """Return what is known of a job. Raises what a text raises in place of a part that a preview does not know."""
        programs = set[str]()
        for pool in job.job_spec["workerPoolSpecs"]:
            container, package = pool.get("containerSpec", {}), pool.get("pythonPackageSpec", {})
            programs |= {container.get("imageUri", ""), *package.get("packageUris", ())}
        strategy = job.job_spec.get("scheduling", {}).get("strategy")
        return cls(frozenset(programs - {""}), tuple(job.metrics), strategy == "SPOT")


def _specs(steps: Iterable[Step]) -> dict[str, _Spec]:
    found = {}
    for step in steps:
        if step.type in KINDS_BY_TYPE and step.new_inputs is not None:
            with suppress(AttributeError, KeyError, TypeError, ValueError):
                found[step.name] = _Spec.of(stored_job(KINDS_BY_TYPE[step.type], step.new_inputs["spec"]))
    return found


_UNKNOWN = _Spec(frozenset(), (), is_spot=False)


class _Goals:
    """Which searches want which metrics of an image or package, and whether a smaller value is better."""

    def __init__(self, specs: Mapping[str, _Spec]) -> None:
        self._searches: dict[str, dict[str, Mapping[str, int]]] = {}
        """The signs of the metrics of each search, by image or package and by its name."""
        for name, spec in specs.items():
            for program in spec.programs if spec.metrics else ():
                signs = {metric.id: metric.sign for metric in spec.metrics}
                self._searches.setdefault(program, {})[name] = signs

    def of(self, name: str, spec: _Spec) -> dict[str, dict[str, int]]:
        """Return by metric and search 1 to minimize and -1 to maximize it; of a search, those of its own metrics."""
        related = {
            search: signs for each in sorted(spec.programs) for search, signs in self._searches.get(each, {}).items()
        }
        found: dict[str, dict[str, int]] = {}
        for search, signs in {name: related[name]}.items() if name in related else related.items():
            for metric, sign in signs.items():
                found.setdefault(metric, {})[search] = sign
        return found


def _job(report: JobReport, spec: _Spec, goals: Mapping[str, Mapping[str, int]]) -> RehearsedJob:
    base = report.get("base") or {}
    lines = shorten_paths(report.get("reason", ""))[:MAX_REASON].splitlines()
    fullest = _fullest(report.get("replicas", ()))
    files: Files = report.get("files") or {"count": 0, "bytes": 0}
    folders = (f"{name.partition('/')[0]}/" if "/" in name else name for name in files.get("names", ()))

    added = [("variable", name) for name in report.get("newEnv", ())]
    added += [("permission", text) for text in report.get("newPermissions", ())]
    if base:
        added += [("bucket", name) for name in {*report.get("buckets", ())} - {*base.get("buckets", ())}]
        added += [("host", name) for name in {*report.get("hosts", ())} - {*base.get("hosts", ())}]
    return RehearsedJob(
        report["name"],
        report.get("kind", ""),
        report["outcome"],
        base.get("outcome", "succeeded") if base else "",
        tuple(lines[:MAX_REASON_LINES]),
        report.get("seconds"),
        base.get("seconds"),
        fullest.get("peakMemoryBytes"),
        fullest.get("memoryBytes"),
        files["count"],
        files["bytes"],
        tuple(dict.fromkeys(folders)),
        tuple(_metrics(report, base, goals)),
        tuple(report.get("missingInputs", ())),
        tuple(report.get("notGranted", ())),
        tuple(sorted(added)),
        tuple(report.get("drills", ())),
        spec.is_spot,
    )


def _fullest(replicas: Sequence[Replica]) -> Replica:
    """Return the replica that came nearest to the memory of its machine type, or took most where that is not known."""
    measured = [each for each in replicas if each.get("peakMemoryBytes")]
    empty: Replica = {}
    return max(measured, key=lambda each: each["peakMemoryBytes"] / (each.get("memoryBytes") or 1), default=empty)


def _metrics(report: JobReport, base: Base, goals: Mapping[str, Mapping[str, int]]) -> Iterator[MetricFinding]:
    """Yield the metrics of a job: those that are not reported first, then those that a search wants."""
    before = base.get("metrics") or {}
    reported = report.get("metrics") or {}
    is_other = "parameters" in base and report.get("parameters") != base["parameters"]
    for name in report.get("missingMetrics", ()):
        verdict: Verdict = "lost" if name in before else "missing"
        yield MetricFinding(name, before.get(name), None, verdict, tuple(sorted(goals.get(name, ()))))
    for name in sorted(reported, key=lambda name: name not in goals):
        new, old = reported[name], before.get(name)
        signs = {*goals.get(name, {}).values()}
        if old is None:
            verdict = "new"
        elif isclose(old, new):
            verdict = "same"
        else:
            verdict = "" if len(signs) != 1 or is_other else "better" if signs.pop() * (new - old) < 0 else "worse"
        yield MetricFinding(name, old, new, verdict, has_other_parameters=is_other)
