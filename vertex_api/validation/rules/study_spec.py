"""Rules for a StudySpec."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.scalar_types import quote_value
from vertex_api.validation.rules import study_parameters, study_stopping
from vertex_api.validation.rules.text_formats import find_unset_field_violations
from vertex_api.validation.rules.violation_type import KeyPath, Violation


def find_study_violations(study: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for a StudySpec."""
    yield from _find_metric_violations(study["metrics"], (*at, "metrics"))
    yield from study_parameters.find_parameter_violations(study["parameters"], (*at, "parameters"))
    if study.get("algorithm") == "GRID_SEARCH":
        yield from _find_parameters_not_for_grid_search(study["parameters"], (*at, "parameters"))
    yield from study_stopping.find_stopping_rule_violations(study, at)


def _find_metric_violations(metrics: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, MetricSpec and SafetyMetricConfig."""
    seen: set[str] = set()
    for index, metric in enumerate(metrics):
        name, path = metric["metricId"], (*at, index, "metricId")
        yield from find_unset_field_violations(metric, ["metricId"], (*at, index))
        if re.search(r"\s", name):
            yield path, f"{quote_value(name)} must not contain white space"
        if name in seen:
            yield path, f"{quote_value(name)} is there twice"
        seen.add(name)
        fraction = metric.get("safetyConfig", {}).get("desiredMinSafeTrialsFraction", 0.0)
        if not 0 <= fraction <= 1:
            message = f"{fraction} is not within 0 to 1"
            yield (*at, index, "safetyConfig", "desiredMinSafeTrialsFraction"), message
    if all("safetyConfig" in metric for metric in metrics):
        yield at, "has safety metrics only; a study needs an objective, a metric without safetyConfig"


def _find_parameters_not_for_grid_search(specs: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `algorithm`: GRID_SEARCH takes parameters with a finite number of values."""
    for spec, path, _ in study_parameters.walk_parameters_with_conditions(specs, at):
        if "doubleValueSpec" in spec:
            yield (*path, "doubleValueSpec"), "GRID_SEARCH takes integer, categorical and discrete parameters only"
