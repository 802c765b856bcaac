"""Rules for the settings that stop trials and studies early."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from vertex_api.scalar_types import parse_seconds
from vertex_api.validation.rules.study_parameters import walk_parameters_with_conditions
from vertex_api.validation.rules.violation_type import KeyPath, Violation

_SPECS = ("decayCurveStoppingSpec", "medianAutomatedStoppingSpec", "convexAutomatedStoppingSpec")


def find_stopping_rule_violations(study_spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for stopping trials and the study (discovery document, StudySpec)."""
    fields = [name for name in _SPECS if name in study_spec]
    for name in fields[1:]:
        yield (*at, name), f"cannot stand beside {fields[0]}: at most one of {', '.join(_SPECS)}"
    if "convexAutomatedStoppingSpec" in study_spec:
        yield from _find_convex_stopping_violations(study_spec, (*at, "convexAutomatedStoppingSpec"))
    if "studyStoppingConfig" in study_spec:
        yield from _find_study_limit_violations(study_spec["studyStoppingConfig"], (*at, "studyStoppingConfig"))


def _find_convex_stopping_violations(study_spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, ConvexAutomatedStoppingSpec."""
    spec = study_spec["convexAutomatedStoppingSpec"]
    yield from _find_negative_values(spec, ("minStepCount", "maxStepCount", "minMeasurementCount"), at)
    yield from _find_reversed_limits(spec, "minStepCount", "maxStepCount", at)
    name = spec.get("learningRateParameterName")
    parameters = walk_parameters_with_conditions(study_spec["parameters"], ())
    if name and name not in {parameter["parameterId"] for parameter, _, _ in parameters}:
        yield (*at, "learningRateParameterName"), f'"{name}" is no parameter of the study'


def _find_study_limit_violations(config: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, StudyStoppingConfig and StudyTimeConstraint (a union)."""
    yield from _find_negative_values(config, ("minNumTrials", "maxNumTrials", "maxNumTrialsNoProgress"), at)
    yield from _find_reversed_limits(config, "minNumTrials", "maxNumTrials", at)
    if parse_seconds(config.get("maxDurationNoProgress", "0s")) < 0:
        yield (*at, "maxDurationNoProgress"), f'"{config["maxDurationNoProgress"]}" must not be negative'
    for name in ("minimumRuntimeConstraint", "maximumRuntimeConstraint"):
        if name in config:
            yield from _find_time_constraint_violations(config[name], (*at, name))
    least, most = config.get("minimumRuntimeConstraint", {}), config.get("maximumRuntimeConstraint", {})
    for field, more in (("maxDuration", "longer"), ("endTime", "later")):
        limits = [_parse_seconds_of_duration_or_end_time(field, each[field]) for each in (least, most) if field in each]
        if len(limits) == 2 and limits[0] > limits[1] >= 0:
            message = f'"{least[field]}" is {more} than that of maximumRuntimeConstraint, "{most[field]}"'
            yield (*at, "minimumRuntimeConstraint", field), message


def _parse_seconds_of_duration_or_end_time(field: str, text: str) -> float:
    return parse_seconds(text) if field == "maxDuration" else datetime.fromisoformat(text).timestamp()


def _find_time_constraint_violations(constraint: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    if ("maxDuration" in constraint) == ("endTime" in constraint):
        yield at, "needs exactly one of maxDuration and endTime"
    if parse_seconds(constraint.get("maxDuration", "0s")) < 0:
        yield (*at, "maxDuration"), f'"{constraint["maxDuration"]}" must not be negative'


def _find_negative_values(spec: Mapping[str, Any], fields: tuple[str, ...], at: KeyPath) -> Iterator[Violation]:
    for field in fields:
        if spec.get(field, 0) < 0:
            yield (*at, field), f"{spec[field]} must not be negative"


def _find_reversed_limits(spec: Mapping[str, Any], min_field: str, max_field: str, at: KeyPath) -> Iterator[Violation]:
    """Both are set, and zero is "unset" in proto JSON."""
    if spec.get(min_field, 0) > spec.get(max_field, 0) > 0:
        yield (*at, min_field), f"{spec[min_field]} is more than {max_field} {spec[max_field]}"
