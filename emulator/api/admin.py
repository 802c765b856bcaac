"""What the emulator's own command line asks a running emulator for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emulator.data import DataFolder
from emulator.store import Store


@dataclass(frozen=True)
class Admin:
    """Answers for `status`, `stop --if-idle` and `logs`; `capacity` is in replicas."""

    store: Store
    data: DataFolder
    capacity: int

    def status(self) -> dict[str, Any]:
        """Counts of jobs by state, trials' jobs left out, and how full the machine is."""
        counts: dict[str, int] = {}
        with self.store.reading() as look:
            for job in look.jobs():
                counts[job.state] = counts.get(job.state, 0) + 1
            active = len(look.unfinished())
            slots = look.slots_in_use()
        return {
            "data": str(self.data.root),
            "jobs": counts,
            "unfinished": active,
            "replicas": {"running": slots, "capacity": self.capacity},
        }

    def job(self, job_id: str) -> dict[str, Any] | None:
        """Name, state and error of a job by its bare id, and where its log is: `job`, and `trial` or None."""
        with self.store.reading() as look:
            job = look.job(job_id)
        if job is None:
            return None
        error = job.ending.message if job.is_terminal and job.ending else ""
        log = {"job": job.shown_as[1], "trial": job.trial}
        return {"name": job.name, "state": job.state, "error": error, "log": log}
