"""The statements on injected faults: each is used up by the jobs it is for, in the order of injection."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import asdict

from vertex_emulator.database.records import Replica
from vertex_emulator.injected_faults import InjectedFault


class InjectedFaults:
    """The statements, valid while their transaction is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, fault: InjectedFault) -> None:
        """Keep a fault for the jobs to come."""
        self._connection.execute(
            "INSERT INTO injected_faults (remaining, fault) VALUES (?, ?)", (fault.count, json.dumps(asdict(fault)))
        )

    def list_pending(self) -> list[tuple[int, InjectedFault]]:
        """The faults that wait for jobs, the oldest first, each with how many jobs it is still for."""
        rows = self._connection.execute("SELECT remaining, fault FROM injected_faults ORDER BY sequence")
        return [(row["remaining"], InjectedFault(**json.loads(row["fault"]))) for row in rows]

    def use_fault(self, display_name: str, places: Sequence[Replica]) -> InjectedFault | None:
        """Use up, once, the oldest fault that strikes a custom job with these replicas; None when there is none."""
        tasks = {place.task for place in places}
        return self._take(
            lambda fault: fault.kind != "quota" and fault.matches(display_name) and fault.replica in tasks
        )

    def use_quota_fault(self, display_name: str) -> bool:
        """Use up, once, the oldest fault that refuses a job of that name; False when there is none."""
        return self._take(lambda fault: fault.kind == "quota" and fault.matches(display_name)) is not None

    def clear(self) -> int:
        """Forget all faults that wait; how many there were."""
        return self._connection.execute("DELETE FROM injected_faults").rowcount

    def _take(self, strikes: Callable[[InjectedFault], bool]) -> InjectedFault | None:
        for row in self._connection.execute("SELECT * FROM injected_faults ORDER BY sequence").fetchall():
            fault = InjectedFault(**json.loads(row["fault"]))
            if strikes(fault):
                self._connection.execute(
                    "UPDATE injected_faults SET remaining = remaining - 1 WHERE sequence = ?", (row["sequence"],)
                )
                self._connection.execute("DELETE FROM injected_faults WHERE remaining < 1")
                return fault
        return None
