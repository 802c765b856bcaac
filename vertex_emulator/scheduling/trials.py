"""A trial of a study: the job that it runs, and what the job and its metric file say about it.

cloudml-hypertune writes the file: it rewrites it at every report and keeps the last 100 entries, one JSON object per
line: `timestamp` (epoch seconds), `global_step` (a whole number as a string, "0" when the trainer gives none), and the
metric's value as a string under the metric's id. So the emulator polls the file and keeps what it has read.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf, isfinite
from typing import Any

from vertex_api.jobspec import output_folder
from vertex_api.studies import is_safe, objectives_of
from vertex_api.types import StudySpec
from vertex_emulator.database.records import CANCELLING, SUCCEEDED, Job, Trial
from vertex_emulator.search import Measurement

Values = Mapping[str, float | int | str]
MAX_MEASUREMENTS = 10_000
"""Of a trial: those of the last steps are kept."""
_PROGRAM_FIELDS = ("containerSpec", "pythonPackageSpec")
_MAX_LINES, _MAX_LINE_LENGTH = 1000, 64 << 10  # the library writes 100 short ones
_RESERVED_FIELDS = {"timestamp", "trial", "global_step", "checkpoint_path"}


def job_spec(study: Job, number: int, parameters: Values) -> dict[str, Any]:
    """The CustomJobSpec of a trial: parameters are appended to each pool's args, outputs go to its own folder."""
    spec = dict(study.spec["trialJobSpec"])
    flags = [
        f"--{name}={repr(value) if isinstance(value, float) else str(value)}" for name, value in parameters.items()
    ]

    def add_flags(program: Mapping[str, Any]) -> dict[str, Any]:
        return {**program, "args": [*program.get("args", []), *flags]}

    spec["workerPoolSpecs"] = [
        {name: add_flags(value) if name in _PROGRAM_FIELDS else value for name, value in pool.items()}
        for pool in spec["workerPoolSpecs"]
    ]
    if directory := output_folder(spec, str(number)):
        spec["baseOutputDirectory"] = {"outputUriPrefix": f"{directory}/"}
    return spec


def update(study: Job, trial: Trial, job: Job, metric_text: str) -> Trial:
    """Return the new version of a trial, from its job and from the text of its metric file."""
    started = job.started
    study_spec = study.spec["studySpec"]
    metric_ids = [metric["metricId"] for metric in study_spec["metrics"]]
    known = list(map(Measurement.parse, trial.measurements))
    if started is not None:
        latest = parse_metrics(metric_text, metric_ids, started / 10**9)
        # Rounded as a Duration is stored, so that reading the file again gives equal measurements.
        known = merge_metrics(known, [replace(each, elapsed=round(each.elapsed, 6)) for each in latest])
    trial = replace(trial, started=started, measurements=tuple(each.to_json() for each in known))
    if not job.is_terminal:
        if job.state == CANCELLING:
            return replace(trial, state="STOPPING")
        return replace(trial, state="ACTIVE") if started is not None else trial
    final = final_measurement(known, study_spec)
    ended = replace(trial, ended=job.ended, final=None if final is None else final.to_json())
    if job.state != SUCCEEDED:
        reason = job.ending.message if job.ending is not None else job.state
        return replace(ended, state="INFEASIBLE", final=None, infeasible_reason=reason)
    if final is None:
        reason = f"The trial ended without reporting the metric {objectives_of(study_spec)[0].id}."
        if names := unknown_names(metric_text, metric_ids):
            reason += f" It reported {', '.join(names)}."
        return replace(ended, state="INFEASIBLE", infeasible_reason=reason)
    return replace(ended, state="SUCCEEDED")


