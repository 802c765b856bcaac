"""The list of all jobs, of every project, region and kind, as the page searches and shows it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from starlette.datastructures import QueryParams

from vertex_api.names import HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import CANCELLED, FAILED, SUCCEEDED, Job
from vertex_emulator.errors import ApiError
from vertex_emulator.resources import api_state, time_fields

PAGE_SIZE = 100
_MAX_SCANNED = 2000  # of a search that finds little, so that the database is not held for long
_ENDED_GROUPS = {"succeeded": SUCCEEDED, "failed": FAILED, "cancelled": CANCELLED}
STATE_GROUPS = ("active", *_ENDED_GROUPS)


@dataclass(frozen=True)
class JobQuery:
    """Which jobs: `text` in the display name or id (or a whole resource name), a group of states, older than the job
    `before`, or only those of `ids`.
    """

    text: str = ""
    state_group: str = ""
    before: int | None = None
    ids: tuple[str, ...] = ()


def parse_job_query(parameters: QueryParams) -> JobQuery:
    """Return the query of a URL: `text`, `state`, `before`, and `id` any number of times. Raises ApiError."""
    state_group, before = parameters.get("state", ""), parameters.get("before", "")
    if state_group and state_group not in STATE_GROUPS:
        raise ApiError("INVALID_ARGUMENT", f'state is "{state_group}"; it must be one of {", ".join(STATE_GROUPS)}')
    if before and not (before.isascii() and before.isdecimal() and len(before) < 19):
        raise ApiError("INVALID_ARGUMENT", f'before is "{before}"; it must be the `next` of an earlier answer')
    return JobQuery(
        parameters.get("text", "").casefold(),
        state_group,
        int(before) if before else None,
        tuple(parameters.getlist("id")),
    )


def build_job_list_reply(database: Database, query: JobQuery) -> dict[str, Any]:
    """Return `jobs`, the newest first, and `next`, the `before` of the next page, null if there is none."""
    summaries: list[dict[str, Any]] = []
    last = None
    with database.read() as transaction:
        if query.ids:
            jobs = _iterate_non_trial_jobs(transaction, query.ids)
        else:
            jobs = transaction.jobs.created(before_sequence=query.before)
        for job in islice(jobs, _MAX_SCANNED):
            if len(summaries) == PAGE_SIZE and not query.ids:
                break
            last = job.sequence
            if _matches_state_group_and_text(job, query):
                summaries.append(_serialize_job_summary(transaction, job))
        else:
            last = last if next(jobs, None) is not None else None
    return {"jobs": summaries, "next": last}


def _iterate_non_trial_jobs(transaction: Transaction, ids: tuple[str, ...]) -> Iterator[Job]:
    return (job for id_ in ids if (job := transaction.jobs.get(id_)) is not None and job.study is None)


def _matches_state_group_and_text(job: Job, query: JobQuery) -> bool:
    group = next((group for group, state in _ENDED_GROUPS.items() if job.state == state), "active")
    if query.state_group not in ("", group):
        return False
    known = (str(job.spec["displayName"]).casefold(), job.id)
    return any(query.text in text for text in known) or job.name.casefold().endswith(query.text)


def _serialize_job_summary(transaction: Transaction, job: Job) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "sequence": job.sequence,
        "id": job.id,
        "collection": job.kind.collection,
        "kind": job.kind.type,
        "displayName": job.spec["displayName"],
        "state": api_state(job),
        "project": job.location.project,
        "region": job.location.region,
        **time_fields(createTime=job.created, startTime=job.started, endTime=job.ended),
    }
    if job.kind == HYPERPARAMETER_TUNING_JOB:
        summary["trials"] = {"ended": transaction.trials.count_ended(job.id), "most": job.spec["maxTrialCount"]}
    return summary
