"""The roles that a preview grants or revokes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .input_changes import format_short_value_or_none, is_value_unknown_in_preview
from .preview_document import Step

_GRANT_SUFFIXES = ("iammember", "iambinding", "iampolicy", "iammemberremove")
_GRANT_FIELDS = ("role", "member", "members", "condition", "policyData")
_LOCATION_FIELDS = ("project", "location")


@dataclass(frozen=True)
class Grant:
    """A role that appears (`is_new`) or goes. `target` is what it is granted on."""

    is_new: bool
    role: str
    member: str
    target: str


def find_grant_changes(steps: Iterable[Step]) -> list[Grant]:
    """Find the roles that a preview grants or revokes. A changed grant is one that goes and one that appears."""
    grants: list[Grant] = []
    for step in steps:
        if not is_grant(step) or step.op == "same":
            continue
        sides = (step.old_inputs, False), (step.new_inputs, True)
        described = [_build_grant(inputs, is_new) for inputs, is_new in sides if inputs is not None]
        if len({(each.role, each.member, each.target) for each in described}) == len(described):
            grants += described
    return grants


def is_grant(step: Step) -> bool:
    """Return whether a step is of a resource that grants roles."""
    return step.type.lower().endswith(_GRANT_SUFFIXES)


def _build_grant(inputs: Any, is_new: bool) -> Grant:
    members = inputs.get("member") or inputs.get("members") or inputs.get("policyData")
    targets = [key for key in sorted(inputs) if key not in (*_GRANT_FIELDS, *_LOCATION_FIELDS)]
    target_text = " ".join(str(format_short_value_or_none(inputs[key])) for key in targets)
    target = target_text or str(format_short_value_or_none(inputs.get("project")))
    role = str(format_short_value_or_none(inputs.get("role")) or "a policy")
    condition = f" if {_format_condition(inputs['condition'])}" if inputs.get("condition") else ""
    return Grant(is_new, role + condition, str(format_short_value_or_none(members)), target)


def _format_condition(condition: Any) -> str:
    """Return a condition's expression, whole: what limits a grant may stand anywhere in it."""
    expression = condition.get("expression") if isinstance(condition, Mapping) else None
    if isinstance(expression, str) and not is_value_unknown_in_preview(expression):
        return expression
    return str(format_short_value_or_none(condition))
