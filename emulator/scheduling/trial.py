"""One trial of a study: the job that runs it, and what its job and its metric file make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from emulator.records import CANCELLING, SUCCEEDED, Job, Trial
from emulator.scheduling import measurements

Values = Mapping[str, float | int | str]


def progressed(study: Job, trial: Trial, job: Job, metric_text: str) -> Trial:
    """A trial after a look at its job and at what it wrote to its metric file."""
    started = job.started
    metric_ids = [metric["metricId"] for metric in study.spec["studySpec"]["metrics"]]
    known = [_measurement(message) for message in trial.measurements]
    if started is not None:
        fresh = measurements.read(metric_text, metric_ids, started / 10**9)
        # As exact as a Duration is written down, so that a second look finds the same measurement.
        known = measurements.merge(known, [replace(found, elapsed=round(found.elapsed, 6)) for found in fresh])
    trial = replace(trial, started=started, measurements=tuple(_measurement_json(found) for found in known))
    if not job.is_terminal:
        if job.state == CANCELLING:
            return replace(trial, state="STOPPING")
        return replace(trial, state="ACTIVE") if started is not None else trial
    final = measurements.final(known, study.spec["studySpec"])
    ended = replace(trial, ended=job.ended, final=None if final is None else _measurement_json(final))
    if job.state != SUCCEEDED:
        reason = job.ending.message if job.ending is not None else job.state
        return replace(ended, state="INFEASIBLE", final=None, infeasible_reason=reason)
    if final is None:
        reason = f"The trial ended without reporting the metric {metric_ids[0]}."
        return replace(ended, state="INFEASIBLE", infeasible_reason=reason)
    return replace(ended, state="SUCCEEDED")


def trial_job_spec(study: Job, number: int, parameters: Values) -> dict[str, Any]:
    """The CustomJobSpec of a trial: parameters appended to every pool's args, an output folder of its own."""
    spec = dict(study.spec["trialJobSpec"])
    flags = [f"--{name}={_flag_value(value)}" for name, value in parameters.items()]
    spec["workerPoolSpecs"] = [
        {**pool, "containerSpec": {**container, "args": [*container.get("args", []), *flags]}}
        if (container := pool.get("containerSpec"))
        else pool
        for pool in spec["workerPoolSpecs"]
    ]
    base = spec.get("baseOutputDirectory", {}).get("outputUriPrefix")
    if base:
        spec["baseOutputDirectory"] = {"outputUriPrefix": f"{base.rstrip('/')}/{number}/"}
    return spec


def _flag_value(value: float | int | str) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _measurement(message: Mapping[str, Any]) -> measurements.Measurement:
    return measurements.Measurement(
        step_count=message["stepCount"],
        elapsed=float(message["elapsedDuration"].removesuffix("s")),
        metrics={found["metricId"]: found["value"] for found in message["metrics"]},
    )


def _measurement_json(found: measurements.Measurement) -> dict[str, Any]:
    return {
        "stepCount": found.step_count,
        "elapsedDuration": f"{found.elapsed:.6f}s",
        "metrics": [{"metricId": name, "value": value} for name, value in found.metrics.items()],
    }
