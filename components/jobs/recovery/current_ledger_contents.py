"""CurrentLedger: what the `Ledger` of the stack records, for the other providers of one run of `pulumi`."""

from dataclasses import dataclass
from functools import cache

from . import job_digests


@dataclass(frozen=True)
class LedgerContents:
    """What a state's `Ledger` records: its `id`, `fully_qualified_stack_name` (`organization/project/stack`), and names
    of jobs.

    `kept_names` are those whose jobs stay when they leave the stack, or once did; `names` are all others.
    """

    id: str
    fully_qualified_stack_name: str
    names: frozenset[str]
    kept_names: frozenset[str]

    @property
    def project_and_stack_name(self) -> str:
        """The name of the stack with its project, `<pulumi project>/<stack>`."""
        return self.fully_qualified_stack_name.partition("/")[2]

    def compute_mark_label_value(self, job_name: str) -> str:
        """Return the label value of the jobs that this state submits under a name."""
        return job_digests.compute_mark_label_value(self.id, job_name)


class CurrentLedger:
    """The ledger that covers the jobs which this run submits: its provider sets it before any of them is submitted."""

    def __init__(self) -> None:
        self._contents: LedgerContents | None = None

    def set_contents(self, contents: LedgerContents) -> None:
        """Set the ledger that covers the jobs submitted from now on."""
        self._contents = contents

    def get_contents_or_none(self, project_and_stack_name: str) -> LedgerContents | None:
        """Return the ledger of the stack `<pulumi project>/<stack>`.

        None if there is none: another program declares the stack, or `pulumi up --target` has left the ledger out.
        """
        contents = self._contents
        return contents if contents and contents.project_and_stack_name == project_and_stack_name else None


@cache
def get_current_ledger() -> CurrentLedger:
    """Return the current ledger of this process, which Pulumi starts and ends with each run, for all providers."""
    return CurrentLedger()
