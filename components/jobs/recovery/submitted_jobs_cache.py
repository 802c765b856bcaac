"""SubmittedJobsCache: what one run of `pulumi` knows about the submitted jobs of its stack."""

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any

from vertex_api.errors import NotFound, VertexError
from vertex_api.names import Kind, ResourceName, short_state

from ...errors import SubmitFailed
from ...runtime.target import Target
from .job_labels import MARK_LABEL, TOKEN_LABEL, build_stack_filter
from .job_removal import remove_job

Job = Mapping[str, Any]
JobSummary = Mapping[str, str]
_UNUSABLE_STATES = {"FAILED", "CANCELLING", "CANCELLED", "EXPIRED"}


class SubmittedJobsCache:
    """One list of the jobs of a stack for each collection, and the jobs that this run deletes or keeps."""

    def __init__(self) -> None:
        self._deleted: set[str] = set()
        self._listings: dict[tuple[Target, Kind, str], _JobListing] = {}

    def record_deleted_or_kept(self, resource_name: str) -> None:
        """Record that this run deletes, or deliberately keeps, a job, so that its replacement is another job."""
        self._deleted.add(resource_name)

    def is_deleted_or_kept(self, resource_name: str) -> bool:
        """Return whether this run has decided already what becomes of a job."""
        return resource_name in self._deleted

    def find_equivalent_usable_job_or_none(
        self, api: Target, kind: Kind, project_and_stack_name: str, token: str
    ) -> Job | None:
        """Return the newest job with a token that is active or has succeeded, as it is now; None if there is none.

        Jobs are listed once in a run, without those that it deletes. A listed job is fetched again, because its state
        may have changed since. A list might lag behind what a killed run has posted: Google promises fresh results of
        `get` alone (AIP-121), but no lag is known of jobs. Raises VertexError.
        """
        summaries = self._list_summaries_of_jobs_neither_deleted_nor_kept(api, kind, project_and_stack_name, token)
        while newest := _select_newest_usable_job_or_none(summaries):
            with suppress(NotFound):
                job = api.client.require(ResourceName.parse(newest["name"]))
                if _select_newest_usable_job_or_none([job]):
                    return job
            summaries.remove(newest)
        return None

    def find_job_created_since_listing_or_none(
        self, api: Target, kind: Kind, project_and_stack_name: str, token: str
    ) -> dict[str, Any] | None:
        """Return the first job with a token that has been created since this run listed the jobs, whatever its state.

        It is the job of a call whose answer was lost. Raises VertexError.
        """
        return next(iter(self._list_created_since_listing(api, kind, project_and_stack_name, token)), None)

    def remove_all_but_first(
        self, api: Target, kind: Kind, project_and_stack_name: str, token: str, job: Mapping[str, Any], job_name: str
    ) -> dict[str, Any]:
        """Remove the jobs that requests with lost answers have created beside the first one, and return that one.

        `job` is what one of the requests has created. Raises nothing: the job that stays is to be recorded. `job_name`
        is for messages.
        """
        jobs = {job["name"]: dict(job)}
        try:
            created = self._list_created_since_listing(api, kind, project_and_stack_name, token)
            jobs = {each["name"]: dict(each) for each in created} | jobs
            first, *others = sorted(jobs.values(), key=_parse_create_time)
            for other in others:
                self.record_deleted_or_kept(other["name"])
                print(f"{job_name}: removing {other['name']}, the same job submitted twice", flush=True)  # noqa: T201
                remove_job(api.client, ResourceName.parse(other["name"]), job_name)
        except (VertexError, SubmitFailed) as error:
            first = min(jobs.values(), key=_parse_create_time)
            print(  # noqa: T201
                f"{job_name}: may be there beside {first['name']} once more, as an answer was lost ({error}); look for "
                f"jobs with the label {TOKEN_LABEL}={token}, and delete the other one",
                flush=True,
            )
        return first

    def _list_created_since_listing(
        self, api: Target, kind: Kind, project_and_stack_name: str, token: str
    ) -> list[dict[str, Any]]:
        """Return the jobs with a token that this run neither listed before nor deletes, the oldest first."""
        listed = {
            job["name"]
            for job in self._list_summaries_of_jobs_neither_deleted_nor_kept(api, kind, project_and_stack_name, token)
        }
        filter_ = f'{build_stack_filter(project_and_stack_name)} AND labels.{TOKEN_LABEL}="{token}"'
        created = [job for job in api.client.list(kind, api.parent, filter_) if job["name"] not in listed]
        return sorted((job for job in created if not self.is_deleted_or_kept(job["name"])), key=_parse_create_time)

    def find_marked_job_api_names(self, api: Target, kind: Kind, project_and_stack_name: str, mark: str) -> list[str]:
        """Return the resource names of the jobs that have a mark. Raises VertexError."""
        return [
            job["name"]
            for job in self._list_summaries_of_jobs_neither_deleted_nor_kept(api, kind, project_and_stack_name, mark)
        ]

    def _list_summaries_of_jobs_neither_deleted_nor_kept(
        self, api: Target, kind: Kind, project_and_stack_name: str, label_value: str
    ) -> list[JobSummary]:
        # setdefault is atomic, so all threads get one listing.
        listing = self._listings.setdefault((api, kind, project_and_stack_name), _JobListing())
        summaries = listing.get_or_fetch_job_summaries_by_label_value(api, kind, project_and_stack_name).get(
            label_value, []
        )
        return [job for job in summaries if not self.is_deleted_or_kept(job["name"])]


@cache
def get_submitted_jobs_cache() -> SubmittedJobsCache:
    """Return the cache of this process, which Pulumi starts and ends with each run, for all providers."""
    return SubmittedJobsCache()


class _JobListing:
    """The jobs of a stack in one collection, by token and by mark: their name, state and createTime."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._summaries: dict[str, list[JobSummary]] | None = None

    def get_or_fetch_job_summaries_by_label_value(
        self, api: Target, kind: Kind, project_and_stack_name: str
    ) -> dict[str, list[JobSummary]]:
        """The first call lists, and others wait for it; after a failure the next one lists again."""
        with self._lock:
            if self._summaries is None:
                jobs = api.client.list(kind, api.parent, build_stack_filter(project_and_stack_name))
                self._summaries = _group_job_summaries_by_label_value(jobs)
            return self._summaries


def _group_job_summaries_by_label_value(jobs: Iterable[Job]) -> dict[str, list[JobSummary]]:
    summaries: dict[str, list[JobSummary]] = {}
    for job in jobs:
        summary = {field: job[field] for field in ("name", "state", "createTime")}
        for label in {TOKEN_LABEL, MARK_LABEL} & job["labels"].keys():
            summaries.setdefault(job["labels"][label], []).append(summary)
    return summaries


def _select_newest_usable_job_or_none(jobs: Iterable[Job]) -> Job | None:
    usable = [job for job in jobs if short_state(job["state"]) not in _UNUSABLE_STATES]
    return max(usable, key=_parse_create_time, default=None)


def _parse_create_time(job: Job) -> datetime:
    return datetime.fromisoformat(job["createTime"])
