"""What each container of a job has used."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pydantic_core import from_json

from vertex_emulator.database.records import Replica, Table


@dataclass(frozen=True)
class Usage:
    """What a container has used: its highest memory and the limit of that in bytes, processor time in ns.

    `received` and `sent` are bytes of its networks.
    """

    peak_memory: int = 0
    memory_limit: int = 0
    cpu: int = 0
    received: int = 0
    sent: int = 0


class Usages(Table):
    """The statements on what containers have used."""

    def put(self, job_id: str, used: Mapping[Replica, Usage]) -> None:
        """Store what containers of a job have used so far, unless the job is deleted."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO usage SELECT ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM jobs WHERE id = ?)",
            [
                (job_id, replica.pool, replica.index, replica.attempt, json.dumps(asdict(usage)), job_id)
                for replica, usage in used.items()
            ],
        )

    def of(self, job_id: str) -> dict[Replica, Usage]:
        """Return what a job's containers have used, as far as it is known."""
        rows = self._connection.execute("SELECT * FROM usage WHERE job = ? ORDER BY pool, 3, attempt", (job_id,))
        return {Replica(row["pool"], row["index"], row["attempt"]): Usage(**from_json(row["used"])) for row in rows}
