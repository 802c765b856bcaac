"""What Workflows would refuse or misread in the requests of a schedule, so that a preview fails and no run does.

Source of the limits: Google's page "Quotas and limits" of Workflows.
"""

from collections.abc import Iterator
from typing import Any

from vertex_api.messages import KeyPath
from vertex_api.schedules import ScheduleRequest
from vertex_api.validation.formats import Violation

from . import steps
from .source import (
    MAX_EXPRESSION_LENGTH,
    expression,
    expressions,
    max_hours,
    study_spec_of,
    unknown_placeholders,
    uses_best_trial,
)

MAX_EXECUTION_HOURS = 365 * 24
MAX_SOURCE_BYTES = 128 * 1024
MAX_TEXT_BYTES = 256 * 1024
_MAX_SHOWN = 60


def request_violations(schedule: ScheduleRequest) -> Iterator[Violation]:
    """Find the texts that a workflow cannot send, by the name of the job and the field in it."""
    for index, job in enumerate(schedule.jobs):
        variables = expressions(schedule, index)
        for path, text in _texts(job.body, (job.name,)):
            if unknown := unknown_placeholders(text, variables):
                yield (
                    path,
                    f'"{unknown[0]}" would be evaluated by Workflows, which has no escape; move it into the image',
                )
            elif (size := len(text.encode())) > MAX_TEXT_BYTES:
                yield path, f'"{text[:_MAX_SHOWN]}…" has {size} bytes; Workflows allows {MAX_TEXT_BYTES}: shorten it'
            elif "${" in text and (length := len(expression(text, variables))) > (limit := MAX_EXPRESSION_LENGTH):
                reason = f"becomes an expression of {length} characters, and Workflows allows {limit}"
                yield path, f'"{text[:_MAX_SHOWN]}…" {reason}; shorten it, or pass the reference as a text of its own'
        if uses_best_trial(schedule, job) and (metrics := steps.unsupported_metrics(study_spec_of(job))):
            reason = "a workflow finds the best trial by one metric only"
            yield (job.name, "studySpec", "metrics"), f"has {metrics}, and {reason}; refer to no result of its trials"


def length_violation(schedule: ScheduleRequest) -> str | None:
    """Return what is wrong with how long a run may wait for its jobs, None if an execution can last as long."""
    hours = sum(max_hours(job) for job in schedule.jobs[:-1])
    if hours <= MAX_EXECUTION_HOURS:
        return None
    reason = f"a run may wait {hours // 24} days for its jobs, and Workflows ends an execution after a year"
    return f"{reason}; shorten scheduling.timeout, or give some of the jobs a schedule of their own"


def size_violation(source: str) -> str | None:
    """Return what is wrong with the size of a source, None if Workflows takes it."""
    size = len(source.encode())
    if size <= MAX_SOURCE_BYTES:
        return None
    advice = "shorten arguments, or give each job a schedule of its own"
    return f"its workflow has {size} bytes, and Workflows allows {MAX_SOURCE_BYTES}; {advice}"


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(child, (*path, key))
