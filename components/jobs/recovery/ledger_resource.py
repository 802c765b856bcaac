"""Ledger: the names under which a stack may have submitted jobs, recorded before any of them is submitted.

Pulumi records a job when the API has answered its creation. If `pulumi` or the provider is killed before, the job
exists and no state knows of it. The next `pulumi up` finds it by its token, unless its declaration has changed by then
or is gone: then it would run on unseen. So each job has a mark of the ledger of the state that submitted it, and

- the creation of a job removes other jobs that have its mark (`recovery_and_submission.py` in the folder above),
- the ledger removes jobs with the mark of a name that is no longer declared, and with any mark when it is deleted,

except jobs that the state records, which Pulumi removes itself, and those that `lifecycle.onDelete` keeps.

All jobs depend on the ledger, so it is also where an update plan (`pulumi up --plan`) refuses jobs that are declared
otherwise than in the plan, or another version of this package, before any job is submitted.
"""

import uuid
from collections.abc import Callable, Iterable
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api import __version__
from vertex_api.names import KINDS

from ...runtime import target
from ...runtime.pacing import current
from ...runtime.provider import Provider
from ...runtime.resource import DynamicResource
from ...runtime.target import one_line_errors
from ...schema.declared_job import DeclaredJob, get_deletion_policy
from . import job_digests
from .current_ledger_contents import LedgerContents, get_current_ledger
from .job_labels import MARK_LABEL, build_stack_filter
from .orphan_removal import remove_orphans_among_jobs
from .submitted_jobs_cache import get_submitted_jobs_cache

_FOR_PLANS = ("declarations", "packageVersion")


class LedgerProvider(Provider):
    """Inputs: `stack` (with its organization), `parent`, `jobs` (collections by name), `kept` (names), and for update
    plans `declarations` (a digest of them) and `packageVersion`.

    `check` adds `gone`, which is like `jobs`, and `goings`, how many updates have had one: by that number `diff` tells
    names that are gone now from those that a refresh reads from the state.

    New names in `jobs`, and what is for plans, change the inputs, but no preview shows them. A name that is gone, or a
    new one in `kept`, is an update.
    """

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        inputs = {name: news[name] for name in ("stack", "parent", "jobs", *_FOR_PLANS) if name in news}
        # For good: a job that has been kept once has the mark of its name for as long as it exists.
        inputs["kept"] = sorted({*olds.get("kept", []), *news["kept"]})
        previous_jobs = olds.get("jobs", {})
        # With the collection, because a job that changes its kind leaves its old collection.
        current_jobs = inputs["jobs"] if olds.get("parent", inputs["parent"]) == inputs["parent"] else {}
        gone = {name: kind for name, kind in previous_jobs.items() if current_jobs.get(name) != kind}
        if gone:
            inputs["gone"] = gone
        new_names = inputs["jobs"].keys() - previous_jobs.keys()
        current().count.expect(inputs["jobs"], new_names, len(gone.keys() - {*inputs["kept"]}))
        if goings := int(olds.get("goings", 0)) + bool(gone):
            inputs["goings"] = goings
        return dynamic.CheckResult(inputs, [])

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Set the ledger of this run too: an unchanged ledger gets no `update`."""
        get_current_ledger().set_contents(_build_ledger_contents(id_, news))
        return dynamic.DiffResult(changes=any(news.get(name) != olds.get(name) for name in ("goings", "kept")))

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        id_ = uuid.uuid4().hex[:12]
        get_current_ledger().set_contents(_build_ledger_contents(id_, props))
        return dynamic.CreateResult(id_, dict(props))

    def update(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Remove the jobs of names that are gone which this ledger has marked and no state records."""
        gone = {name: kind for name, kind in news.get("gone", {}).items() if name not in news["kept"]}
        marks = {job_digests.compute_mark_label_value(id_, name) for name in gone}
        _remove_orphans_with_marks(olds["parent"], news["stack"], gone.values(), marks.__contains__)
        return dynamic.UpdateResult(dict(news))

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Remove the jobs that this ledger has marked and no state records, except kept ones."""
        kept_marks = {job_digests.compute_mark_label_value(id_, name) for name in props["kept"]}
        is_removable_mark = lambda mark: mark.startswith(f"{id_}-") and mark not in kept_marks  # noqa: E731
        _remove_orphans_with_marks(props["parent"], props["stack"], KINDS, is_removable_mark)


class Ledger(DynamicResource, module="vertex", name="Ledger"):
    """Records the names of jobs. Jobs in `parent` that depend on it are found again after `pulumi` was killed."""

    def __init__(
        self, name: str, jobs: Iterable[DeclaredJob], parent: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        jobs = list(jobs)
        props = {
            "declarations": job_digests.compute_declarations_digest(jobs),
            "packageVersion": __version__,
            "stack": f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}",
            "parent": parent,
            "jobs": {job.name: job.kind.collection for job in jobs},
            "kept": sorted(job.name for job in jobs if get_deletion_policy(job.lifecycle, job.is_adopted) != "delete"),
        }
        super().__init__(LedgerProvider(), name, props, opts)


def _build_ledger_contents(id_: str, inputs: dict[str, Any]) -> LedgerContents:
    kept_names = frozenset(inputs["kept"])
    return LedgerContents(id_, inputs["stack"], frozenset(inputs["jobs"]) - kept_names, kept_names)


def _remove_orphans_with_marks(
    parent: str, fully_qualified_stack_name: str, collections: Iterable[str], is_removable_mark: Callable[[str], bool]
) -> None:
    """Remove the jobs with a mark for which `is_removable_mark` is true that no state records.

    Jobs that this run has deleted or kept already stay: the ledger may not know that `pulumi up --target` kept them.
    """
    with one_line_errors("jobs of an interrupted run: not removed"):
        api, jobs_cache = (
            target.resolve(parent),
            get_submitted_jobs_cache(),
        )
        for collection in sorted({*collections}):
            jobs = api.client.list(
                KINDS[collection], api.parent, build_stack_filter(fully_qualified_stack_name.partition("/")[2])
            )
            removable = {
                str(job["name"]): str(job["labels"]["pulumi_name"])
                for job in jobs
                if is_removable_mark(job["labels"].get(MARK_LABEL, ""))
                and not jobs_cache.is_deleted_or_kept(job["name"])
            }
            remove_orphans_among_jobs(api.client, fully_qualified_stack_name, removable)
