"""The two sides of a preview: what the stack has before the update and after it, as a Plan, and the rules it sets."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vertex_api.job import stored_job
from vertex_api.names import Kind

from ..images.registry import repository
from ..plan.guardrails import Rules
from ..plan.limits import Limits
from ..plan.plan import Plan
from ..plan.training import Timetable, Training, place
from ..runtime.target import CLOUD_PREFIX
from ..schema import shapes
from ..workflow.source import submitted
from . import changes
from .document import PreviewDocument

_PERSISTENT_RESOURCE_TYPE = "gcp:vertex/aiPersistentResource:AiPersistentResource"
_NUMBERS = ("acceleratorCount", "bootDiskSizeGb", "maxReplicaCount", "minReplicaCount", "replicaCount")
_NOT_KNOWN = (AttributeError, KeyError, TypeError, ValueError)
"""What a text raises that stands in place of a part which a preview does not know, or which is secret."""


def rules_of(preview: PreviewDocument) -> Rules:
    """Return the guardrails that hold for a preview: what its ledgers have, also of other files and of arguments."""
    if (rules := _held(preview, is_after=True)) is not None:
        return rules
    found: Rules = preview.stack_values.get("guardrails", {})
    return found


def earlier_rules(preview: PreviewDocument) -> Rules | None:
    """Return the guardrails that hold before an update, as ledgers have them; None if none says it."""
    return _held(preview, is_after=False)


def digest_of(preview: PreviewDocument) -> str:
    """Return the digest of the guardrails that hold for a preview, "" without any; those of several stacks."""
    found = (each.get("guardrailsDigest") for each in _applied(preview))
    return " ".join(dict.fromkeys(each for each in found if isinstance(each, str)))


def _held(preview: PreviewDocument, *, is_after: bool) -> Rules | None:
    ledgers = _applied(preview, is_after=is_after)
    if not ledgers:
        return None
    sources = [source for each in ledgers for source in Limits.parse(each.get("guardrails", [])).sources]
    # The arguments of one stack of several limit its own jobs alone.
    return Limits.of(each for each in sources if not each.is_own or len(ledgers) == 1).rules


def pace_of(preview: PreviewDocument) -> int | None:
    """Return how many submissions a minute the stack sets, of several ones at least; None if it sets nothing."""
    paces = [int(each["submissionsPerMinute"]) for each in _applied(preview) if "submissionsPerMinute" in each]
    return min(paces, default=preview.stack_values.get("submissionsPerMinute"))


def _values(preview: PreviewDocument) -> dict[str, Any]:
    """Return the values of the stack file by which jobs are judged, with what its ledgers have in their place."""
    values = {**preview.stack_values, "guardrails": rules_of(preview)}
    for each in _applied(preview):
        values = _merged(values, {key: each[key] for key in shapes.APPLIED if key in each})
    return values


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return one object with the fields of another one in it, at any depth."""
    nested = {key: _merged(one[key], each) for key, each in other.items() if isinstance(one.get(key), dict)}
    return {**one, **other, **nested}


def _applied(preview: PreviewDocument, *, is_after: bool = True) -> list[Mapping[str, Any]]:
    """Return what the ledgers of one side of a preview have of settings (`Settings.applied`)."""
    sides = (
        step.new_inputs if is_after else step.old_inputs for step in preview.steps if step.type == changes.LEDGER_TYPE
    )
    found = (side.get("settings") for side in sides if side)
    return [each for each in found if isinstance(each, Mapping)]


def plan_of(preview: PreviewDocument, *, is_after: bool) -> Plan | None:
    """Return the plan of one side of a preview, or None if it has no jobs for Google Cloud.

    A job whose cost or quota cannot be known yet is one of the plan's `unknown`, and so is a schedule.
    """
    side = _Side(preview)
    workflows, times = dict[str, Mapping[str, Any]](), dict[str, Mapping[str, Any]]()
    for step in preview.steps:
        inputs = step.new_inputs if is_after else step.old_inputs
        if inputs is None:
            continue
        if step.type == _PERSISTENT_RESOURCE_TYPE:
            side.pools += [_restored(pool) for pool in inputs.get("resourcePools") or []]
            side.region = str(inputs.get("location"))
        elif step.type == changes.IMAGE_TYPE:
            side.built.add(repository(str(inputs.get("uri"))))
        elif step.type in changes.KINDS_BY_TYPE and str(inputs.get("parent")).startswith(CLOUD_PREFIX):
            side.add(step.name, changes.KINDS_BY_TYPE[step.type], inputs)
        elif changes.is_part_of_schedule(step) and step.type in (changes.WORKFLOW, changes.SCHEDULER_JOB):
            found = workflows if step.type == changes.WORKFLOW else times
            found[changes.schedule_name(step)] = inputs
    for name in sorted(workflows.keys() & times.keys()):
        side.add_schedule(name, workflows[name], times[name])
    return side.plan()


class _Side:
    """Collects what one side of a preview has."""

    def __init__(self, preview: PreviewDocument) -> None:
        self._empty = Plan(_values(preview), file=place(preview.stack), records=lambda: preview.records)
        self.region: str | None = None
        self.pools: list[Mapping[str, Any]] = []
        self.built: set[str] = set()
        self._trainings: list[Training] = []
        self._timetables: list[Timetable] = []
        self._unknown: list[str] = []

    def add(self, name: str, kind: Kind, inputs: Mapping[str, Any]) -> None:
        """Add a job with the inputs of its resource."""
        try:
            region = str(inputs["parent"]).rpartition("/")[2]
            self._trainings.append(self._training(name, kind, inputs["spec"], region))
        except _NOT_KNOWN:
            self._unknown.append(name)

    def add_schedule(self, name: str, workflow: Mapping[str, Any], times: Mapping[str, Any]) -> None:
        """Add a schedule, whose jobs stand in the source of its workflow."""
        try:
            jobs = [
                replace(
                    self._training(f"{name}.{job}", kind, request, str(workflow["region"])),
                    lifecycle={"run": "scheduled"},
                )
                for job, kind, request in submitted(json.loads(workflow["sourceContents"]))
            ]
            names = tuple(each.name for each in jobs)
            timetable = Timetable(name, times["schedule"], names, times["timeZone"], times.get("paused") is True)
            if not (jobs and timetable.runs_a_month):
                raise ValueError("a schedule runs jobs")
        except _NOT_KNOWN:
            self._unknown.append(name)
        else:
            self._trainings += jobs
            self._timetables.append(timetable)

    def _training(self, name: str, kind: Kind, spec: Any, region: str) -> Training:
        training = Training(kind, name, stored_job(kind, spec), region=region, place=place(name))
        self._empty.estimate(training)
        return training

    def plan(self) -> Plan | None:
        """Return the plan of all that was added."""
        if not (self._trainings or self._unknown or self.region):
            return None
        named = self._empty.with_program(self._trainings, self._timetables, self.built)
        return replace(named, region=self.region, pools=self.pools, unknown=tuple(self._unknown))


def plan_name(plan: Plan, kind: str, name: str) -> str:
    """Return how a plan names the job of a resource: with its kind if it has another one of that name."""
    return titled if (titled := f'{kind} "{name}"') in {each.name for each in plan.trainings} else name


def _restored(value: Any) -> Any:
    """Return a pool as stack files have it: the provider takes some numbers as texts, and empty values."""
    if isinstance(value, Mapping):
        return {key: int(each) if key in _NUMBERS else _restored(each) for key, each in value.items() if each}
    return value
