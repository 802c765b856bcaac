"""The commands `vertex-training review`, and `check-plan`: it rejects a plan that is older than the state of its stack.

`pulumi up --plan` applies such a plan without a word.
"""

import contextlib
import errno
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import ComponentError
from ..rehearsal_file import RehearsalUnreadable, load
from .document import NOT_A_PREVIEW, PreviewDocument, PreviewUnreadable
from .markdown import render_markdown
from .review import build_review, render_json

MAX_BYTES = 256 << 20
"""A preview of 1,000 jobs has some 10 MiB."""
_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


def review(preview_file: str, base_file: str | None, rehearsal_file: str | None, output_format: str) -> int:
    """Write the review of a preview, or why there is none to standard error. Returns the exit code: 0 or 1."""
    try:
        preview = PreviewDocument.parse(read(preview_file), preview_file)
        base = PreviewDocument.parse(read(base_file), base_file) if base_file else None
        if base and base.stack and preview.stack:
            own, others = f"{preview.project}/{preview.stack}", f"{base.project}/{base.stack}"
            if own != others:
                raise PreviewUnreadable(f"{base_file}: is a preview of {others}; preview {own} there")
        rehearsal = load(rehearsal_file) if rehearsal_file else None
        if rehearsal and preview.project and rehearsal.get("project", preview.project) != preview.project:
            reason = f"is a rehearsal of the project {rehearsal['project']}; rehearse {preview.project} there"
            raise RehearsalUnreadable(f"{rehearsal_file}: {reason}")
        render = render_json if output_format == "json" else render_markdown
        try:
            text = render(build_review(preview, base, rehearsal))
        except NOT_A_PREVIEW as error:
            reason = f"has values that `pulumi preview --json` does not write ({type(error).__name__})"
            raise PreviewUnreadable(f"{preview_file}: {reason}; make it again") from error
    except (PreviewUnreadable, RehearsalUnreadable) as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 1
    sys.stdout.write(text)
    return 0


class PlanUnusable(ComponentError):
    """A plan is older than the state, or a file is not what it should be."""


def check_plan(plan_file: str, state_file: str) -> int:
    """Write to standard error why a plan must not be applied. Returns the exit code: 0 or 1."""
    try:
        plan, state = read(plan_file), read(state_file)
        require_newer(plan, state, plan_file, state_file)
    except PlanUnusable as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 1
    return 0


def require_newer(plan_text: str, state_text: str, plan_name: str, state_name: str) -> None:
    """Check that no update has changed a stack since a plan was saved. Raises PlanUnusable.

    Both record when they were written in their manifest: the plan of `pulumi preview --save-plan`, the state of
    `pulumi stack export`.
    """
    plan = _object(plan_text, plan_name, "a plan of `pulumi preview --save-plan`", "resourcePlans")
    state = _object(state_text, state_name, "a state of `pulumi stack export`", "deployment")
    planned = _time(plan, plan_name)
    updated = _time(state["deployment"], state_name)
    if planned <= updated:
        raise PlanUnusable(
            f"{plan_name}: is older than the state: it was saved at {planned:{_TIME_FORMAT}} UTC, and the stack was "
            f"updated at {updated:{_TIME_FORMAT}} UTC; preview with --save-plan again, and review that"
        )


def _object(text: str, file_name: str, description: str, key: str) -> Mapping[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not isinstance(fields.get(key), dict):
        raise PlanUnusable(f"{file_name}: is not {description}")
    return fields


def _time(fields: Mapping[str, Any], file_name: str) -> datetime:
    try:
        return datetime.fromisoformat(fields["manifest"]["time"]).astimezone(UTC)
    except KeyError:  # a stack that nothing has been deployed to
        return datetime.min.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise PlanUnusable(f"{file_name}: has no time in its manifest") from error


def read(file: str) -> str:
    """Return the text of a file, or of standard input for `-`. Bytes that are not UTF-8 are replaced.

    Raises OSError for more than `MAX_BYTES`.
    """
    with contextlib.nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"has more than {MAX_BYTES >> 20} MiB, which no preview needs", file)
    return data.decode("utf-8-sig", errors="replace")
