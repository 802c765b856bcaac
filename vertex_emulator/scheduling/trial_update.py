"""The update of a trial's state and measurements from its job and its metric file."""

from dataclasses import replace

from vertex_api.studies.metrics import parse_objectives
from vertex_emulator.database.records import CANCELLING, SUCCEEDED, Job, Trial
from vertex_emulator.scheduling import hypertune_measurements
from vertex_emulator.search.trial_results import parse_api_measurement, serialize_api_measurement


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
    final = hypertune_measurements.compose_final_measurement_or_none(known, study_spec)
    ended = replace(trial, ended=job.ended, final=None if final is None else serialize_api_measurement(final))
    if job.state != SUCCEEDED:
        reason = job.ending.message if job.ending is not None else job.state
        return replace(ended, state="INFEASIBLE", final=None, infeasible_reason=reason)
    if final is None:
        reason = f"The trial ended without reporting the metric {parse_objectives(study_spec)[0].id}."
        if tags := hypertune_measurements.find_some_unknown_metric_names(metric_text, metric_ids):
            reason += f" It reported {', '.join(tags)}."
        return replace(ended, state="INFEASIBLE", infeasible_reason=reason)
    return replace(ended, state="SUCCEEDED")
