"""The statements on injected faults: jobs use them up in the order of injection."""

import json
from collections.abc import Callable, Collection, Sequence

from vertex_emulator.database.records import Replica
from vertex_emulator.database.statement_base import Statements
from vertex_emulator.faults import RUN_FAULT_KINDS, InjectedFault


class InjectedFaults(Statements):
    """The statements on injected faults that wait for jobs."""

    def add(self, fault: InjectedFault) -> None:
        """Store a fault for the next jobs."""
        self._insert_row("injected_faults", remaining=fault.count, fault=fault)

    def list_remaining_job_counts_and_faults(self) -> list[tuple[int, InjectedFault]]:
        """List the pending faults, the oldest first, each with the number of jobs that it will still hit."""
        rows = self._connection.execute("SELECT remaining, fault FROM injected_faults ORDER BY sequence")
        return [(row["remaining"], InjectedFault(**json.loads(row["fault"]))) for row in rows]

    def consume_run_fault_or_none(
        self, display_name: str, replicas: Sequence[Replica], machine_types: Collection[str]
    ) -> InjectedFault | None:
        """Use the oldest fault that hits a custom job with these replicas once, and return it; None without one."""
        tasks = {replica.task_name for replica in replicas}
        return self._consume_first_match_or_none(
            lambda fault: (
                fault.kind in RUN_FAULT_KINDS
                and fault.matches(display_name)
                and fault.task_name in tasks
                and (fault.machine_type is None or fault.machine_type in machine_types)
            )
        )

    def consume_fault_of_kind_or_none(self, fault_kind: str, display_name: str) -> InjectedFault | None:
        """Use the oldest fault of a kind that hits a job of that name once, and return it; None without one."""
        return self._consume_first_match_or_none(lambda fault: fault.kind == fault_kind and fault.matches(display_name))

    def delete_all_and_count(self) -> int:
        """Delete all pending faults and return their number."""
        return self._connection.execute("DELETE FROM injected_faults").rowcount

    def _consume_first_match_or_none(self, is_match: Callable[[InjectedFault], bool]) -> InjectedFault | None:
        for row in self._connection.execute("SELECT * FROM injected_faults ORDER BY sequence").fetchall():
            fault = InjectedFault(**json.loads(row["fault"]))
            if is_match(fault):
                query = "UPDATE injected_faults SET remaining = remaining - 1 WHERE sequence = ?"
                self._connection.execute(query, (row["sequence"],))
                self._connection.execute("DELETE FROM injected_faults WHERE remaining < 1")
                return fault
        return None
