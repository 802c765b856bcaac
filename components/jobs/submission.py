"""Submission of a job, once: an equivalent job is found again, orphans are removed, or a new job is submitted.

What is known for that is of one run of `pulumi`, which starts and ends the process of its providers: the ledger that
covers its jobs (`covering.of_stack`), and one list of the stack's jobs in each collection.
"""

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache, partial
from typing import Any

from vertex_api.errors import NotFound, VertexError
from vertex_api.job import Job
from vertex_api.names import JobJson, Kind, ResourceName, short_state

from ..errors import SubmitFailed
from ..plan.job_rules import MARK_LABEL, TOKEN_LABEL
from ..runtime import engine, holders
from ..runtime.target import Target
from ..schema import interpolation
from . import covering, enforcement, identity
from .failures import explain_refusals
from .inputs import Inputs
from .removal import remove, remove_orphans, was_being_created

_UNUSABLE_STATES = {"FAILED", "CANCELLING", "CANCELLED", "EXPIRED"}


def submit(api: Target, inputs: Inputs, tables: interpolation.Tables, urn: str) -> tuple[JobJson, bool]:
    """Return the job that stands for a resource, and whether it is one that another state may have as well.

    It is an equivalent one that exists already, or a new one. Other jobs that this stack has submitted for the resource
    are removed first. `tables` have the values of the references in its spec. Raises VertexError and SubmitFailed.
    """
    jobs = submitted().jobs(api, inputs.spec.kind, inputs.stack)
    # Two resources with one token are one job, also if they are created at the same time.
    with jobs.alone(inputs.token), explain_refusals(inputs.spec, api):
        job, is_found = _find(jobs, inputs, urn) or (None, False)
        labels = identity.own_labels(inputs.owner, inputs.token)
        ledger = _ledger(inputs)
        if ledger:
            labels[MARK_LABEL] = ledger.mark(inputs.name)
            orphans = [name for name in jobs.names(labels[MARK_LABEL]) if not job or name != job["name"]]
            remove_orphans(api, ledger.full_stack, dict.fromkeys(orphans, inputs.name))
        if not job:
            job = _submit(api, inputs, tables, labels, jobs)
            jobs.add(inputs.token, job)
        return job, is_found


def _ledger(inputs: Inputs) -> covering.LedgerRecord | None:
    return next((each for each in covering.of_stack(inputs.stack) if inputs.name in each.names), None)


def _find(jobs: "_StackJobs", inputs: Inputs, urn: str) -> tuple[JobJson, bool] | None:
    """Return an equivalent job, and whether another state may have it; None if there is none.

    One that this state has under another URN goes on under this one, whatever its own state is. One that this very URN
    has is about to be deleted: with `pulumi up --replace`, the resource runs anew.
    """
    names = jobs.names(inputs.token)
    if not names:
        job = jobs.usable(inputs.token)  # of this run
        return (job, False) if job else None
    run, ledger = holders.current(), _ledger(inputs)
    state = run.state(ledger.full_stack) if ledger else run.own_state(urn)
    if state is None:
        job = jobs.usable(inputs.token)
        return (job, not run.has(job["name"])) if job else None
    for name in names:
        holders_of_it = state.ids.get(name, ())
        if urn in holders_of_it:
            submitted().settle(name)
        elif holders_of_it and (held := jobs.now(name)):
            return held, name in state.found
    job = jobs.usable(inputs.token)
    return (job, not (run.has(job["name"]) or was_being_created(state, job))) if job else None


def _submit(
    api: Target, inputs: Inputs, tables: interpolation.Tables, labels: Mapping[str, str], jobs: "_StackJobs"
) -> JobJson:
    if inputs.data:
        # Imported here, because most jobs have no locked data.
        from ..data.verify import verify

        verify(inputs.data, inputs.verify, inputs.parent, inputs.error_prefix)
    job = interpolation.expand(inputs.spec.fields, tables)
    enforcement.require(Job(inputs.spec.kind, job), inputs.parent, inputs.name, inputs.error_prefix)
    job["labels"] = {**job.get("labels", {}), **labels}
    return api.client.create(
        inputs.spec.kind,
        api.parent,
        job,
        check_before=partial(engine.require_alive, inputs.error_prefix),
        find_created=lambda: next(iter(jobs.new(inputs.token)), None),
        keep_first=partial(jobs.keep_first, inputs.token, inputs.name),
        allowed=inputs.allowed,
    )


class SubmittedJobs:
    """What one run of `pulumi` knows about the jobs that its stack has submitted before."""

    def __init__(self) -> None:
        self._settled: set[str] = set()
        self._wanted: dict[str, str] = {}
        self._jobs: dict[tuple[Target, Kind, str], _StackJobs] = {}

    def settle(self, resource_name: str) -> None:
        """Record that this run deletes, or deliberately keeps, a job, so that its replacement is another job."""
        self._settled.add(resource_name)

    def want(self, urn: str, key: str) -> None:
        """Record that a new resource is declared for what has a key: a job's name, its token, or what a resource is."""
        self._wanted[urn] = key

    def got(self, urn: str) -> None:
        """Record that a resource has its job."""
        self._wanted.pop(urn, None)

    def wanted_by(self, urn: str, *keys: str) -> str | None:
        """Return the URN of another resource that is to have what has one of these keys, and has it not yet."""
        return next((other for other, key in [*self._wanted.items()] if key in keys and other != urn), None)

    def is_settled(self, resource_name: str) -> bool:
        """Return whether this run has decided already what becomes of a job."""
        return resource_name in self._settled

    def jobs(self, api: Target, kind: Kind, stack: str) -> "_StackJobs":
        """Return the jobs of a stack, `<pulumi project>/<stack>`, in one collection."""
        # setdefault is atomic, so all threads get one listing.
        return self._jobs.setdefault((api, kind, stack), _StackJobs(self, api, kind, stack))


