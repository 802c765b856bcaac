"""One trial of a study: the job that runs it, and what its job and its metric file make of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from vertex_api.catalog.job_defaults import get_output_directory
from vertex_emulator.database.records import CANCELLING, SUCCEEDED, Job, Trial
from vertex_emulator.scheduling import measurements
from vertex_emulator.search.objectives import objectives

Values = Mapping[str, float | int | str]
_PROGRAMS = ("containerSpec", "pythonPackageSpec")


def progressed(study: Job, trial: Trial, job: Job, metric_text: str) -> Trial:
    """A trial after a look at its job and at what it wrote to its metric file."""
    started = job.started
    study_spec = study.spec["studySpec"]
    metric_ids = [metric["metricId"] for metric in study_spec["metrics"]]
    known = [measurements.from_json(message) for message in trial.measurements]
    if started is not None:
        fresh = measurements.read(metric_text, metric_ids, started / 10**9)
        # As exact as a Duration is written down, so that a second look finds the same measurement.
        known = measurements.merge(known, [replace(found, elapsed=round(found.elapsed, 6)) for found in fresh])
    trial = replace(trial, started=started, measurements=tuple(measurements.to_json(found) for found in known))
    if not job.is_terminal:
        if job.state == CANCELLING:
            return replace(trial, state="STOPPING")
        return replace(trial, state="ACTIVE") if started is not None else trial
    final = measurements.final(known, study_spec)
    ended = replace(trial, ended=job.ended, final=None if final is None else measurements.to_json(final))
    if job.state != SUCCEEDED:
        reason = job.ending.message if job.ending is not None else job.state
        return replace(ended, state="INFEASIBLE", final=None, infeasible_reason=reason)
    if final is None:
        reason = f"The trial ended without reporting the metric {objectives(study_spec)[0].id}."
        if tags := measurements.strangers(metric_text, metric_ids):
            reason += f" It reported {', '.join(tags)}."
        return replace(ended, state="INFEASIBLE", infeasible_reason=reason)
    return replace(ended, state="SUCCEEDED")


def trial_job_spec(study: Job, number: int, parameters: Values) -> dict[str, Any]:
    """The CustomJobSpec of a trial: parameters appended to every pool's args, an output folder of its own."""
    spec = dict(study.spec["trialJobSpec"])
    flags = [f"--{name}={_flag_value(value)}" for name, value in parameters.items()]
    spec["workerPoolSpecs"] = [
        {name: _with_args(value, flags) if name in _PROGRAMS else value for name, value in pool.items()}
        for pool in spec["workerPoolSpecs"]
    ]
    if directory := get_output_directory(spec, str(number)):
        spec["baseOutputDirectory"] = {"outputUriPrefix": f"{directory}/"}
    return spec


def _with_args(program: Mapping[str, Any], flags: Sequence[str]) -> dict[str, Any]:
    return {**program, "args": [*program.get("args", []), *flags]}


def _flag_value(value: float | int | str) -> str:
    return repr(value) if isinstance(value, float) else str(value)
