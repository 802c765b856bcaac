"""What an update changes of a stack's guardrails, and what its jobs break of those that held before."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from vertex_api.job import Job

from ..plan import guardrails
from ..plan.guardrails import Rules
from ..plan.limits import rank
from ..plan.plan import PERSISTENT_RESOURCE, Plan
from .changes import show

Change = Literal["removed", "loosened", "changed", "tightened", "added"]
_ORDER: tuple[Change, ...] = ("removed", "loosened", "changed", "tightened", "added")
"""The most dangerous ones first."""


@dataclass(frozen=True)
class RuleChange:
    """A guardrail that an update changes, with both values as texts, None for no value.

    It is `changed` if it allows something more, and something else no longer.
    """

    rule: str
    change: Change
    old_text: str | None
    new_text: str | None

    @property
    def is_loose(self) -> bool:
        """Whether it allows what was not allowed before."""
        return self.change in _ORDER[:3]


def changes(old: Rules, new: Rules) -> list[RuleChange]:
    """Find the guardrails that differ, those first that allow more."""
    found = [
        RuleChange(rule, _change(rule, old.get(rule), new.get(rule)), show(old.get(rule)), show(new.get(rule)))
        for rule in sorted({*old, *new})
        if old.get(rule) != new.get(rule)
    ]
    return sorted(found, key=lambda each: _ORDER.index(each.change))


def _change(rule: str, old: Any, new: Any) -> Change:
    if old is None or new is None:
        return "added" if old is None else "removed"
    is_looser, is_stricter = (_allows_more(rule, *pair) for pair in ((old, new), (new, old)))
    return "changed" if is_looser == is_stricter else "loosened" if is_looser else "tightened"


def _allows_more(rule: str, old: Any, new: Any) -> bool:
    """Return whether the new value of a guardrail allows something that the old one does not."""
    if rule == "requiredLabels":
        return not {*old} <= {*new}
    if isinstance(new, list):
        return not all(guardrails.is_allowed(rule, each, old) for each in new)
    return rank(rule, old) < rank(rule, new)


def broken(old: Rules, new: Rules, after: Plan) -> Iterator[str]:
    """Find what the jobs after an update break of the guardrails that held before it and allow more now."""
    loose = {each.rule: old[each.rule] for each in changes(old, new) if each.is_loose}
    judged = replace(after, stack={**after.stack, "guardrails": loose})
    for training in after.trainings:
        if isinstance(training.spec, Job):
            found = guardrails.violations(loose, training.spec, {}, after.labels, after.built)
            yield from (str(training.place(*violation)) for violation in found)
    for index, pool in enumerate(after.pools):
        at = (PERSISTENT_RESOURCE, "resourcePools", index, "machineSpec")
        machine = guardrails.machine_violations(loose, pool.get("machineSpec", {}), at)
        yield from (str(after.file(*violation)) for violation in machine)
    yield from map(str, judged.sum_problems())


def warn_factor(old: Rules | None, new: Rules) -> float:
    """Return by how much a cost must grow for a warning: an update that allows more growth is judged by the old one."""
    return min(guardrails.warn_factor(rules) for rules in (old, new) if rules is not None)
