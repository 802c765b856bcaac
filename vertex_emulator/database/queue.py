"""The statements on the queue: who waits for room, and who takes it up."""

import sqlite3
from dataclasses import dataclass

from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database.records import CANCELLING, PENDING, QUEUED, RUNNING, Job
from vertex_emulator.times import now_ns

ACTIVE = (PENDING, RUNNING, CANCELLING)
_MARKS = ", ".join("?" * len(ACTIVE))


@dataclass(frozen=True)
class QueuedJob:
    """A custom job in the queue.

    `owner` is its study, else the job itself, and `since` is when (ns) that came into the queue or, for a study, last
    had a trial leave it; `slots` is how many replicas the job needs.
    """

    id: str
    owner: str
    since: int
    slots: int


class JobQueue:
    """The statements, valid while their transaction is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def count_replicas_by_owner(self) -> dict[str, int]:
        """Replicas of the jobs that have left the queue and not yet ended, by owner."""
        rows = self._connection.execute(
            "SELECT coalesce(study, id) AS owner, sum(slots) AS slots FROM jobs"
            f" WHERE state IN ({_MARKS}) AND collection = ? GROUP BY owner",
            (*ACTIVE, CUSTOM_JOB.collection),
        )
        return {row["owner"]: row["slots"] for row in rows}

    def list_candidates(self, limit: int) -> list[QueuedJob]:
        """At most `limit` waiting jobs of no study, and as many of each study, those that wait longest first.

        The cost does not grow with the length of the queue.
        """
        owners = self._connection.execute(
            f"SELECT id, served FROM jobs WHERE state IN ({_MARKS}) AND collection = ? UNION ALL SELECT NULL, NULL",
            (*ACTIVE, HYPERPARAMETER_TUNING_JOB.collection),
        ).fetchall()
        found = []
        for study, served in owners:
            rows = self._connection.execute(
                "SELECT sequence, id, created, slots FROM jobs"
                f" WHERE state = '{QUEUED}' AND collection = ? AND study IS ? ORDER BY sequence LIMIT ?",
                (CUSTOM_JOB.collection, study, limit),
            )
            for sequence, job, created, slots in rows:
                since = max(created, served or 0)
                found.append((since, sequence, QueuedJob(job, study or job, since, slots)))
        return [waiting for _, _, waiting in sorted(found, key=lambda each: each[:2])]

    def mark_admitted(self, job: Job) -> None:
        """Note that a job leaves the queue."""
        self._connection.execute("UPDATE jobs SET served = ? WHERE id = ?", (now_ns(), job.study or job.id))
