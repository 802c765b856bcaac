"""Rules for a HyperparameterTuningJob: its study, with metrics, parameters and stopping, and its trials."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from vertex_api.machines import machine_of
from vertex_api.messages import KeyPath
from vertex_api.scalars import quote
from vertex_api.validation.formats import Structure, Violation, check_set
from vertex_api.validation.pools import check_job_spec


def check_tuning_job(job: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for a HyperparameterTuningJob, its study and the jobs of its trials."""
    yield from check_job_spec(job["trialJobSpec"], (*at, "trialJobSpec"))
    yield from _check_tpus(job["trialJobSpec"], (*at, "trialJobSpec"))
    yield from _check_study(job["studySpec"], (*at, "studySpec"))
    yield from _check_counts(job, at)


def _check_tpus(trial_job_spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on using hyperparameter tuning: "jobs with TPUs are not supported"."""
    for index, pool in enumerate(trial_job_spec["workerPoolSpecs"]):
        if (machine := machine_of(pool)) and machine.is_tpu:
            path: KeyPath = (*at, "workerPoolSpecs", index, "machineSpec", "machineType")
            yield path, f"{machine.name} has TPUs, which hyperparameter tuning does not take"


def _check_counts(job: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, HyperparameterTuningJob: both counts are required; zero is "unset" in proto JSON."""
    for name in ("maxTrialCount", "parallelTrialCount"):
        if job.get(name, 0) < 1:
            yield (*at, name), "is required, and at least 1"


def _check_study(study: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for a StudySpec."""
    yield from _check_metrics(study["metrics"], (*at, "metrics"))
    yield from _check_parameters(study["parameters"], (*at, "parameters"))
    if study.get("algorithm") == "GRID_SEARCH":
        yield from _check_grid(study["parameters"], (*at, "parameters"))
    yield from _check_stopping(study, at)


def _check_metrics(metrics: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, MetricSpec and SafetyMetricConfig."""
    seen: set[str] = set()
    for index, metric in enumerate(metrics):
        name, path = metric["metricId"], (*at, index, "metricId")
        yield from check_set(metric, ["metricId"], (*at, index))
        if re.search(r"\s", name):
            yield path, f"{quote(name)} must not contain white space"
        if name in seen:
            yield path, f"{quote(name)} is there twice"
        seen.add(name)
        fraction = metric.get("safetyConfig", {}).get("desiredMinSafeTrialsFraction", 0.0)
        if not 0 <= fraction <= 1:
            message = f"{fraction} is not within 0 to 1"
            yield (*at, index, "safetyConfig", "desiredMinSafeTrialsFraction"), message
    if all("safetyConfig" in metric for metric in metrics):
        yield at, "has safety metrics only; a study needs an objective, a metric without safetyConfig"


def _check_grid(specs: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `algorithm`: GRID_SEARCH takes parameters with a finite number of values."""
    for spec, path, _ in walk_parameters(specs, at):
        if "doubleValueSpec" in spec:
            yield (*path, "doubleValueSpec"), "GRID_SEARCH takes integer, categorical and discrete parameters only"


_VALUE_SPECS = ("doubleValueSpec", "integerValueSpec", "categoricalValueSpec", "discreteValueSpec")
_MIN_DISTANCE = 1e-10
_MAX_VALUES = 1000
_MAX_COMPARED = 100  # children that share an id, of which each is compared with each

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Branch:
    """The condition of a child: the path of its parent, and the values of the parent that make the child active."""

    parent: KeyPath
    values: frozenset[Any]

    def excludes(self, other: "Branch") -> bool:
        """Return whether both have the same parent, and no value of it makes both active."""
        return self.parent == other.parent and self.values.isdisjoint(other.values)


Place = tuple[Spec, KeyPath, tuple[Branch, ...]]


def walk_parameters(specs: list[Spec], at: KeyPath) -> Iterator[Place]:
    """Yield each ParameterSpec, parents before their children, with its path and its conditions."""
    for index, spec in enumerate(specs):
        yield from _walk(spec, (*at, index), ())


def _walk(spec: Spec, at: KeyPath, branches: tuple[Branch, ...]) -> Iterator[Place]:
    yield spec, at, branches
    for index, child in enumerate(spec.get("conditionalParameterSpecs", ())):
        values = frozenset(value for name in CONDITIONS for value in child.get(name, {}).get("values", ()))
        path: KeyPath = (*at, "conditionalParameterSpecs", index, "parameterSpec")
        yield from _walk(child["parameterSpec"], path, (*branches, Branch(at, values)))


def _check_parameters(specs: list[Spec], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for the `parameters` of a study."""
    places = list(walk_parameters(specs, at))
    for spec, path, _ in places:
        yield from _check_parameter(spec, path)
        yield from _check_conditions(spec, path)
    yield from _check_ids(places)


def _check_ids(places: list[Place]) -> Iterator[Violation]:
    """Discovery document, `parameterId` and `conditionalParameterSpecs`: unique, except under disjoint conditions."""
    seen: dict[str, list[tuple[Branch, ...]]] = {}
    for spec, path, branches in places:
        name = spec["parameterId"]
        earlier = seen.setdefault(name, [])
        if name and not all(_are_exclusive(branches, others) for others in earlier):
            message = f"{quote(name)} is there twice; only children with disjoint conditions may share an id"
            yield (*path, "parameterId"), Structure(message)
        elif len(earlier) < _MAX_COMPARED:
            earlier.append(branches)


def _are_exclusive(branches: tuple[Branch, ...], others: tuple[Branch, ...]) -> bool:
    return any(branch.excludes(other) for branch, other in zip(branches, others, strict=False))


def _check_parameter(spec: Spec, at: KeyPath) -> Iterator[Violation]:
    """Discovery document, ParameterSpec (a union; "must not contain whitespaces") and its value specs, whose ends are
    inclusive: no value lies between ends in reverse.
    """
    yield from check_set(spec, ["parameterId"], at)
    if re.search(r"\s", spec["parameterId"]):
        yield (*at, "parameterId"), f"{quote(spec['parameterId'])} must not contain white space"
    fields = [name for name in _VALUE_SPECS if name in spec]
    if len(fields) != 1:
        yield at, Structure(f"needs exactly one of {', '.join(_VALUE_SPECS)}")
        return
    name, values = fields[0], spec[fields[0]]
    if name in ("doubleValueSpec", "integerValueSpec"):
        low, high = values.get("minValue", 0), values.get("maxValue", 0)
        if low > high:
            yield (*at, name), Structure(f"minValue {low} is greater than maxValue {high}")
    elif name == "discreteValueSpec":
        yield from _check_discrete(values["values"], (*at, name, "values"))
    yield from _check_scale(spec, name, at)


def _check_discrete(values: list[float], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, DiscreteValueSpec: "in increasing order and at least 1e-10 apart", not "more than 1,000"."""
    if len(values) > _MAX_VALUES:
        yield at, f"has {len(values)} values; at most {_MAX_VALUES} are allowed"
    for before, after in pairwise(values):
        if before >= after:
            yield at, f"must increase: {after} stands after {before}"
            return
        if after - before < _MIN_DISTANCE:
            yield at, f"{before} and {after} are less than {_MIN_DISTANCE} apart"
            return


def _check_scale(parameter_spec: Spec, value_spec_field: str, at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `scaleType`: unset for categories; the logarithmic ones need values above zero."""
    scale, values = parameter_spec.get("scaleType", "SCALE_TYPE_UNSPECIFIED"), parameter_spec[value_spec_field]
    if value_spec_field == "categoricalValueSpec":
        if scale != "SCALE_TYPE_UNSPECIFIED":
            yield (*at, "scaleType"), f"{scale} is for numbers; leave it out for categories"
    elif "LOG" in scale:
        low = min(values["values"]) if value_spec_field == "discreteValueSpec" else values.get("minValue", 0)
        if low <= 0:
            yield (*at, "scaleType"), f"{scale} needs a range above zero; its least value is {low}"


CONDITIONS = {
    "parentIntValues": "integerValueSpec",
    "parentDiscreteValues": "discreteValueSpec",
    "parentCategoricalValues": "categoricalValueSpec",
}
"""The conditions, each with the value spec of the parents that it is for."""
_EPSILON = 1e-10


def _check_conditions(parent_parameter: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find conditions that do not match the type and the values of their parent, which must not be a DOUBLE.

    Source: discovery document, ConditionalParameterSpec."""
    children = parent_parameter.get("conditionalParameterSpecs", ())
    if children and "doubleValueSpec" in parent_parameter:
        message = "a DOUBLE parameter has no conditional parameters; use integer, discrete or categorical values"
        yield (*at, "conditionalParameterSpecs"), message
        return
    expected = next((name for name, spec in CONDITIONS.items() if spec in parent_parameter), None)
    parent_spec = parent_parameter[CONDITIONS[expected]] if expected else {}
    # Once, not for each child: a parent may have thousands of both.
    sorted_values = sorted(parent_spec.get("values", ())) if children else []
    values = frozenset(sorted_values)
    for index, child in enumerate(children):
        path: KeyPath = (*at, "conditionalParameterSpecs", index)
        fields = [name for name in CONDITIONS if name in child]
        if len(fields) != 1:
            yield path, Structure(f"needs exactly one of {', '.join(CONDITIONS)}")
        elif expected and fields != [expected]:
            yield (*path, fields[0]), f"is not for a parent with {CONDITIONS[expected]}; use {expected}"
        elif expected:
            for place, value in enumerate(child[expected]["values"]):
                if expected == "parentIntValues":
                    is_possible = parent_spec.get("minValue", 0) <= value <= parent_spec.get("maxValue", 0)
                else:
                    is_discrete = expected == "parentDiscreteValues"
                    is_possible = value in values or (is_discrete and _is_close(value, sorted_values))
                if not is_possible:
                    yield (*path, expected, "values", place), f"{quote(value)} is not a value of the parent"


def _is_close(value: float, sorted_values: list[float]) -> bool:
    place = bisect_left(sorted_values, value)
    return any(abs(value - other) <= _EPSILON for other in sorted_values[max(place - 1, 0) : place + 1])


_SPECS = ("decayCurveStoppingSpec", "medianAutomatedStoppingSpec", "convexAutomatedStoppingSpec")


def _check_stopping(study_spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, StudySpec: a union, of which at most one is set."""
    fields = [name for name in _SPECS if name in study_spec]
    for name in fields[1:]:
        yield (*at, name), f"cannot stand beside {fields[0]}: at most one of {', '.join(_SPECS)}"
    config = study_spec.get("studyStoppingConfig", {})
    for name in ("minimumRuntimeConstraint", "maximumRuntimeConstraint"):
        if name in config:
            yield from _check_constraint(config[name], (*at, "studyStoppingConfig", name))


def _check_constraint(constraint: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, StudyTimeConstraint: a union."""
    if ("maxDuration" in constraint) == ("endTime" in constraint):
        yield at, "needs exactly one of maxDuration and endTime"
