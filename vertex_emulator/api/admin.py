"""What the emulator's own command line asks a running emulator for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, Transaction
from vertex_emulator.errors import ApiError, InvalidFault
from vertex_emulator.injected_faults import InjectedFault


@dataclass(frozen=True)
class Admin:
    """Answers for `status`, `stop --if-idle`, `logs` and `inject`; `capacity` is in replicas."""

    database: Database
    data: DataFolder
    capacity: int

    def status(self) -> dict[str, Any]:
        """Counts of jobs by state, trials' jobs left out, how full the machine is, and the faults that wait."""
        counts: dict[str, int] = {}
        with self.database.read_transaction() as transaction:
            for job in transaction.list_jobs():
                counts[job.state] = counts.get(job.state, 0) + 1
            active = len(transaction.list_unfinished_jobs())
            slots = sum(transaction.queue.count_replicas_by_owner().values())
            faults = _faults(transaction)
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
        with self.database.read_transaction() as transaction:
            job = transaction.get_job(job_id)
            progress = transaction.pipelines.get_progress([job_id]).get(job_id)
        if job is None:
            return None
        error = job.ending.message if job.is_terminal and job.ending else ""
        log = {"job": progress.job if progress else job.visible_resource[1], "trial": job.trial}
        return {"name": job.name, "state": job.state, "error": error, "log": log}

    def faults(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST takes a fault for the jobs to come, GET lists those that wait, DELETE forgets them. Raises ApiError."""
        match method:
            case "POST":
                return self._inject(body)
            case "DELETE":
                with self.database.write_transaction() as transaction:
                    return {"cleared": transaction.injected_faults.clear()}
        with self.database.read_transaction() as transaction:
            return {"faults": _faults(transaction)}

    def _inject(self, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            fault = InjectedFault.parse(body)
        except InvalidFault as error:
            raise ApiError("INVALID_ARGUMENT", str(error)) from error
        with self.database.write_transaction() as transaction:
            transaction.injected_faults.add(fault)
        return {"fault": fault.to_json()}


def _faults(transaction: Transaction) -> list[dict[str, Any]]:
    return [
        {"remaining": count, "fault": fault.to_json()} for count, fault in transaction.injected_faults.list_pending()
    ]
