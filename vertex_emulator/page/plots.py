"""What the page draws: a study's trials, and the scalars of event files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from vertex_api.scalars import to_seconds
from vertex_api.studies import pareto_front, study_metrics, trial_summaries
from vertex_emulator import event_files
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import Job, Trial
from vertex_emulator.errors import ApiError
from vertex_emulator.event_files import LogFolder
from vertex_emulator.representation import job_json, time_fields

if TYPE_CHECKING:
    from vertex_emulator.curves import Curve, CurveCache, CurveReader

_MAX_POINTS = 20_000  # of all curves together, so that a long study does not outgrow a browser
# Of a curve. The most is more than a plot has room for. Few levels, so that a study that grows is seldom read anew.
_LEVELS = (300, 150, 80, 40, 20)
_VALUE_SPECS = {
    "doubleValueSpec": "DOUBLE",
    "integerValueSpec": "INTEGER",
    "categoricalValueSpec": "CATEGORICAL",
    "discreteValueSpec": "DISCRETE",
}
MAX_TRIALS = 60  # as many as can be told apart
MAX_TAGS_PER_REQUEST = 100
MAX_LINES = 1000  # of one answer: 30 MB of JSON at most
_MAX_PROBLEMS = 5


@dataclass(frozen=True)
class ThinnedTrial:
    """A trial with as many of its measurements as a curve shows, and `measured`, the number of all."""

    trial: Trial
    measured: int

    @classmethod
    def thin(cls, trial: Trial, max_points: int) -> ThinnedTrial:
        """Keep evenly spaced measurements of a trial, the last among them."""
        stride = -(-len(trial.measurements) // max_points) or 1
        # Counted from the end, so that the last one is always there.
        points = trial.measurements[::-1][::stride][::-1]
        return cls(replace(trial, measurements=points), len(trial.measurements))


def max_points(trial_count: int) -> int:
    """Return how many measurements a curve shows in a study of so many trials."""
    return next((level for level in _LEVELS if level * trial_count <= _MAX_POINTS), _LEVELS[-1])


class TrialCache:
    """The ended trials of the study that was read last: the measurements of 2,000 trials take seconds to read."""

    def __init__(self) -> None:
        self._latest: tuple[tuple[str, int], dict[int, ThinnedTrial]] = (("", 0), {})

    def read(self, transaction: Transaction, study_id: str) -> list[ThinnedTrial]:
        """Return the trials of a study by number, thinned as their number demands."""
        trials = transaction.trials.summaries(study_id)
        key = (study_id, max_points(len(trials)))
        known_key, ended = self._latest
        if known_key != key:
            ended = {}
            self._latest = (key, ended)
        thinned: list[ThinnedTrial] = []
        for trial in trials:
            shown = ended.get(trial.number)
            if shown is None:
                measurements = transaction.trials.measurements(study_id, trial.number)
                shown = ThinnedTrial.thin(replace(trial, measurements=measurements), key[1])
                if trial.has_ended:
                    ended[trial.number] = shown
            thinned.append(shown)
        return thinned


def study(job: Job, trials: Sequence[ThinnedTrial]) -> dict[str, Any]:
    """Return `metrics`, `parameters`, `best` (ids of trials), `most` (the number of trials asked for) and `trials`.

    A trial has the fields of `studies.trial_summaries`, `job`, `startTime`, `endTime` and its `curve`: `measured`,
    the number of measurements, and of those shown the `steps`, `seconds` and, by metric, `values` (null if missing).
    """
    shown = job_json(job, [replace(each.trial, measurements=()) for each in trials])
    spec = shown["studySpec"]
    metrics = [
        {"id": metric.id, "goal": "MINIMIZE" if metric.sign == 1 else "MAXIMIZE", "threshold": metric.threshold}
        for metric in study_metrics(spec)
    ]
    rows = {row["id"]: row for row in trial_summaries(shown)}
    return {
        "metrics": metrics,
        "parameters": [*_parameters(spec["parameters"])],
        "best": [row["id"] for row in pareto_front(shown)],
        "most": job.spec["maxTrialCount"],
        "trials": [
            {
                **rows[str(each.trial.number)],
                **time_fields(startTime=each.trial.started, endTime=each.trial.ended),
                "job": each.trial.job,
                "curve": _curve(each, metrics),
            }
            for each in trials
        ],
    }


def _parameters(specs: Sequence[Mapping[str, Any]], parent: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield `id`, `type`, `scale`, `parent` or null, and `min` and `max` or `values` of parameters, parents first."""
    for spec in specs:
        name, kind = next(((name, kind) for name, kind in _VALUE_SPECS.items() if name in spec), ("", "DOUBLE"))
        value = spec.get(name, {})
        shown = {"id": spec["parameterId"], "type": kind, "scale": spec.get("scaleType", ""), "parent": parent}
        if "values" in value:
            shown["values"] = value["values"]
        else:
            shown |= {"min": float(value.get("minValue", 0)), "max": float(value.get("maxValue", 0))}
        yield shown
        children = [each["parameterSpec"] for each in spec.get("conditionalParameterSpecs", [])]
        yield from _parameters(children, spec["parameterId"])


