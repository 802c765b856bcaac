"""Filters of log entries: what they can name, the text of it in an entry, and the times that they leave."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vertex_emulator.api.logging.log_entry import SEVERITIES, Entry
from vertex_emulator.errors import ApiError, InvalidFilter
from vertex_emulator.filters import expression_tree, parser
from vertex_emulator.filters.regular_expression import compile_pattern_as_pydantic_validator
from vertex_emulator.times import parse_time

_PAYLOAD = ("textPayload", "text_payload")
_FIELDS = {"resource.type", "logName", "log_name", "timestamp", "severity", "insertId", "insert_id", *_PAYLOAD}
_JSON_PAYLOAD = ("jsonPayload.", "json_payload.")
_MAP_FIELDS = ("resource.labels.", "labels.", *_JSON_PAYLOAD)


def parse_log_filter_with_severity_ranks(text: str) -> expression_tree.Filter | None:
    """Return the filter in a text, with severities as ranks, which compare in their order. Raises ApiError."""
    try:
        condition = parser.parse_filter_unless_empty(text)
    except InvalidFilter as error:
        raise ApiError("INVALID_ARGUMENT", f"Unparseable filter: {error}") from error
    for comparison in expression_tree.iterate_comparisons(condition):
        if comparison.field not in _FIELDS and not comparison.field.startswith(_MAP_FIELDS):
            raise ApiError("INVALID_ARGUMENT", f"Field not found: '{comparison.field}'.")
        if comparison.operator in expression_tree.REGULAR_EXPRESSION_OPERATORS:
            _validate_regular_expression_comparison(comparison)
        elif comparison.field == "severity" and comparison.value not in SEVERITIES:
            message = f"'{comparison.value}' is not a severity; known: {', '.join(SEVERITIES)}"
            raise ApiError("INVALID_ARGUMENT", message)
    return (
        None
        if condition is None
        else expression_tree.replace_comparisons(condition, _convert_to_severity_rank_or_substring_pattern)
    )


def find_earliest_or_latest_matching_time(
    condition: expression_tree.Filter | None, operators: tuple[str, ...], min_or_max: Any
) -> int | None:
    """Return the earliest (or latest) time that can match, None if none is set; `min_or_max` is min (or max)."""
    match condition:
        case expression_tree.And(terms):
            times = [find_earliest_or_latest_matching_time(term, operators, min_or_max) for term in terms]
            return (max if min_or_max is min else min)((time for time in times if time is not None), default=None)
        case expression_tree.Or(terms):
            alternatives = [find_earliest_or_latest_matching_time(term, operators, min_or_max) for term in terms]
            return None if None in alternatives else min_or_max(alternatives)
        case expression_tree.Comparison("timestamp", operator, value) if operator in operators:
            return parse_time(value)
    return None


def get_field_text_or_severity_rank(entry: Entry, field: str) -> str | None:
    """Return the text of a field that a filter names; severities as ranks, which compare in their order."""
    match field:
        case "severity":
            return str(SEVERITIES.index(entry["severity"]))
        case "resource.type":
            return str(entry["resource"]["type"])
        case "insert_id":
            return str(entry["insertId"])
        case "log_name":
            return str(entry["logName"])
        case "text_payload":
            return entry.get("textPayload")
    if field.startswith(_JSON_PAYLOAD):
        return _get_payload_text_or_none(entry.get("jsonPayload"), field.split(".")[1:])
    labels: Mapping[str, str] = entry["labels"]
    if field.startswith("resource.labels."):
        labels, field = entry["resource"]["labels"], field.removeprefix("resource.")
    return labels.get(field.removeprefix("labels.")) if field.startswith("labels.") else entry.get(field)


def _validate_regular_expression_comparison(comparison: expression_tree.Comparison) -> None:
    if comparison.field in ("severity", "timestamp"):
        message = f"{comparison.field} is not a text; it cannot be compared with a regular expression"
        raise ApiError("INVALID_ARGUMENT", message)
    try:
        compile_pattern_as_pydantic_validator(comparison.value)
    except InvalidFilter as error:
        raise ApiError("INVALID_ARGUMENT", f"Unparseable filter: {error}") from error


def _convert_to_severity_rank_or_substring_pattern(
    comparison: expression_tree.Comparison,
) -> expression_tree.Comparison:
    """Return a comparison with a severity as its rank, and with a part of a payload as a wildcard."""
    if comparison.operator == ":" and _is_payload_field(comparison.field):
        return expression_tree.Comparison(comparison.field, ":", f"*{comparison.value}*")
    if comparison.field != "severity":
        return comparison
    rank = SEVERITIES.index(comparison.value)
    return expression_tree.Comparison("severity", comparison.operator, str(rank))


def _is_payload_field(field: str) -> bool:
    """Return whether a filter's field is in the text or the JSON of an entry."""
    return field in _PAYLOAD or field.startswith(_JSON_PAYLOAD)


def _get_payload_text_or_none(payload: Any, key_path: Sequence[str]) -> str | None:
    for key in key_path:
        payload = payload.get(key) if isinstance(payload, Mapping) else None
    return payload if payload is None or isinstance(payload, str) else json.dumps(payload)
