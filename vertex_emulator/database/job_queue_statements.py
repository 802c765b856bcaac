"""The statements on the queue: the jobs that wait for room, and the room that others occupy."""

from dataclasses import dataclass

from vertex_api.job_kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database.records import CANCELLING, PENDING, QUEUED, RUNNING, Job
from vertex_emulator.database.statement_base import Statements
from vertex_emulator.times import now_ns

ACTIVE = (PENDING, RUNNING, CANCELLING)
_MARKS = ", ".join("?" * len(ACTIVE))


@dataclass(frozen=True)
class QueuedJob:
    """A custom job in the queue.

    `owner` is its study, else the job itself. `since` is when (ns) the job was created or, if that is later, when a
    trial of its study last left the queue. `slots` is the number of replicas that the job needs.
    """

    id: str
    owner: str
    since: int
    slots: int


class JobQueue(Statements):
    """The statements on the queue."""

    def count_admitted_replicas_by_study_or_job(self) -> dict[str, int]:
        """Count the replicas of the jobs that have left the queue and not yet ended, by owner."""
        rows = self._connection.execute(
            "SELECT coalesce(study, id) AS owner, sum(slots) AS slots FROM jobs"
            f" WHERE state IN ({_MARKS}) AND collection = ? GROUP BY owner",
            (*ACTIVE, CUSTOM_JOB.collection),
        )
        return {row["owner"]: row["slots"] for row in rows}

    def list_admission_candidates(self, limit_per_study: int) -> list[QueuedJob]:
        """List at most that many queued jobs of no study and as many of each study, those that wait longest first.

        The cost does not grow with the length of the queue.
        """
        owners = self._connection.execute(
            f"SELECT id, served FROM jobs WHERE state IN ({_MARKS}) AND collection = ? UNION ALL SELECT NULL, NULL",
            (*ACTIVE, HYPERPARAMETER_TUNING_JOB.collection),
        ).fetchall()
        candidates = []
        for study, served in owners:
            rows = self._connection.execute(
                "SELECT sequence, id, created, slots FROM jobs"
                f" WHERE state = '{QUEUED}' AND collection = ? AND study IS ? ORDER BY sequence LIMIT ?",
                (CUSTOM_JOB.collection, study, limit_per_study),
            )
            for sequence, job, created, slots in rows:
                since = max(created, served or 0)
                candidates.append((since, sequence, QueuedJob(job, study or job, since, slots)))
        return [queued_job for _, _, queued_job in sorted(candidates, key=lambda candidate: candidate[:2])]

    def store_admission_time_of_study_or_job(self, job: Job) -> None:
        """Record that a job leaves the queue now, for its study if it has one."""
        self._connection.execute("UPDATE jobs SET served = ? WHERE id = ?", (now_ns(), job.study or job.id))
