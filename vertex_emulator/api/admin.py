"""What the emulator's own command line asks a running emulator for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Store, Transaction
from vertex_emulator.errors import ApiError
from vertex_emulator.injected_faults import BadFault, Fault


@dataclass(frozen=True)
class Admin:
    """Answers for `status`, `stop --if-idle`, `logs` and `inject`; `capacity` is in replicas."""

    store: Store
    data: DataFolder
    capacity: int

    def status(self) -> dict[str, Any]:
        """Counts of jobs by state, trials' jobs left out, how full the machine is, and the faults that wait."""
        counts: dict[str, int] = {}
        with self.store.reading() as look:
            for job in look.jobs():
                counts[job.state] = counts.get(job.state, 0) + 1
            active = len(look.unfinished())
            slots = sum(look.queue.in_use().values())
            faults = _faults(look)
        return {
            "data": str(self.data.root),
            "jobs": counts,
            "unfinished": active,
            "replicas": {"running": slots, "capacity": self.capacity},
            "faults": faults,
        }

    def job(self, job_id: str) -> dict[str, Any] | None:
        """Name, state and error of a job by its bare id, and where its log is: `job`, and `trial` or None.

        The log of a pipeline is that of its job, once it has one.
        """
        with self.store.reading() as look:
            job = look.job(job_id)
            progress = look.pipelines.progress([job_id]).get(job_id)
        if job is None:
            return None
        error = job.ending.message if job.is_terminal and job.ending else ""
        log = {"job": progress.job if progress else job.shown_as[1], "trial": job.trial}
        return {"name": job.name, "state": job.state, "error": error, "log": log}

    def faults(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST takes a fault for the jobs to come, GET lists those that wait, DELETE forgets them. Raises ApiError."""
        match method:
            case "POST":
                return self._inject(body)
            case "DELETE":
                with self.store.transaction() as change:
                    return {"cleared": change.injections.clear()}
        with self.store.reading() as look:
            return {"faults": _faults(look)}

    def _inject(self, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            fault = Fault.parse(body)
        except BadFault as error:
            raise ApiError("INVALID_ARGUMENT", str(error)) from error
        with self.store.transaction() as change:
            change.injections.add(fault)
        return {"fault": fault.described()}


def _faults(look: Transaction) -> list[dict[str, Any]]:
    return [{"remaining": count, "fault": fault.described()} for count, fault in look.injections.waiting()]
