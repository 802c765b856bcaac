"""One trial of a study: the spec of its job, and its state by that job and its metric file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from vertex_api.catalog.job_defaults import get_output_directory
from vertex_api.studies.metrics import list_objectives
from vertex_emulator.database.records import CANCELLING, SUCCEEDED, Job, Trial
from vertex_emulator.scheduling import hypertune_measurements

Values = Mapping[str, float | int | str]
_PROGRAM_FIELDS = ("containerSpec", "pythonPackageSpec")


def build_refreshed_trial(study: Job, trial: Trial, job: Job, metric_text: str) -> Trial:
    """Return a trial updated from its job and from the text of its metric file."""
    started = job.started
    study_spec = study.spec["studySpec"]
    metric_ids = [metric["metricId"] for metric in study_spec["metrics"]]
    known = [hypertune_measurements.parse_measurement(message) for message in trial.measurements]
    if started is not None:
        latest = hypertune_measurements.parse_metric_file(metric_text, metric_ids, started / 10**9)
        # Rounded as a Duration is stored, so that reading the file again gives equal measurements.
        known = hypertune_measurements.merge_measurements(
            known, [replace(measurement, elapsed=round(measurement.elapsed, 6)) for measurement in latest]
        )
    formatted = tuple(map(hypertune_measurements.serialize_measurement, known))
    trial = replace(trial, started=started, measurements=formatted)
    if not job.is_terminal:
        if job.state == CANCELLING:
            return replace(trial, state="STOPPING")
        return replace(trial, state="ACTIVE") if started is not None else trial
    final = hypertune_measurements.compose_final_measurement(known, study_spec)
    ended = replace(
        trial, ended=job.ended, final=None if final is None else hypertune_measurements.serialize_measurement(final)
    )
    if job.state != SUCCEEDED:
        reason = job.ending.message if job.ending is not None else job.state
        return replace(ended, state="INFEASIBLE", final=None, infeasible_reason=reason)
    if final is None:
        reason = f"The trial ended without reporting the metric {list_objectives(study_spec)[0].id}."
        if tags := hypertune_measurements.find_unknown_metric_names(metric_text, metric_ids):
            reason += f" It reported {', '.join(tags)}."
        return replace(ended, state="INFEASIBLE", infeasible_reason=reason)
    return replace(ended, state="SUCCEEDED")


def build_trial_job_spec(study: Job, trial_number: int, parameters: Values) -> dict[str, Any]:
    """Build the CustomJobSpec of a trial: parameters are appended to each pool's args, outputs go to its own folder."""
    spec = dict(study.spec["trialJobSpec"])
    flags = [f"--{name}={_format_flag_value(value)}" for name, value in parameters.items()]
    spec["workerPoolSpecs"] = [
        {name: _append_args(value, flags) if name in _PROGRAM_FIELDS else value for name, value in pool.items()}
        for pool in spec["workerPoolSpecs"]
    ]
    if directory := get_output_directory(spec, str(trial_number)):
        spec["baseOutputDirectory"] = {"outputUriPrefix": f"{directory}/"}
    return spec


def _append_args(program: Mapping[str, Any], flags: Sequence[str]) -> dict[str, Any]:
    return {**program, "args": [*program.get("args", []), *flags]}


def _format_flag_value(value: float | int | str) -> str:
    return repr(value) if isinstance(value, float) else str(value)
