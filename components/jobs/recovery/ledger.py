"""Ledger: which names a stack may have submitted jobs under, recorded before any of them is submitted.

Pulumi records a job when its creation has been answered. When `pulumi` or the provider is killed before, the job exists
and no state knows of it. The next `pulumi up` finds it by its token, unless it is declared otherwise by then, or no
longer: then it would run on unseen. A job therefore carries a mark of the ledger of the state that submitted it, and

- whoever creates a job removes what else has its mark (`components.jobs.provider`),
- the ledger removes what has the mark of a name that is no longer declared, or, deleted itself, of any name,

but for what the state records, which Pulumi removes itself, and for what `lifecycle.onDelete` has left there.
"""

import uuid
from collections.abc import Callable, Iterable
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api.kinds import KINDS

from ...runtime import target
from ...runtime.api_errors import api_errors_as
from ...runtime.engine import Provider
from ...schema.job_declaration import JobDeclaration
from ...schema.lifecycle import get_deletion_policy
from . import orphans as unrecorded
from . import ownership, submissions


class LedgerProvider(Provider):
    """Inputs: `stack` (with its organization), `parent`, `jobs` (collections by name), `kept` (names).

    `check` adds `gone`, which is like `jobs`, and `goings`, how many updates have had one: by it `diff` tells names
    that are gone now from those that a refresh finds in the state.

    What is added to `jobs` is recorded in silence: it changes inputs, yet no preview shows it. A name that is gone, or
    a new one in `kept`, is an update.
    """

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        inputs = {name: news[name] for name in ("stack", "parent", "jobs")}
        # For good: what has been kept once has the mark of its name for as long as it is there.
        inputs["kept"] = sorted({*olds.get("kept", []), *news["kept"]})
        before = olds.get("jobs", {})
        # With the collection, as a job that becomes one of another kind leaves its own.
        moved = olds.get("parent", inputs["parent"]) != inputs["parent"]
        if gone := {name: kind for name, kind in before.items() if moved or inputs["jobs"].get(name) != kind}:
            inputs["gone"] = gone
        if goings := int(olds.get("goings", 0)) + bool(gone):
            inputs["goings"] = goings
        return dynamic.CheckResult(inputs, [])

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        _open(id_, news)
        return dynamic.DiffResult(changes=any(news.get(name) != olds.get(name) for name in ("goings", "kept")))

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        id_ = uuid.uuid4().hex[:12]
        _open(id_, props)
        return dynamic.CreateResult(id_, dict(props))

    def update(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        gone = {name: kind for name, kind in news.get("gone", {}).items() if name not in news["kept"]}
        marks = {ownership.mark(id_, name) for name in gone}
        _clear(olds["parent"], news["stack"], gone.values(), marks.__contains__)
        return dynamic.UpdateResult(dict(news))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        return dynamic.ReadResult(id_, dict(props))

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        kept = {ownership.mark(id_, name) for name in props["kept"]}
        all_but_kept = lambda mark: mark.startswith(f"{id_}-") and mark not in kept  # noqa: E731
        _clear(props["parent"], props["stack"], KINDS, all_but_kept)


class Ledger(dynamic.Resource, module="vertex", name="Ledger"):
    """Jobs below `parent` that depend on it are found again, whenever `pulumi` was killed."""

    def __init__(
        self,
        name: str,
        jobs: Iterable[JobDeclaration],
        parent: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "stack": f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}",
            "parent": parent,
            "jobs": {job.name: job.kind.collection for job in jobs},
            "kept": sorted(
                job.name for job in jobs if get_deletion_policy(job.lifecycle, "adopt" in job.lifecycle) != "delete"
            ),
        }
        super().__init__(LedgerProvider(), name, props, opts)


def _open(id_: str, inputs: dict[str, Any]) -> None:
    kept = frozenset(inputs["kept"])
    submissions.under(submissions.Ledger(id_, inputs["stack"], frozenset(inputs["jobs"]) - kept, kept))


def _clear(parent: str, stack: str, collections: Iterable[str], is_meant: Callable[[str], bool]) -> None:
    """Removes the jobs with certain marks that no state records.

    But for those that this process has just let go: `kept` has not the names that `pulumi up --target` alone has kept.
    """
    with api_errors_as("jobs of an interrupted run: not removed"):
        at = target.connect(parent)
        for collection in sorted({*collections}):
            listed = at.client.list(KINDS[collection], at.parent, ownership.filter_of(stack.partition("/")[2]))
            unrecorded.remove(
                at.client,
                stack,
                {
                    str(job["name"]): str(job["labels"]["pulumi_name"])
                    for job in listed
                    if is_meant(job["labels"].get(ownership.MARK_LABEL, "")) and not submissions.is_let_go(job["name"])
                },
            )
