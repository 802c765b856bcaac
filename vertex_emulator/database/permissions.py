"""The permissions that the calls of each job need."""

from collections.abc import Iterable
from dataclasses import dataclass

from vertex_emulator.database.records import Table

MAX_NEEDS = 200
"""Of a job: what it needs beyond that is not stored, as its code may name whatever it likes."""


@dataclass(frozen=True, order=True)
class Need:
    """A permission on a resource: `gs://BUCKET`, `secrets/NAME`, or `project`.

    `lacking` is the place where nothing grants it, such as a folder of the bucket; "" if it is granted, or unknown.
    """

    permission: str
    resource: str
    lacking: str = ""


class Permissions(Table):
    """The statements on what jobs need."""

    def add(self, job_id: str, needs: Iterable[Need]) -> None:
        """Store what a job needs, unless it is deleted."""
        self._connection.executemany(
            "INSERT OR IGNORE INTO permissions SELECT ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM jobs WHERE id = ?)",
            [(job_id, each.permission, each.resource, each.lacking, job_id) for each in needs],
        )

    def of(self, job_id: str) -> set[Need]:
        """Return what a job needs, as far as it is known."""
        rows = self._connection.execute("SELECT * FROM permissions WHERE job = ?", (job_id,))
        return {Need(row["permission"], row["resource"], row["lacking"]) for row in rows}
