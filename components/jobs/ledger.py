"""Ledger: the names under which a stack may have submitted jobs, recorded before any of them is submitted.

Pulumi records a job when the API has answered its creation. If `pulumi` or the provider is killed before, the job
exists and no state knows of it. The next `pulumi up` finds it by its token, unless its declaration has changed by then
or is gone: then it would run on unseen. So each job has a mark of the ledger of the state that submitted it, and

- the creation of a job removes other jobs that have its mark (`submission.py`),
- the ledger removes jobs with the mark of a name that is no longer declared, and with any mark when it is deleted,

except jobs that the state records, which Pulumi removes itself, and those that `lifecycle.onDelete` keeps.

All jobs depend on the ledger, so it is also where an update plan (`pulumi up --plan`) refuses jobs that are declared
otherwise than in the plan, or another version of this package, before any job is submitted.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api import __version__
from vertex_api.names import KINDS
from vertex_api.schedules import NAME_LABEL

from .. import providers
from ..plan.job_rules import MARK_LABEL
from ..plan.training import Training
from ..runtime import engine, holders, pacing, target
from ..runtime.resource import DynamicResource, Provider
from . import identity, submission
from .covering import LedgerRecord, cover
from .removal import remove_orphans

LEDGER_NAME = "job-names"
"""The name of the ledger of a stack, as `pulumi up` shows it."""
_SILENT = ("declarations", "packageVersion", "settings", "runs")
"""Inputs that no preview shows a change of."""


class Ledger(DynamicResource):
    """Records the names of jobs. Jobs in `parent` that depend on it are found again after `pulumi` was killed."""

    def __init__(
        self,
        name: str,
        jobs: Iterable[Training],
        parent: pulumi.Input[str],
        settings: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        jobs = list(jobs)
        props = {
            "declarations": identity.declarations_digest(jobs),
            "packageVersion": __version__,
            "stack": f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}",
            "parent": parent,
            "jobs": {job.name: job.kind.collection for job in jobs},
            "kept": sorted(job.name for job in jobs if job.on_delete != "delete"),
            "settings": settings,
            "runs": identity.training_digests(jobs),
            "formerly": {job.name: [*job.formerly] for job in jobs if job.formerly},
        }
        super().__init__(providers.Ledger(), name, props, opts)


class LedgerProvider(Provider):
    """Inputs: `stack` (with its organization), `parent`, `jobs` (collections by name), `kept` (names), for update plans
    `declarations` (a digest of them) and `packageVersion`, and `settings` (`Settings.applied`), by which jobs are paced
    and judged here, and which reviews read. `runs` has by name a digest of what a job runs: it tells a job that is
    renamed. `formerly` has the former names of those that say so, and is in no state.

    `check` adds `gone`, which is like `jobs`, and `goings`, how many updates have had one: by that number `diff` tells
    names that are gone now from those that a refresh reads from the state.

    New names in `jobs`, and those of `_SILENT`, change the inputs, but no preview shows them. A name that is gone, or a
    new one in `kept`, is an update.
    """

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        urn, failures = engine.requested_urn(), []
        if olds:
            holders.current().see(urn)
        elif other := _cloud_stack_elsewhere(urn, news):
            reason = (
                f"is {other} in the state, and Google Cloud has a stack's bucket, accounts and grants once: deleting "
                "the former would take the grants along; to go on with them, give the TrainingStack "
                "aliases=[pulumi.Alias(parent=…)] with the parent that it had, None for the stack"
            )
            failures.append(dynamic.CheckFailure("parent", reason))
        inputs = {name: news[name] for name in ("stack", "parent", "jobs", *_SILENT) if name in news}
        # For good: a job that has been kept once has the mark of its name for as long as it exists.
        inputs["kept"] = sorted({*olds.get("kept", []), *news["kept"]})
        previous = olds.get("jobs", {})
        # With the collection, because a job that changes its kind leaves its old collection.
        present = inputs["jobs"] if olds.get("parent", inputs["parent"]) == inputs["parent"] else {}
        gone = {name: kind for name, kind in previous.items() if present.get(name) != kind}
        if gone:
            inputs["gone"] = gone
        new_names = inputs["jobs"].keys() - previous.keys()
        former = {name for names in (news.get("formerly") or {}).values() for name in names}
        before, after = ((each.get("settings") or {}).get("prefix", "") for each in (olds, inputs))
        if before != after:
            former |= {name for name in gone if f"{after}{name.removeprefix(before)}" in inputs["jobs"]}
        pacing.current().count.expect(inputs["jobs"], new_names, len(gone.keys() - {*inputs["kept"]} - former))
        for name, old in identity.renamed(olds, inputs, gone.keys() - former).items():
            key = f'add "formerly: {old}" to go on with its run'
            print(f"{name}: runs what {old} has run, which is gone; {key}", flush=True)  # noqa: T201
        if goings := int(olds.get("goings", 0)) + bool(gone):
            inputs["goings"] = goings
        return dynamic.CheckResult(inputs, failures)

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Set the ledger of this run too: an unchanged ledger gets no `update`."""
        _cover(id_, news)
        return dynamic.DiffResult(changes=any(news.get(name) != olds.get(name) for name in ("goings", "kept")))

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        id_ = uuid.uuid4().hex[:12]
        _cover(id_, props)
        return dynamic.CreateResult(id_, dict(props))

    def update(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Remove the jobs of names that are gone which this ledger has marked and no state records."""
        gone = {name: kind for name, kind in news.get("gone", {}).items() if name not in news["kept"]}
        marks = {identity.mark(id_, name) for name in gone}
        _remove_marked(olds["parent"], news["stack"], gone.values(), marks.__contains__)
        return dynamic.UpdateResult(dict(news))

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Remove the jobs that this ledger has marked and no state records, except kept ones."""
        kept = {identity.mark(id_, name) for name in props["kept"]}
        _remove_marked(
            props["parent"], props["stack"], KINDS, lambda mark: mark.startswith(f"{id_}-") and mark not in kept
        )


def _cloud_stack_elsewhere(urn: str, news: Mapping[str, Any]) -> str:
    """Return where the state has a new ledger of Google Cloud under another parent, as messages show it; "" if nowhere.

    Names are unique in a program, so the two are one `TrainingStack` that has moved.
    """
    is_cloud = str(news.get("parent")).startswith(target.CLOUD_PREFIX)
    state = holders.current().own_state(urn) if is_cloud else None
    for other, (type_, given) in state.inputs.items() if state and urn not in state.inputs else ():
        is_namesake = type_ == Ledger.__name__ and other.rpartition("::")[2] == urn.rpartition("::")[2]
        if is_namesake and str(given.get("parent")).startswith(target.CLOUD_PREFIX):
            return holders.tail(other).partition(f"${Ledger.__name__}")[0]
    return ""


def _cover(id_: str, inputs: Mapping[str, Any]) -> None:
    """Let the jobs of a stack be submitted by what its ledger says."""
    kept, parent, settings = frozenset(inputs["kept"]), inputs["parent"], inputs.get("settings") or {}
    names = frozenset(inputs["jobs"]) - kept
    cover(LedgerRecord(id_, inputs["stack"], names, kept, parent, settings))
    if per_minute := settings.get("submissionsPerMinute"):
        pacing.current().limit(parent, int(per_minute))


def _remove_marked(
    parent: str, full_stack: str, collections: Iterable[str], is_removable: Callable[[str], bool]
) -> None:
    """Remove the jobs with a mark for which `is_removable` is true that no state records.

    Jobs that this run has deleted or kept already stay: the ledger may not know that `pulumi up --target` kept them.
    """
    with target.one_line_errors("jobs of an interrupted run: not removed"):
        api, submitted = target.resolve(parent), submission.submitted()
        for collection in sorted({*collections}):
            jobs = api.client.find(KINDS[collection], api.parent, identity.stack_filter(full_stack.partition("/")[2]))
            removable = {
                str(job["name"]): str(job["labels"][NAME_LABEL])
                for job in jobs
                if is_removable(job["labels"].get(MARK_LABEL, "")) and not submitted.is_settled(job["name"])
            }
            remove_orphans(api, full_stack, removable)
