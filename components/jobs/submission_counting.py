"""How many submissions a job of this run needs: creating and deleting it count."""

from collections.abc import Mapping
from typing import Any

from ..runtime import api_target
from ..runtime.submission_count_and_pace import get_submission_pacing
from ..schema.declared_job import get_deletion_policy


def record_submission_count(news: Mapping[str, Any], olds: Mapping[str, Any] | None, *, is_replaced: bool) -> None:
    """Count the submissions for a resource whose inputs are `news`; `olds` are its old ones, `None` if it is new."""
    submissions = 0
    if olds is None or is_replaced:
        submissions += not news.get("adopt")
    if olds is not None and is_replaced:
        submissions += get_deletion_policy(olds.get("lifecycle") or {}, is_adopted=bool(olds.get("adopt"))) == "delete"
    job_name = news["owner"].rpartition("/")[2]
    get_submission_pacing().record_and_print_total_if_last_and_slow(
        job_name, submissions, api_target.get_submission_pace_or_none(news["parent"])
    )
