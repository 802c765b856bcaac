"""Rules for the InputDataConfig of a training pipeline."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.validation.rules.text_formats import STORAGE_URI, TextFormat, find_unset_field_violations
from vertex_api.validation.rules.violation_type import KeyPath, Violation

_ONEOFS = (
    ("fractionSplit", "filterSplit", "predefinedSplit", "timestampSplit", "stratifiedSplit"),
    ("gcsDestination", "bigqueryDestination"),
    ("annotationSchemaUri", "savedQueryId"),
)
_FRACTIONS = ("trainingFraction", "validationFraction", "testFraction")
_ROUNDING = 1e-9
_BIGQUERY = TextFormat(
    re.compile(r"bq://[^./\s]+(\.[^./\s]+){0,2}"), "must have the form bq://{project}[.{dataset}[.{table}]]"
)
_DESTINATIONS = {"gcsDestination": ("outputUriPrefix", STORAGE_URI), "bigqueryDestination": ("outputUri", _BIGQUERY)}


def find_input_data_violations(config: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for an InputDataConfig and its splits (discovery document and its proto)."""
    yield from find_unset_field_violations(config, ["datasetId"], at)
    for choices in _ONEOFS:
        fields = [name for name in choices if config.get(name) is not None]
        if len(fields) > 1:
            yield (*at, fields[1]), f"cannot be set beside {fields[0]}"
    for name in ("fractionSplit", "timestampSplit", "stratifiedSplit"):
        if name in config:
            yield from _find_fraction_violations(config[name], (*at, name))
    yield from STORAGE_URI.find_violations_if_set(config.get("annotationSchemaUri"), (*at, "annotationSchemaUri"))
    for name, (field, form) in _DESTINATIONS.items():
        if name in config:
            yield from form.find_required_field_violations(config[name], field, (*at, name))


def _find_fraction_violations(split: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """They "must sum to up to 1"."""
    outside = [name for name in _FRACTIONS if not 0 <= split.get(name, 0.0) <= 1]
    for name in outside:
        yield (*at, name), f"{split[name]} is not within 0 to 1"
    total = sum(split.get(name, 0.0) for name in _FRACTIONS)
    if total > 1 + _ROUNDING and not outside:
        yield at, f"the fractions sum to {total:.6g}, which is more than 1"
