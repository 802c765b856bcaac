"""Advice on a job: what is likely to be a mistake, and what no page of Google's says that the service refuses.

A preview and a review show it as warnings, on both targets; a job that has some is submitted. What the service refuses
is in `vertex_api.validation`, and what its documents ask of a declaration in `vertex_api.mistakes`.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from vertex_api.job import Job
from vertex_api.jobspec import REDUCTION_SERVER_POOL, is_reduction_server
from vertex_api.machines import accelerator_of
from vertex_api.messages import KeyPath, value_at
from vertex_api.scalars import quote, to_seconds
from vertex_api.validation.formats import Violation
from vertex_api.validation.study import walk_parameters

_NO_PROGRESS = ("maxNumTrialsNoProgress", "maxDurationNoProgress")


def advice(job: Job) -> Iterator[Violation]:
    """Find what to look at again in a valid job.

    No page says that an `experimentRun` needs its experiment beside it.
    """
    spec, at = job.job_spec, job.job_spec_path
    for index, pool in enumerate(spec["workerPoolSpecs"]):
        for task in ("containerSpec", "pythonPackageSpec"):
            yield from _repeated_variables(pool.get(task, {}), (*at, "workerPoolSpecs", index, task))
        yield from _useless_affinity(pool.get("machineSpec", {}), (*at, "workerPoolSpecs", index, "machineSpec"))
    yield from _useless_reduction_server(spec, at)
    yield from _useless_wait(spec.get("scheduling", {}), (*at, "scheduling"))
    if spec.get("experimentRun") and not spec.get("experiment"):
        yield (*at, "experiment"), "is not set, and experimentRun is: name the experiment that it is a run of"
    if study := job.study_spec:
        yield from _counts(job)
        at = job.own_path(("studySpec",))
        yield from _parameter_mistakes(study["parameters"], (*at, "parameters"))
        yield from _useless_stopping(study, at)
        yield from _convex_mistakes(study, (*at, "convexAutomatedStoppingSpec"))
        yield from _limit_mistakes(study.get("studyStoppingConfig", {}), (*at, "studyStoppingConfig"))


def _counts(job: Job) -> Iterator[Violation]:
    """No page says that a study refuses them; a public course runs one trial with two at once."""
    fields = job.backing.fields
    for name in ("parallelTrialCount", "maxFailedTrialCount"):
        if fields.get(name, 0) > job.trials:
            yield job.own_path((name,)), f"{fields[name]} is more than maxTrialCount {job.trials}, and never reached"
    if fields.get("maxFailedTrialCount", 0) < 0:
        yield job.own_path(("maxFailedTrialCount",)), f"{fields['maxFailedTrialCount']} is negative, and no count"


def _repeated_variables(task: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """A variable has one value; the API does not say which of two."""
    seen: set[str] = set()
    for index, entry in enumerate(task.get("env", ())):
        if entry["name"] in seen:
            yield (*at, "env", index, "name"), f"{quote(entry['name'])} is there twice"
        seen.add(entry["name"])


def _useless_reduction_server(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on distributed training: Reduction Server serves the GPUs of the first and the second pool."""
    pools, last = spec["workerPoolSpecs"], REDUCTION_SERVER_POOL
    if len(pools) <= last or not is_reduction_server(pools[last]):
        return
    for index, pool in enumerate(pools[:last]):
        path: KeyPath = (*at, "workerPoolSpecs", index)
        if not pool:
            yield path, "is empty; Reduction Server is for the GPUs of this pool and the first"
        elif "machineSpec" in pool and accelerator_of(pool["machineSpec"]) == (None, 0):
            yield (*path, "machineSpec", "acceleratorType"), "Reduction Server is for pools with GPUs"


