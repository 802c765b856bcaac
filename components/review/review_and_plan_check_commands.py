"""The commands `vertex-training review` and `vertex-training check-plan`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from .json_rendering import render_json
from .markdown_rendering import render_markdown
from .plan_age_check import PlanUnusable, raise_unless_plan_newer_than_state
from .preview_document import PreviewDocument, PreviewUnreadable
from .preview_review import build_review

_REVIEW = """\
Makes of a preview what a reviewer needs, in at most 60,000 characters: what is built, submitted, run
again and deleted and why, data that is lost, grants, cost, quota, submissions, guardrails that are
nearly reached, and details. A preview that failed becomes the list of its problems.
"""
_REVIEW_EPILOG = """\
example:
  pulumi preview --json --show-sames > preview.json
  vertex-training review preview.json > review.md

Without --show-sames, cost and quota are those of the jobs that change. Secrets stay [secret].

exit codes: 0 a review is written, also of a preview that failed; 1 no preview; 2 wrong usage
"""
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


def add_parsers(commands: Any) -> None:
    """Add the commands to the parsers of `vertex-training`."""
    command = commands.add_parser(
        "review",
        help="write what a reviewer needs of a preview",
        description=_REVIEW,
        epilog=_REVIEW_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("preview", metavar="preview.json", help="the output of `pulumi preview --json`; - for stdin")
    command.add_argument(
        "--base", metavar="FILE", help="a preview of the base branch: show only what this one changes beyond it"
    )
    command.add_argument("--format", choices=("markdown", "json"), default="markdown", help="default: markdown")
    command.set_defaults(
        run=lambda options: print_review_and_return_exit_code(options.preview, options.base, options.format)
    )

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


def print_review_and_return_exit_code(preview_file: str, base_file: str | None, output_format: str) -> int:
    """Write the review of a preview, or why there is none to standard error. Returns the exit code: 0 or 1."""
    try:
        preview = PreviewDocument.parse(_read_file_or_stdin(preview_file), preview_file)
        base = PreviewDocument.parse(_read_file_or_stdin(base_file), base_file) if base_file else None
        if base and base.stack and preview.stack:
            own, others = f"{preview.project}/{preview.stack}", f"{base.project}/{base.stack}"
            if own != others:
                raise PreviewUnreadable(f"{base_file}: is a preview of {others}; preview {own} there")
    except PreviewUnreadable as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 1
    render = render_json if output_format == "json" else render_markdown
    sys.stdout.write(render(build_review(preview, base)))
    return 0


def print_plan_problem_and_return_exit_code(plan_file: str, state_file: str) -> int:
    """Write to standard error why a plan must not be applied. Returns the exit code: 0 or 1."""
    try:
        plan, state = _read_file_or_stdin(plan_file), _read_file_or_stdin(state_file)
        raise_unless_plan_newer_than_state(plan, state, plan_file, state_file)
    except PlanUnusable as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 1
    return 0


def _read_file_or_stdin(file: str) -> str:
    """Return a text; bytes that are not UTF-8 are replaced, because a preview may show a user's."""
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data.decode("utf-8-sig", errors="replace")
