"""The API's methods on jobs and operations, without HTTP."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from emulator import buckets, coverage
from emulator.api import filters, quota
from emulator.api.wire import job_json
from emulator.errors import ApiError, invalid
from emulator.names import Location, new_id
from emulator.records import Job
from emulator.replica.environment import output_directories
from emulator.scheduling import cancelling
from emulator.store import Store, Transaction
from emulator.times import format_time
from vertex.kinds import CUSTOM_JOB, Kind
from vertex.validation import Problem, validate

MAX_PAGE = 100
_FILTERABLE = frozenset({"state", "display_name", "displayName", "create_time", "createTime", "update_time", "name"})


@dataclass(frozen=True)
class Jobs:
    """Methods on the store; `wake` asks the scheduler for a look at a job."""

    store: Store
    buckets: Path
    wake: Callable[[str], None]

    def create(self, kind: Kind, location: Location, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take a job; it is in the queue when this returns. Raises ApiError with every problem of the request."""
        spec, problems = validate(kind, body, output_only="drop")
        problems = problems or [
            *coverage.refusals(kind, spec),
            *coverage.oversized(kind, spec),
            *self._bad_output(kind, spec),
        ]
        if problems:
            raise invalid(problems)
        quota.check(self.store, spec)
        job_id = new_id()
        with self.store.transaction() as change:
            job = change.add_job(job_id, kind, location, spec, slots=_slots(kind, spec))
            change.say(job_id, "Waiting for job to be provisioned.")
            for note in coverage.notes(kind, spec):
                change.say(job_id, note, "WARNING")
        self.wake(job_id)
        return job_json(job)

    def get(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """A job. Raises ApiError NOT_FOUND."""
        with self.store.reading() as look:
            job = self._found(look, kind, location, job_id)
            return job_json(job, look.trials(job_id))

    def page(self, kind: Kind, location: Location, filter_: str, size: int, token: str) -> dict[str, Any]:
        """A page of jobs, the newest first; trials' jobs are not among them. Raises ApiError."""
        condition = _condition(filter_)
        if size < 0:
            raise ApiError(
                "INVALID_ARGUMENT", f"page_size is {size}; it must not be negative", [("page_size", "negative")]
            )
        size = min(size or MAX_PAGE, MAX_PAGE)
        page: list[dict[str, Any]] = []
        with self.store.reading() as look:
            last = None
            more = False
            for job in look.jobs(kind, location, before=_before(token, filter_)):
                if not filters.matches(condition, partial(_field, job)):
                    continue
                if len(page) == size:
                    more = True
                    break
                page.append(job_json(job, look.trials(job.id)))
                last = job.sequence
        reply: dict[str, Any] = {kind.collection: page} if page else {}
        if more:
            reply["nextPageToken"] = _token(last, filter_)
        return reply

    def cancel(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """Ask for a job's end; nothing happens to one that has ended. Raises ApiError."""
        with self.store.transaction() as change:
            self._own(change, kind, location, job_id, "cancel")
            cancelling.cancel(change, job_id)
        self.wake(job_id)
        return {}

    def delete(self, kind: Kind, location: Location, job_id: str) -> dict[str, Any]:
        """Forget an ended job with its logs; its outputs stay. A done operation. Raises ApiError."""
        with self.store.transaction() as change:
            job = self._own(change, kind, location, job_id, "delete")
            if not job.is_terminal:
                raise ApiError(
                    "FAILED_PRECONDITION",
                    f"The {kind.type} {job.name} is in state {job.state}: cancel it, then delete it once it has ended.",
                )
            gone = [job_id, *change.trial_jobs(job_id)]
            name = f"{job.name}/operations/{new_id()}"
            change.remove_job(job)
            change.add_operation(name)
            created = change.operation(name)
        for each in gone:
            self.wake(each)
        assert created is not None
        return _operation(name, created)

    def operation(self, name: str) -> dict[str, Any]:
        """An operation by its full name. Raises ApiError NOT_FOUND."""
        with self.store.reading() as look:
            created = look.operation(name)
        if created is None:
            raise ApiError("NOT_FOUND", f"The Operation {name} does not exist.")
        return _operation(name, created)

    def operations(self, parent: str) -> dict[str, Any]:
        """The operations right below a location or a job."""
        with self.store.reading() as look:
            found = look.operations(parent)
        return {"operations": [_operation(*each) for each in found]} if found else {}

    def delete_operation(self, name: str) -> dict[str, Any]:
        """Forget an operation. Raises ApiError NOT_FOUND."""
        with self.store.transaction() as change:
            if not change.remove_operation(name):
                raise ApiError("NOT_FOUND", f"The Operation {name} does not exist.")
        return {}

    def _found(self, look: Transaction, kind: Kind, location: Location, job_id: str) -> Job:
        job = look.job(job_id)
        if job is None or (job.kind, job.location.name) != (kind, location.name):
            name = f"{location.name}/{kind.collection}/{job_id}"
            raise ApiError("NOT_FOUND", f"The {kind.type} {name} does not exist.")
        return job

    def _own(self, look: Transaction, kind: Kind, location: Location, job_id: str, verb: str) -> Job:
        """A job that may be told to end or go; a trial's only through its tuning job."""
        job = self._found(look, kind, location, job_id)
        if job.study is not None:
            raise ApiError("FAILED_PRECONDITION", f"{job.name} is a trial of tuning job {job.study}: {verb} that one")
        return job

    def _bad_output(self, kind: Kind, spec: Mapping[str, Any]) -> list[Problem]:
        field = "jobSpec" if kind == CUSTOM_JOB else "trialJobSpec"
        for uri in output_directories(spec[field]).values():
            try:
                buckets.folder(self.buckets, uri)
            except buckets.BadUri as error:
                return [Problem((field, "baseOutputDirectory", "outputUriPrefix"), str(error))]
        return []


def _slots(kind: Kind, spec: Mapping[str, Any]) -> int:
    """How many replicas a job runs; a tuning job has none but its trials'."""
    if kind != CUSTOM_JOB:
        return 0
    return sum(pool.get("replicaCount", 1) for pool in spec["jobSpec"]["workerPoolSpecs"] if pool)


def _condition(text: str) -> filters.Filter | None:
    try:
        condition = filters.parse(text)
    except filters.FilterError as error:
        raise ApiError("INVALID_ARGUMENT", f"Invalid filter {text!r}: {error}", [("filter", str(error))]) from error
    for comparison in filters.comparisons(condition):
        if comparison.field not in _FILTERABLE and not comparison.field.startswith("labels."):
            message = f"{comparison.field!r} cannot be filtered on; known: {', '.join(sorted(_FILTERABLE))}, labels.KEY"
            raise ApiError("INVALID_ARGUMENT", f"Invalid filter {text!r}: {message}", [("filter", message)])
    return condition


def _field(job: Job, field: str) -> str | None:
    match field:
        case "state":
            return job.state
        case "display_name" | "displayName":
            return str(job.spec["displayName"])
        case "create_time" | "createTime":
            return format_time(job.created)
        case "update_time" | "updateTime":
            return format_time(job.updated)
        case "name":
            return job.name
    return job.spec.get("labels", {}).get(field.removeprefix("labels."))  # type: ignore[no-any-return]


def _token(last: int | None, filter_: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([last, filter_]).encode()).decode()


def _before(token: str, filter_: str) -> int | None:
    if not token:
        return None
    try:
        before, made_for = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (ValueError, TypeError, binascii.Error):
        before = made_for = None
    if not isinstance(before, int) or made_for != filter_:
        raise ApiError(
            "INVALID_ARGUMENT",
            "page_token is none that this list with this filter gave out",
            [("page_token", "unknown token")],
        )
    return before


def _operation(name: str, created: int) -> dict[str, Any]:
    moment = format_time(created)
    return {
        "name": name,
        "metadata": {
            "@type": "type.googleapis.com/google.cloud.aiplatform.v1.DeleteOperationMetadata",
            "genericMetadata": {"createTime": moment, "updateTime": moment},
        },
        "done": True,
        "response": {"@type": "type.googleapis.com/google.protobuf.Empty"},
    }
