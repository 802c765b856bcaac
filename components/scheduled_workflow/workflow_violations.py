"""What Workflows would refuse or misread in the requests of a schedule, so that a preview fails and no run does.

Source of the limits: Google's page "Quotas and limits" of Workflows.
"""

from collections.abc import Iterator
from typing import Any

from vertex_api.messages import KeyPath
from vertex_api.schedules import ScheduleRequest
from vertex_api.validation.formats import Violation

from . import best_trial_steps
from .placeholder_expressions import MAX_EXPRESSION_LENGTH, build_expression, find_unknown_placeholder_texts
from .workflow_source import build_expressions_by_placeholder, is_best_trial_used_later, require_study_spec

MAX_SOURCE_BYTES = 128 * 1024
MAX_TEXT_BYTES = 256 * 1024
_MAX_SHOWN = 60


def find_request_violations(schedule: ScheduleRequest) -> Iterator[Violation]:
    """Find the texts that a workflow cannot send, by the name of the job and the field in it."""
    for index, job in enumerate(schedule.jobs):
        variables = build_expressions_by_placeholder(schedule, index)
        for path, text in _iterate_texts_with_paths(job.body, (job.name,)):
            if unknown := find_unknown_placeholder_texts(text, variables):
                yield (
                    path,
                    f'"{unknown[0]}" would be evaluated by Workflows, which has no escape; move it into the image',
                )
            elif (size := len(text.encode())) > MAX_TEXT_BYTES:
                yield path, f'"{text[:_MAX_SHOWN]}…" has {size} bytes; Workflows allows {MAX_TEXT_BYTES}: shorten it'
            elif "${" in text and (length := len(build_expression(text, variables))) > (limit := MAX_EXPRESSION_LENGTH):
                reason = f"becomes an expression of {length} characters, and Workflows allows {limit}"
                yield path, f'"{text[:_MAX_SHOWN]}…" {reason}; shorten it, or pass the reference as a text of its own'
        if is_best_trial_used_later(schedule, job) and (
            metrics := best_trial_steps.describe_unsupported_metrics_or_none(require_study_spec(job))
        ):
            reason = "a workflow finds the best trial by one metric only"
            yield (job.name, "studySpec", "metrics"), f"has {metrics}, and {reason}; refer to no result of its trials"


def describe_source_size_violation_or_none(source: str) -> str | None:
    """Return what is wrong with the size of a source, None if Workflows takes it."""
    size = len(source.encode())
    if size <= MAX_SOURCE_BYTES:
        return None
    advice = "shorten arguments, or give each job a schedule of its own"
    return f"its workflow has {size} bytes, and Workflows allows {MAX_SOURCE_BYTES}; {advice}"


def _iterate_texts_with_paths(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _iterate_texts_with_paths(child, (*path, key))
