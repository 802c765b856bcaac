"""The statements on old jobs and operations."""

from collections.abc import Collection, Iterator, Sequence

from vertex_emulator.database.job_queue_statements import ACTIVE
from vertex_emulator.database.records import QUEUED
from vertex_emulator.database.statement_base import Statements

_UNFINISHED = ", ".join(f"'{state}'" for state in (QUEUED, *ACTIVE))
_IS_OLD = "{0}.state NOT IN (" + _UNFINISHED + ") AND coalesce({0}.ended, {0}.updated) < :before"
_SELECT_OLD_JOBS = f"""
SELECT id FROM jobs WHERE study IS NULL AND {_IS_OLD.format("jobs")} AND NOT EXISTS (
  SELECT 1 FROM pipelines JOIN jobs AS owner ON owner.id = pipelines.pipeline
  WHERE pipelines.job = jobs.id AND NOT ({_IS_OLD.format("owner")})
) ORDER BY sequence
"""


class Pruning(Statements):
    """The statements on what a prune removes; times in ns since 1970."""

    def list_old_job_ids(self, ended_before: int) -> list[str]:
        """List ids of jobs that ended before a time, without the jobs of trials and of pipelines that are not old."""
        return [row["id"] for row in self._connection.execute(_SELECT_OLD_JOBS, {"before": ended_before})]

    def list_given_and_trial_job_ids(self, job_ids: Sequence[str]) -> list[str]:
        """List the given ids, and those of the jobs of their trials."""
        trial_jobs = (
            row["id"]
            for job_id in job_ids
            for row in self._connection.execute("SELECT id FROM jobs WHERE study = ?", (job_id,))
        )
        return [*job_ids, *trial_jobs]

    def delete_jobs_with_trials(self, job_ids: Sequence[str]) -> None:
        """Delete jobs with their trials, the trials' jobs, and all messages."""
        self._connection.executemany("DELETE FROM jobs WHERE id = ?", [(job_id,) for job_id in job_ids])

    def count_old_operations(self, ended_before: int) -> int:
        """Count the operations that ended before a time."""
        query = "SELECT count(*) FROM operations WHERE created < ?"
        return int(self._connection.execute(query, (ended_before,)).fetchone()[0])

    def delete_old_operations(self, ended_before: int) -> None:
        """Delete the operations that ended before a time."""
        self._connection.execute("DELETE FROM operations WHERE created < ?", (ended_before,))

    def iterate_json_specs_of_models_schedules_and_other_jobs(self, excluded_job_ids: Collection[str]) -> Iterator[str]:
        """Yield the specs, as JSON, of all models and schedules, and of all jobs but some and the trials of those."""
        for row in self._connection.execute("SELECT id, study, spec FROM jobs"):
            if row["id"] not in excluded_job_ids and row["study"] not in excluded_job_ids:
                yield row["spec"]
        for table, column in (("models", "spec"), ("schedules", "jobs"), ("schedule_runs", "jobs")):
            for row in self._connection.execute(f"SELECT {column} AS spec FROM {table}"):
                yield row["spec"]
