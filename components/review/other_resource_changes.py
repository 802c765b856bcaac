"""The changes of resources that no other finding of a review describes."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..runtime import DYNAMIC_TYPE
from .grant_changes import is_grant
from .image_and_package_changes import IMAGE_TYPE, PACKAGE_TYPE
from .input_changes import find_input_changes
from .job_changes import KINDS_BY_TYPE
from .preview_document import Step
from .schedule_changes import is_part_of_schedule

_BOOKKEEPING_TYPES = {f"{DYNAMIC_TYPE}{name}" for name in ("Completion", "Ledger")}
_OWN_TYPES = {IMAGE_TYPE, PACKAGE_TYPE, *KINDS_BY_TYPE, *_BOOKKEEPING_TYPES}
_OPERATIONS_WITHOUT_CHANGE = ("same", "read", "refresh")


@dataclass(frozen=True)
class OtherChange:
    """A change of a resource that no other finding describes; `fields` are the inputs that differ."""

    op: str
    type: str
    name: str
    fields: tuple[str, ...]


def find_changes_of_other_resources(steps: Iterable[Step]) -> list[OtherChange]:
    """Find the changes of resources that no other finding describes, and that are more than a group of others."""
    return [
        OtherChange(
            step.op,
            step.type,
            step.name,
            tuple(sorted({str(change.path[0]) for change in find_input_changes(step)})),
        )
        for step in steps
        if step.op not in _OPERATIONS_WITHOUT_CHANGE and step.type not in _OWN_TYPES and not is_grant(step)
        if not step.is_component and not is_part_of_schedule(step)
    ]
