"""What a stack has submitted already, as one list of a collection shows it: equal jobs are adopted, not run twice."""

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from components import ownership
from components.target import Target
from vertex.errors import NotFound
from vertex.kinds import Kind
from vertex.names import ResourceName

Job = Mapping[str, Any]
Rows = Mapping[str, list[Mapping[str, str]]]

_let_go: set[str] = set()
_listings: dict[tuple[str, str, str], "_Listing"] = {}


def standing(at: Target, parent: str, kind: Kind, owner: str, token: str) -> Job | None:
    """The job that stands for a token, as it is now; None where there is none. Raises VertexError.

    The stack's jobs of the kind below `parent` are listed once in the life of this process, which serves one
    `pulumi up`: what it submits later has tokens that no other of its resources has, and what it was told to remove
    (`let_go`) it does not take up again. A job that the list shows is asked for, as its state may have moved since.

    A job of an earlier `pulumi up` that was killed right after it had posted it is in the list as soon as lists show
    what was created. Google promises that of `get` alone (AIP-121); lists that lag are not known of jobs.
    """
    stack = owner.rpartition("/")[0]
    # setdefault is atomic for texts, so all threads get one listing.
    listing = _listings.setdefault((parent, kind.collection, stack), _Listing())
    listed = [row for row in listing.rows(at, kind, stack).get(token, []) if row["name"] not in _let_go]
    while row := ownership.adoptable(listed):
        with suppress(NotFound):
            job = at.client.get(ResourceName.parse(row["name"]))
            if ownership.adoptable([job]):
                return job
        listed.remove(row)
    return None


def let_go(name: str) -> None:
    """Says that this process was told to remove a job, so that its replacement, which may be equal, is another one."""
    _let_go.add(name)


class _Listing:
    """The jobs of a stack in one collection that can be adopted, by token: their name, state and createTime."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: Rows | None = None

    def rows(self, at: Target, kind: Kind, stack: str) -> Rows:
        """The first call lists, and others wait for it; after a failure the next one lists again."""
        with self._lock:
            if self._rows is None:
                self._rows = _by_token(at.client.list(kind, at.parent, ownership.filter_of(stack)))
            return self._rows


def _by_token(jobs: Iterable[Job]) -> Rows:
    rows: dict[str, list[Mapping[str, str]]] = {}
    for job in jobs:
        if ownership.adoptable([job]):
            row = {field: job[field] for field in ("name", "state", "createTime")}
            rows.setdefault(job["labels"].get(ownership.TOKEN_LABEL, ""), []).append(row)
    return rows
