"""What a stack has submitted already, as one list of a collection shows it: equal jobs are adopted, not run twice."""

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from vertex_api.errors import NotFound
from vertex_api.kinds import KINDS, Kind
from vertex_api.names import ResourceName
from vertex_api.states import TERMINAL_STATES

from ...runtime.target import Target
from . import ownership

Job = Mapping[str, Any]
Rows = Mapping[str, list[Mapping[str, str]]]


@dataclass(frozen=True)
class Ledger:
    """What `recovery.ledger` says of a state: its `id`, its `stack` (with organization), and its `names`.

    Names that are, or once were, `kept` are none of `names`.
    """

    id: str
    stack: str
    names: frozenset[str]
    kept: frozenset[str]

    def mark(self, name: str) -> str:
        """What the jobs of a name have in common that this state submits."""
        return ownership.mark(self.id, name)


_let_go: set[str] = set()
_listings: dict[tuple[str, str, str], "_Listing"] = {}
_ledgers: dict[str, Ledger] = {}


def standing(at: Target, parent: str, kind: Kind, owner: str, token: str) -> Job | None:
    """The job that stands for a token, as it is now; None where there is none. Raises VertexError.

    The stack's jobs of the kind below `parent` are listed once in the life of this process, which serves one
    `pulumi up`: what it submits later has tokens that no other of its resources has, and what it was told to remove
    (`let_go`) it does not take up again. A job that the list shows is asked for, as its state may have moved since.

    A job of an earlier `pulumi up` that was killed right after it had posted it is in the list as soon as lists show
    what was created. Google promises that of `get` alone (AIP-121); lists that lag are not known of jobs.
    """
    listed = _rows(at, parent, kind, owner, token)
    while row := ownership.adoptable(listed):
        with suppress(NotFound):
            job = at.client.get(ResourceName.parse(row["name"]))
            if ownership.adoptable([job]):
                return job
        listed.remove(row)
    return None


def left(at: Target, parent: str, kind: Kind, owner: str, job: Job | None) -> list[str]:
    """Names of what else this state has submitted for a resource, beside the `job` that stands for it."""
    ledger = ledger_of(owner)
    rows = _rows(at, parent, kind, owner, ledger.mark(owner.rpartition("/")[2])) if ledger else []
    return [row["name"] for row in rows if job is None or row["name"] != job["name"]]


def under(ledger: Ledger) -> None:
    """Says which ledger the jobs of a stack are submitted under."""
    _ledgers[ledger.stack.partition("/")[2]] = ledger


def ledger_of(owner: str) -> Ledger | None:
    """The ledger that a resource's jobs are submitted under.

    None where there is none that looks after the name: it is kept, it was not declared but made by another program, or
    `pulumi up --target` has left the ledger out.
    """
    stack, _, name = owner.rpartition("/")
    ledger = _ledgers.get(stack)
    return ledger if ledger and name in ledger.names else None


def undeclared(at: Target, stack: str) -> list[str]:
    """The jobs under way of a stack, `<pulumi project>/<stack>`, that are no longer declared, by name.

    None where no ledger looks after them. Pulumi removes them at the end of a run, if nothing has failed before. Raises
    VertexError.
    """
    if (ledger := _ledgers.get(stack)) is None:
        return []
    known = {ledger.mark(name) for name in ledger.names | ledger.kept}
    found = set()
    for kind in KINDS.values():
        for job in at.client.list(kind, at.parent, ownership.filter_of(stack)):
            mark = job["labels"].get(ownership.MARK_LABEL, "")
            if mark.startswith(f"{ledger.id}-") and mark not in known and job["state"] not in TERMINAL_STATES:
                found.add(str(job["labels"]["pulumi_name"]))
    return sorted(found)


def let_go(name: str) -> None:
    """Says that this process was told to remove a job, so that its replacement, which may be equal, is another one."""
    _let_go.add(name)


def is_let_go(name: str) -> bool:
    """Whether this process was told to remove a job, and so has done already what is to become of it."""
    return name in _let_go


def _rows(at: Target, parent: str, kind: Kind, owner: str, key: str) -> list[Mapping[str, str]]:
    stack = owner.rpartition("/")[0]
    # setdefault is atomic for texts, so all threads get one listing.
    listing = _listings.setdefault((parent, kind.collection, stack), _Listing())
    return [row for row in listing.rows(at, kind, stack).get(key, []) if not is_let_go(row["name"])]


class _Listing:
    """The jobs of a stack in one collection, by token and by mark: their name, state and createTime."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: Rows | None = None

    def rows(self, at: Target, kind: Kind, stack: str) -> Rows:
        """The first call lists, and others wait for it; after a failure the next one lists again."""
        with self._lock:
            if self._rows is None:
                self._rows = _by_label(at.client.list(kind, at.parent, ownership.filter_of(stack)))
            return self._rows


def _by_label(jobs: Iterable[Job]) -> Rows:
    rows: dict[str, list[Mapping[str, str]]] = {}
    for job in jobs:
        row = {field: job[field] for field in ("name", "state", "createTime")}
        for label in {ownership.TOKEN_LABEL, ownership.MARK_LABEL} & job["labels"].keys():
            rows.setdefault(job["labels"][label], []).append(row)
    return rows
