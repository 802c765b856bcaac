"""The command `vertex-training check-plan`: it rejects a plan that is older than the state of its stack.

`pulumi up --plan` applies such a plan without a word.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..errors import ComponentError
from .preview_review_command import read_file_or_stdin

_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"
_CHECK_PLAN = """\
Checks that nothing has changed a stack since its plan was saved. `pulumi up --plan` refuses other
inputs than the plan's, but applies a plan that is older than the state without a word.
"""
_CHECK_PLAN_EPILOG = """\
example:
  pulumi preview --save-plan plan.json
  pulumi stack export > state.json
  vertex-training check-plan plan.json state.json && pulumi up --plan plan.json

exit codes: 0 the plan is newer than the state; 1 it is not, or cannot be read; 2 wrong usage
"""


class PlanUnusable(ComponentError):
    """A plan is older than the state, or a file is not what it should be."""


def add_parser(commands: Any) -> None:
    """Add the command to the parsers of `vertex-training`."""
    command = commands.add_parser(
        "check-plan",
        help="check that a plan is newer than the stack's state",
        description=_CHECK_PLAN,
        epilog=_CHECK_PLAN_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("plan", metavar="plan.json", help="the file of `pulumi preview --save-plan`")
    command.add_argument("state", metavar="state.json", help="the output of `pulumi stack export`; - for stdin")
    command.set_defaults(run=lambda options: print_plan_problem_and_return_exit_code(options.plan, options.state))


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