def final_measurement(measurements: Sequence[Measurement], study_spec: StudySpec) -> Measurement | None:
    """Select the final measurement of a trial; None if no measurement has the study's first objective.

    It is the last one reported, or under BEST_MEASUREMENT the best by the objectives' goals, the earlier of two equal
    ones (measurementSelectionType and goal, discovery document). Google does not document several metrics. Here a safe
    measurement comes before an unsafe one, then the first objective decides, then the next. Metrics that the selected
    measurement lacks are taken from the last one that has them.
    """
    goals = objectives_of(study_spec)
    candidates = [measurement for measurement in measurements if goals[0].id in measurement.metrics]
    if not candidates:
        return None
    latest = {
        name: value
        for measurement in sorted(measurements, key=lambda measurement: measurement.elapsed)
        for name, value in measurement.metrics.items()
    }

    def rank(candidate: Measurement) -> tuple[bool, list[float]]:
        losses = [goal.loss(candidate.metrics) for goal in goals]
        unsafe = not is_safe(study_spec, {**latest, **candidate.metrics})
        return unsafe, [inf if loss is None else loss for loss in losses]

    if study_spec.get("measurementSelectionType") == "BEST_MEASUREMENT":
        chosen = min(candidates, key=rank)
    else:
        # `max` returns the first of equal ones: reversed, the later of two measurements without times.
        chosen = max(reversed(candidates), key=lambda candidate: candidate.elapsed)
    return replace(chosen, metrics={**latest, **chosen.metrics})


def parse_metrics(metric_text: str, metric_ids: Sequence[str], trial_start: float) -> list[Measurement]:
    """Parse a metric file into measurements, ordered by step, then by time.

    `trial_start` is in epoch seconds. Entries of one step with different metrics become one measurement.
    A metric that repeats within a step, as from a trainer that reports no steps, starts another. Values that are nan or
    infinite are ignored, so a trial that reports nothing else is infeasible. Lines that are not entries are skipped,
    such as the last line of a file that is still being written.
    """
    steps = _Steps()
    for entry in _entries(metric_text):
        values = {metric_id: _number(entry.get(metric_id)) for metric_id in metric_ids}
        metrics = {metric_id: value for metric_id, value in values.items() if value is not None}
        if metrics:
            timestamp = _number(entry.get("timestamp"))
            elapsed = 0.0 if timestamp is None else max(timestamp - trial_start, 0.0)
            steps.report(Measurement(int(_number(entry.get("global_step")) or 0), elapsed, metrics))
    return steps.sorted()


def merge_metrics(known: Sequence[Measurement], latest: Sequence[Measurement]) -> list[Measurement]:
    """Return `known` with the measurements that `latest`, a later reading of the file, adds, in the same order.

    A step that `known` has in part is completed. Entries of a step whose first ones have left the file add nothing.
    Returns the last MAX_MEASUREMENTS.
    """
    steps = _Steps()
    for measurement in known:
        steps.setdefault(measurement.step_count, []).append(measurement)
    for added in latest:
        if not any(
            other.elapsed >= added.elapsed and added.metrics.items() <= other.metrics.items()
            for other in steps.get(added.step_count, [])
        ):
            steps.report(added)
    return steps.sorted()[-MAX_MEASUREMENTS:]


class _Steps(dict[int, list[Measurement]]):
    """The measurements of each step."""

    def report(self, added: Measurement) -> None:
        """Complete the step's latest measurement with further metrics, or append another one to the step."""
        reported = self.setdefault(added.step_count, [])
        latest = reported[-1] if reported else None
        shared = added.metrics.keys() & latest.metrics.keys() if latest is not None else set()
        if (
            latest is not None
            and shared != added.metrics.keys()
            and all(added.metrics[id_] == latest.metrics[id_] for id_ in shared)
        ):
            elapsed = max(latest.elapsed, added.elapsed)
            reported[-1] = Measurement(added.step_count, elapsed, {**latest.metrics, **added.metrics})
        else:
            reported.append(added)

    def sorted(self) -> list[Measurement]:
        """All measurements by step, then by time, as the API orders them."""
        return sorted(chain.from_iterable(self.values()), key=lambda each: (each.step_count, each.elapsed))


def unknown_names(metric_text: str, metric_ids: Sequence[str]) -> list[str]:
    """Up to five names in a metric file that are not metrics of the study, probably misspelt."""
    names = {name for entry in _entries(metric_text) for name, value in entry.items() if _number(value) is not None}
    unknown = names - _RESERVED_FIELDS - {*metric_ids}
    return sorted(name for name in unknown if len(name) <= 128 and name.isprintable())[:5]


def _entries(metric_text: str) -> Iterator[dict[str, Any]]:
    """The entries of the last lines; {} for a line that is none."""
    for line in metric_text.rsplit("\n", _MAX_LINES)[-_MAX_LINES:]:
        entry = None
        if len(line) <= _MAX_LINE_LENGTH:
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = None
        yield entry if isinstance(entry, dict) else {}


def _number(value: object) -> float | None:
    """Parse a finite number, which the library writes as a string; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
