"""A trial of a study: the job that it runs, and what the job and its metric file say about it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from vertex_api.jobspec import output_folder
from vertex_api.studies import is_safe, objectives_of
from vertex_api.types import StudySpec
from vertex_emulator.database.records import CANCELLING, SUCCEEDED, Job, Trial
from vertex_emulator.scheduling import metrics
from vertex_emulator.search import Measurement

Values = Mapping[str, float | int | str]
_PROGRAM_FIELDS = ("containerSpec", "pythonPackageSpec")


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
        latest = metrics.parse(metric_text, metric_ids, started / 10**9)
        # Rounded as a Duration is stored, so that reading the file again gives equal measurements.
        known = metrics.merge(known, [replace(each, elapsed=round(each.elapsed, 6)) for each in latest])
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
        if names := metrics.unknown_names(metric_text, metric_ids):
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