@cache
def submitted() -> SubmittedJobs:
    """Return what this process knows, which Pulumi starts and ends with each run, for all providers."""
    return SubmittedJobs()


class _StackJobs:
    """The jobs of a stack in one collection, listed once in a run, without those that it has settled.

    All methods but `keep_first` raise VertexError.
    """

    def __init__(self, run: SubmittedJobs, api: Target, kind: Kind, stack: str) -> None:
        self._run, self._api, self._kind = run, api, kind
        self._filter = identity.stack_filter(stack)
        self._lock = threading.Lock()
        self._by_label: dict[str, list[JobJson]] | None = None
        self._created: dict[str, list[JobJson]] = {}
        self._turns: dict[str, threading.Lock] = {}

    def alone(self, token: str) -> threading.Lock:
        """Return the lock of those who submit a job with a token."""
        return self._turns.setdefault(token, threading.Lock())

    def add(self, token: str, job: JobJson) -> None:
        """Record that this run has submitted a job."""
        self._created.setdefault(token, []).append(job)

    def usable(self, token: str) -> JobJson | None:
        """Return the newest job with a token that is active or has succeeded, as it is now; None if there is none.

        A listed job is fetched again, because its state may have changed since. A list might lag behind what a killed
        run has posted: Google promises fresh results of `get` alone (AIP-121), but no lag is known of jobs.
        """
        mine = [job for job in self._created.get(token, []) if not self._run.is_settled(job["name"])]
        jobs = [*self._listed(token), *mine]
        while newest := _newest_usable(jobs):
            with suppress(NotFound):
                job = self._api.client.require(ResourceName.parse(newest["name"]))
                if _newest_usable([job]):
                    return job
            jobs.remove(newest)
        return None

    def names(self, label: str) -> list[str]:
        """Return the resource names of the jobs that had a token or mark when they were listed."""
        return [job["name"] for job in self._listed(label)]

    def now(self, name: str) -> JobJson | None:
        """Return a job as it is now; None if it is gone."""
        with suppress(NotFound):
            return self._api.client.require(ResourceName.parse(name))
        return None

    def new(self, token: str) -> list[JobJson]:
        """Return the jobs with a token that were created since the listing, whatever their states, the oldest first.

        They are those of calls whose answers were lost.
        """
        listed = {job["name"] for job in self._listed(token)}
        found = self._api.client.find(
            self._kind, self._api.parent, f'{self._filter} AND labels.{TOKEN_LABEL}="{token}"'
        )
        created = [job for job in found if job["name"] not in listed and not self._run.is_settled(job["name"])]
        return sorted(created, key=_create_time)

    def keep_first(self, token: str, job_name: str, job: Mapping[str, Any]) -> dict[str, Any]:
        """Remove the jobs that requests with lost answers have created beside the first one, and return that one.

        `job` is what one of the requests has created. Raises nothing: the job that stays is to be recorded. `job_name`
        is for messages.
        """
        jobs = {job["name"]: dict(job)}
        try:
            jobs = {each["name"]: dict(each) for each in self.new(token)} | jobs
            first, *others = sorted(jobs.values(), key=_create_time)
            for other in others:
                self._run.settle(other["name"])
                print(f"{job_name}: removing {other['name']}, the same job submitted twice", flush=True)  # noqa: T201
                remove(self._api.client, ResourceName.parse(other["name"]), job_name)
        except (VertexError, SubmitFailed) as error:
            first = min(jobs.values(), key=_create_time)
            print(  # noqa: T201
                f"{job_name}: may be there beside {first['name']} once more, as an answer was lost ({error}); look for "
                f"jobs with the label {TOKEN_LABEL}={token}, and delete the other one",
                flush=True,
            )
        return first

    def _listed(self, label: str) -> list[JobJson]:
        """Return name, state and createTime of the jobs that had a token or mark when they were listed.

        The first call lists, and others wait for it; after a failure the next one lists again.
        """
        with self._lock:
            if self._by_label is None:
                self._by_label = _group(self._api.client.find(self._kind, self._api.parent, self._filter))
        return [job for job in self._by_label.get(label, []) if not self._run.is_settled(job["name"])]


def _group(jobs: Iterable[JobJson]) -> dict[str, list[JobJson]]:
    by_label: dict[str, list[JobJson]] = {}
    for job in jobs:
        summary = {field: job[field] for field in ("name", "state", "createTime")}
        for label in {TOKEN_LABEL, MARK_LABEL} & job["labels"].keys():
            by_label.setdefault(job["labels"][label], []).append(summary)
    return by_label


def _newest_usable(jobs: Iterable[JobJson]) -> JobJson | None:
    usable = [job for job in jobs if short_state(job["state"]) not in _UNUSABLE_STATES]
    return max(usable, key=_create_time, default=None)


def _create_time(job: JobJson) -> datetime:
    return datetime.fromisoformat(job["createTime"])
