"""UpdateSession: what one run of `pulumi` knows about the submitted jobs of its stack."""

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from vertex_api.client_errors import NotFound
from vertex_api.job_kinds import Kind
from vertex_api.job_states import strip_state_prefix
from vertex_api.resource_names import ResourceName

from ...runtime.api_target import Target
from . import job_digests, labels

Job = Mapping[str, Any]
Rows = Mapping[str, list[Mapping[str, str]]]
_UNUSABLE_STATES = {"FAILED", "CANCELLING", "CANCELLED", "EXPIRED"}


@dataclass(frozen=True)
class LedgerContents:
    """What a state's `Ledger` records: its `id`, its `stack` (with organization), and names of jobs.

    `kept_names` are those whose jobs stay when they leave the stack, or once did; `names` are all others.
    """

    id: str
    stack: str
    names: frozenset[str]
    kept_names: frozenset[str]

    def compute_mark_label(self, job_name: str) -> str:
        """Return the label value of the jobs that this state submits under a name."""
        return job_digests.compute_mark_label(self.id, job_name)


class UpdateSession:
    """The ledger of the stack, one list of its jobs for each collection, and the jobs that this run deletes."""

    def __init__(self) -> None:
        self._ledger: LedgerContents | None = None
        self._deleted: set[str] = set()
        self._listings: dict[tuple[Target, Kind, str], _JobListing] = {}

    def set_current_ledger(self, ledger: LedgerContents) -> None:
        """Set the ledger that covers the jobs submitted from now on."""
        self._ledger = ledger

    def get_current_ledger(self, stack: str) -> LedgerContents | None:
        """Return the ledger of a stack, `<pulumi project>/<stack>`.

        None if there is none: another program declares the stack, or `pulumi up --target` has left the ledger out.
        """
        return self._ledger if self._ledger and self._ledger.stack.partition("/")[2] == stack else None

    def record_deleted_or_kept(self, resource_name: str) -> None:
        """Record that this run deletes, or deliberately keeps, a job, so that its replacement is another job."""
        self._deleted.add(resource_name)

    def is_deleted_or_kept(self, resource_name: str) -> bool:
        """Return whether this run has decided already what becomes of a job."""
        return resource_name in self._deleted

    def find_equivalent_usable_job(self, api: Target, kind: Kind, stack: str, token: str) -> Job | None:
        """Return the newest job with a token that is active or has succeeded, as it is now; None if there is none.

        Jobs are listed once in a run, without those that it deletes. A listed job is fetched again, because its state
        may have changed since. A list might lag behind what a killed run has posted: Google promises fresh results of
        `get` alone (AIP-121), but no lag is known of jobs. Raises VertexError.
        """
        rows = self._list_remaining_rows(api, kind, stack, token)
        while row := _select_newest_usable_job(rows):
            with suppress(NotFound):
                job = api.client.require(ResourceName.parse(row["name"]))
                if _select_newest_usable_job([job]):
                    return job
            rows.remove(row)
        return None

    def find_marked_job_names(self, api: Target, kind: Kind, stack: str, mark: str, excluded: Job | None) -> list[str]:
        """Return the names of the jobs that have a mark, without the `excluded` one. Raises VertexError."""
        excluded_name = excluded and excluded["name"]
        return [
            row["name"] for row in self._list_remaining_rows(api, kind, stack, mark) if row["name"] != excluded_name
        ]

    def _list_remaining_rows(self, api: Target, kind: Kind, stack: str, label_value: str) -> list[Mapping[str, str]]:
        # setdefault is atomic, so all threads get one listing.
        listing = self._listings.setdefault((api, kind, stack), _JobListing())
        rows = listing.get_or_fetch_rows_by_label(api, kind, stack).get(label_value, [])
        return [row for row in rows if not self.is_deleted_or_kept(row["name"])]


@cache
def get_current_session() -> UpdateSession:
    """Return the session of this process, which Pulumi starts and ends with each run, for all providers."""
    return UpdateSession()


class _JobListing:
    """The jobs of a stack in one collection, by token and by mark: their name, state and createTime."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: Rows | None = None

    def get_or_fetch_rows_by_label(self, api: Target, kind: Kind, stack: str) -> Rows:
        """The first call lists, and others wait for it; after a failure the next one lists again."""
        with self._lock:
            if self._rows is None:
                self._rows = _group_rows_by_label(api.client.list(kind, api.parent, labels.build_stack_filter(stack)))
            return self._rows


def _group_rows_by_label(jobs: Iterable[Job]) -> Rows:
    rows: dict[str, list[Mapping[str, str]]] = {}
    for job in jobs:
        row = {field: job[field] for field in ("name", "state", "createTime")}
        for label in {labels.TOKEN_LABEL, labels.MARK_LABEL} & job["labels"].keys():
            rows.setdefault(job["labels"][label], []).append(row)
    return rows


def _select_newest_usable_job(jobs: Iterable[Job]) -> Job | None:
    usable = [job for job in jobs if strip_state_prefix(job["state"]) not in _UNUSABLE_STATES]
    return max(usable, key=lambda job: datetime.fromisoformat(job["createTime"]), default=None)
