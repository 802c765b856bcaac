"""How many submissions a job of this run needs: creating and deleting it count."""

from collections.abc import Mapping
from typing import Any

from ..runtime import api_target
from ..runtime.submission_pacing import get_submission_pacing
from ..schema.declared_job import get_deletion_policy


def record_submissions_and_print_total_if_last_and_slow(
    new_inputs: Mapping[str, Any], old_inputs: Mapping[str, Any] | None, *, is_replaced: bool
) -> None:
    """Count the submissions for a job with these inputs; `old_inputs` is `None` for a new one.

    The last job of a run also prints their total, if it exceeds the pace.
    """
    submissions = 0
    if old_inputs is None or is_replaced:
        submissions += not new_inputs.get("adopt")
    if old_inputs is not None and is_replaced:
        submissions += (
            get_deletion_policy(old_inputs.get("lifecycle") or {}, is_adopted=bool(old_inputs.get("adopt"))) == "delete"
        )
    job_name = new_inputs["owner"].rpartition("/")[2]
    get_submission_pacing().record_and_print_total_if_last_and_slow(
        job_name, submissions, api_target.get_submission_pace_or_none(new_inputs["parent"])
    )
