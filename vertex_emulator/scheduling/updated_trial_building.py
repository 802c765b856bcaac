"""The update of a trial from its job and its metric file: state, measurements, and the final measurement."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from vertex_api.studies import is_safe, objectives_of
from vertex_api.types import StudySpec
from vertex_emulator.database.records import CANCELLING, SUCCEEDED, Job, Trial
from vertex_emulator.scheduling import hypertune_measurements
from vertex_emulator.search.measurements_and_observations import (
    Measurement,
    parse_api_measurement,
    serialize_api_measurement,
)


def build_updated_trial(study: Job, trial: Trial, job: Job, metric_text: str) -> Trial:
    """Build the new version of a trial, from its job and from the text of its metric file."""
    started = job.started
    study_spec = study.spec["studySpec"]
    metric_ids = [metric["metricId"] for metric in study_spec["metrics"]]
    known = [parse_api_measurement(message) for message in trial.measurements]
    if started is not None:
        latest = hypertune_measurements.parse_metric_file(metric_text, metric_ids, started / 10**9)
        # Rounded as a Duration is stored, so that reading the file again gives equal measurements.
        known = hypertune_measurements.merge_measurements(
            known, [replace(measurement, elapsed=round(measurement.elapsed, 6)) for measurement in latest]
        )
    formatted = tuple(map(serialize_api_measurement, known))
    trial = replace(trial, started=started, measurements=formatted)
    if not job.is_terminal:
        if job.state == CANCELLING:
            return replace(trial, state="STOPPING")
        return replace(trial, state="ACTIVE") if started is not None else trial
    final = compose_final_measurement_or_none(known, study_spec)
    ended = replace(trial, ended=job.ended, final=None if final is None else serialize_api_measurement(final))
    if job.state != SUCCEEDED:
        reason = job.ending.message if job.ending is not None else job.state
        return replace(ended, state="INFEASIBLE", final=None, infeasible_reason=reason)
    if final is None:
        reason = f"The trial ended without reporting the metric {objectives_of(study_spec)[0].id}."
        if tags := hypertune_measurements.find_some_unknown_metric_names(metric_text, metric_ids):
            reason += f" It reported {', '.join(tags)}."
        return replace(ended, state="INFEASIBLE", infeasible_reason=reason)
    return replace(ended, state="SUCCEEDED")


def compose_final_measurement_or_none(measurements: Sequence[Measurement], study_spec: StudySpec) -> Measurement | None:
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
    if study_spec.get("measurementSelectionType") != "BEST_MEASUREMENT":
        # `max` returns the first of equal ones: reversed, the later of two measurements without times.
        chosen = max(reversed(candidates), key=lambda candidate: candidate.elapsed)
        return replace(chosen, metrics={**latest, **chosen.metrics})

    def rank_with_unsafe_last(candidate: Measurement) -> tuple[bool, list[float]]:
        losses = [goal.loss(candidate.metrics) for goal in goals]
        unsafe = not is_safe(study_spec, {**latest, **candidate.metrics})
        return unsafe, [inf if loss is None else loss for loss in losses]

    chosen = min(candidates, key=rank_with_unsafe_last)
    return replace(chosen, metrics={**latest, **chosen.metrics})