def _curve(thinned: ThinnedTrial, metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    points = thinned.trial.measurements
    values = [{metric["metricId"]: metric.get("value", 0.0) for metric in point.get("metrics", [])} for point in points]
    return {
        "measured": thinned.measured,
        "steps": [int(point.get("stepCount", 0)) for point in points],
        "seconds": [to_seconds(point.get("elapsedDuration", "0s")) for point in points],
        "values": {metric["id"]: [value.get(metric["id"]) for value in values] for metric in metrics},
    }


def scalars(database: Database, cache: CurveCache, job: Job, tags: Sequence[str]) -> dict[str, Any]:
    """Return what is written so far in the event files of a job, of a study's latest trials, or of a pipeline's job.

    The fields are `folder`, the gs:// URI of a job's log folder (null without one, and for a study), `tags`, `runs`,
    `lines` of the requested tags (`tag`, `run`, and the fields of `Curve.to_json`), `has_files`, `has_more`, whether
    the next request finds more that is written already, `problems`, a line each, and `left_out`, the number of earlier
    trials. Raises ApiError.
    """
    if len(tags) > MAX_TAGS_PER_REQUEST:
        raise ApiError("INVALID_ARGUMENT", f"tag is given {len(tags)} times; at most {MAX_TAGS_PER_REQUEST} are read")
    with database.read() as transaction:
        folders = event_files.log_folders(transaction, job)
    shown = folders[-MAX_TRIALS:]
    with cache.update([folder.uri for folder in shown]) as readers:
        runs = dict(_runs(shown, readers))
        lines = [*islice(_lines(runs, tags), MAX_LINES)]
        problems = [problem for reader in readers for problem in reader.problems]
        if len(lines) == MAX_LINES:
            problems.insert(0, f"only the first {MAX_LINES} lines are drawn")
        return {
            "folder": shown[0].uri if shown and not shown[0].name else None,
            "tags": sorted({tag for by_tag in runs.values() for tag in by_tag}),
            "runs": [*runs],
            "lines": lines,
            "has_files": any(reader.has_files for reader in readers),
            "has_more": any(reader.has_unread_data for reader in readers),
            "problems": problems[:_MAX_PROBLEMS],
            "left_out": len(folders) - len(shown),
        }


def _runs(folders: Sequence[LogFolder], readers: Sequence[CurveReader]) -> Iterator[tuple[str, dict[str, Curve]]]:
    """Yield the name of each run that has scalars, such as `train` or `trial-3/train`, and its curves by tag."""
    for folder, reader in zip(folders, readers, strict=True):
        for run, curves in sorted(reader.curves.items()):
            if curves:
                yield "/".join(filter(None, [folder.name, run])), curves


def _lines(runs: Mapping[str, Mapping[str, Curve]], tags: Sequence[str]) -> Iterator[dict[str, Any]]:
    for tag in dict.fromkeys(tags):
        for run, by_tag in runs.items():
            if tag in by_tag:
                yield {"tag": tag, "run": run, **by_tag[tag].to_json()}