def _parameter_mistakes(specs: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """A parameter reaches the trainer as the flag --id=value; a category that is there twice is tried twice."""
    for spec, path, _ in walk_parameters(specs, at):
        if "=" in spec["parameterId"]:
            message = f"{quote(spec['parameterId'])} has a =: trials get it as the flag --id=value"
            yield (*path, "parameterId"), message
        seen: set[str] = set()
        for index, value in enumerate(spec.get("categoricalValueSpec", {}).get("values", ())):
            if value in seen:
                yield (*path, "categoricalValueSpec", "values", index), f"{quote(value)} is there twice"
            seen.add(value)


def _useless_stopping(study: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, StudyStoppingConfig: "effective only for single-objective studies"."""
    objectives = [metric for metric in study["metrics"] if "safetyConfig" not in metric]
    for field in _NO_PROGRESS:
        if len(objectives) > 1 and field in study.get("studyStoppingConfig", {}):
            message = f"has no effect with {len(objectives)} objectives, only with one; use maxNumTrials or none"
            yield (*at, "studyStoppingConfig", field), message


def _useless_wait(scheduling: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `maxWaitDuration`: how long a job waits "if the scheduling strategy is set to" FLEX_START."""
    strategy = scheduling.get("strategy", "STANDARD")
    if "maxWaitDuration" in scheduling and strategy != "FLEX_START":
        yield (*at, "maxWaitDuration"), f"has no effect with {strategy}, only with the strategy FLEX_START"


def _useless_affinity(machine_spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, ReservationAffinity: key and values are there "to target a SPECIFIC_RESERVATION by name"."""
    affinity = machine_spec.get("reservationAffinity", {})
    kind = affinity.get("reservationAffinityType")
    for field in ("key", "values"):
        if kind in ("NO_RESERVATION", "ANY_RESERVATION") and affinity.get(field):
            yield (*at, "reservationAffinity", field), f"has no effect with {kind}, only with SPECIFIC_RESERVATION"


def _convex_mistakes(study: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, ConvexAutomatedStoppingSpec, which says what the fields are for, and refuses no value."""
    spec = study.get("convexAutomatedStoppingSpec", {})
    yield from _negative(spec, ("minStepCount", "maxStepCount", "minMeasurementCount"), at)
    yield from _reversed(spec, "minStepCount", "maxStepCount", at)
    name = spec.get("learningRateParameterName")
    if name and name not in {parameter["parameterId"] for parameter, _, _ in walk_parameters(study["parameters"], ())}:
        yield (*at, "learningRateParameterName"), f"{quote(name)} is no parameter of the study"


def _limit_mistakes(config: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, StudyStoppingConfig: its first rules "will prevent other stopping rules".

    So it refuses no order of limits.
    """
    yield from _negative(config, ("minNumTrials", "maxNumTrials", "maxNumTrialsNoProgress"), at)
    yield from _reversed(config, "minNumTrials", "maxNumTrials", at)
    durations: list[tuple[KeyPath, str]] = [((), "maxDurationNoProgress")]
    durations += [((name,), "maxDuration") for name in ("minimumRuntimeConstraint", "maximumRuntimeConstraint")]
    for path, field in durations:
        text = (value_at(config, path) or {}).get(field, "0s")
        if to_seconds(text) < 0:
            yield (*at, *path, field), f"{quote(text)} is negative, so it has passed from the start"
    least, most = config.get("minimumRuntimeConstraint", {}), config.get("maximumRuntimeConstraint", {})
    for field, more in (("maxDuration", "longer"), ("endTime", "later")):
        limits = [_limit_seconds(field, each[field]) for each in (least, most) if field in each]
        if len(limits) == 2 and limits[0] > limits[1] >= 0:
            message = f'"{least[field]}" is {more} than that of maximumRuntimeConstraint, "{most[field]}"'
            yield (*at, "minimumRuntimeConstraint", field), message


def _limit_seconds(field: str, text: str) -> float:
    return to_seconds(text) if field == "maxDuration" else datetime.fromisoformat(text).timestamp()


def _negative(spec: Mapping[str, Any], fields: tuple[str, ...], at: KeyPath) -> Iterator[Violation]:
    """No page says what a negative count means."""
    for field in fields:
        if spec.get(field, 0) < 0:
            yield (*at, field), f"{spec[field]} is negative, and no count"


def _reversed(spec: Mapping[str, Any], min_field: str, max_field: str, at: KeyPath) -> Iterator[Violation]:
    """No page refuses limits in reverse. Both are set, as zero is "unset" in proto JSON."""
    if spec.get(min_field, 0) > spec.get(max_field, 0) > 0:
        yield (*at, min_field), f"{spec[min_field]} is more than {max_field} {spec[max_field]}"
