"""The command `vertex-training check-plan`: it rejects a plan that is older than the state of its stack.

`pulumi up --plan` applies such a plan without a word.
"""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..errors import ComponentError
from .preview_review_command import read_file_or_stdin

_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


class PlanUnusable(ComponentError):
    """A plan is older than the state, or a file is not what it should be."""


def print_plan_problem_and_return_exit_code(plan_file: str, state_file: str) -> int:
    """Write to standard error why a plan must not be applied. Returns the exit code: 0 or 1."""
    try:
        plan, state = read_file_or_stdin(plan_file), read_file_or_stdin(state_file)
        raise_unless_plan_newer_than_state(plan, state, plan_file, state_file)
    except PlanUnusable as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 1
    return 0


def raise_unless_plan_newer_than_state(plan_text: str, state_text: str, plan_name: str, state_name: str) -> None:
    """Check that no update has changed a stack since a plan was saved. Raises PlanUnusable.

    Both record when they were written in their manifest: the plan of `pulumi preview --save-plan`, the state of
    `pulumi stack export`.
    """
    plan = _parse_json_object_with_key(plan_text, plan_name, "a plan of `pulumi preview --save-plan`", "resourcePlans")
    state = _parse_json_object_with_key(state_text, state_name, "a state of `pulumi stack export`", "deployment")
    planned = _get_manifest_time_or_minimum(plan, plan_name)
    updated = _get_manifest_time_or_minimum(state["deployment"], state_name)
    if planned <= updated:
        raise PlanUnusable(
            f"{plan_name}: is older than the state: it was saved at {planned:{_TIME_FORMAT}} UTC, and the stack was "
            f"updated at {updated:{_TIME_FORMAT}} UTC; preview with --save-plan again, and review that"
        )


def _parse_json_object_with_key(text: str, file_name: str, description: str, key: str) -> Mapping[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not isinstance(fields.get(key), dict):
        raise PlanUnusable(f"{file_name}: is not {description}")
    return fields


def _get_manifest_time_or_minimum(fields: Mapping[str, Any], file_name: str) -> datetime:
    try:
        return datetime.fromisoformat(fields["manifest"]["time"]).astimezone(UTC)
    except KeyError:  # a stack that nothing has been deployed to
        return datetime.min.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise PlanUnusable(f"{file_name}: has no time in its manifest") from error
