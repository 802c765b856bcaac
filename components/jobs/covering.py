"""What the ledgers of a run cover, and the settings that hold there: `ledger.py` sets it, whoever submits reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .identity import as_label, mark


@dataclass(frozen=True)
class LedgerRecord:
    """What a state's `Ledger` records: its `id`, `full_stack` (`organization/project/stack`), and names of jobs.

    `kept_names` are those whose jobs stay when they leave the stack, or once did; `names` are all others. `parent` is
    where they are submitted, and `settings` what holds for them (`Settings.applied`).
    """

    id: str
    full_stack: str
    names: frozenset[str]
    kept_names: frozenset[str]
    parent: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def stack(self) -> str:
        """The name of the stack with its project, `<pulumi project>/<stack>`."""
        return self.full_stack.partition("/")[2]

    def mark(self, job_name: str) -> str:
        """Return the label value of the jobs that this state submits under a name."""
        return mark(self.id, job_name)


_ledgers: dict[str, LedgerRecord] = {}


def cover(record: LedgerRecord) -> None:
    """Set what a ledger covers from now on; its provider does so before any of these jobs is submitted."""
    _ledgers[record.id] = record


def of_stack(stack: str) -> list[LedgerRecord]:
    """Return the ledgers of the stack `<pulumi project>/<stack>`: one for each `TrainingStack`.

    There is none if another program declares the stack, or if `pulumi up --target` has left the ledger out.
    """
    return [record for record in [*_ledgers.values()] if record.stack == stack]


def settings_of(parent: str, name: str) -> Mapping[str, Any]:
    """Return the settings of the `TrainingStack` that a job belongs to, by its name or else by its location.

    The name may be the one that its label has.

    They are empty if `pulumi up --target` has left the ledger out, and where a location without that name has several.
    """
    ledgers = [each for each in [*_ledgers.values()] if each.parent == parent]
    names = [(each, each.names | each.kept_names) for each in ledgers]
    named = [each for each, own in names if name in own or name in map(as_label, own)]
    found = named or ledgers
    return found[0].settings if len(found) == 1 else {}


def registries(parent: str) -> frozenset[str]:
    """Return what the names of images begin with that the stacks of a location build."""
    found = (each.settings.get("registry") for each in [*_ledgers.values()] if each.parent == parent)
    return frozenset(str(each) for each in found if each)
