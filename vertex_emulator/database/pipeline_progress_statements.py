"""The statements on training pipelines: which job each runs, and the model that it uploaded."""

from collections.abc import Sequence

from vertex_emulator.database.records import PipelineProgress
from vertex_emulator.database.statement_base import Statements


class Pipelines(Statements):
    """The statements on the progress of pipelines; a pipeline itself is a row among the jobs."""

    def add_backing_job(self, pipeline_id: str, job_id: str) -> None:
        """Store the id of the job that runs a pipeline's task; add the job in the same transaction."""
        self._insert_row("pipelines", pipeline=pipeline_id, job=job_id)

    def set_uploaded_model(self, pipeline_id: str, model_name: str) -> None:
        """Store the name of the model that a pipeline uploaded."""
        self._connection.execute("UPDATE pipelines SET model = ? WHERE pipeline = ?", (model_name, pipeline_id))

    def set_best_trial_job(self, pipeline_id: str, job_id: str) -> None:
        """Store the id of the job of the best trial that a pipeline's tuning job found."""
        self._connection.execute("UPDATE pipelines SET best_trial_job = ? WHERE pipeline = ?", (job_id, pipeline_id))

    def get_progress_of_started_pipelines(self, pipeline_ids: Sequence[str]) -> dict[str, PipelineProgress]:
        """Return the progress of pipelines by id, without those that have no job yet."""
        marks = ", ".join("?" * len(pipeline_ids))
        rows = self._connection.execute(f"SELECT * FROM pipelines WHERE pipeline IN ({marks})", tuple(pipeline_ids))
        return {row["pipeline"]: PipelineProgress(row["job"], row["model"], row["best_trial_job"]) for row in rows}

    def find_pipeline_id_of_backing_job(self, job_id: str) -> str | None:
        """Return the id of the pipeline whose task a job runs; None if there is none."""
        row = self._select_first("SELECT pipeline FROM pipelines WHERE job = ?", job_id)
        return row["pipeline"] if row else None
