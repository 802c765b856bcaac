"""The statements on training pipelines: which job each runs, and the model that it uploaded."""

from collections.abc import Sequence

from vertex_emulator.database.records import PipelineProgress
from vertex_emulator.database.statement_base import Statements


class Pipelines(Statements):
    """The statements on the progress of pipelines; a pipeline itself is a row among the jobs."""

    def set_job(self, pipeline: str, job: str) -> None:
        """Store the id of the job that runs a pipeline's task; add the job in the same transaction."""
        self._insert_row("pipelines", pipeline=pipeline, job=job)

    def set_model(self, pipeline: str, model: str) -> None:
        """Store the name of the model that a pipeline uploaded."""
        self._connection.execute("UPDATE pipelines SET model = ? WHERE pipeline = ?", (model, pipeline))

    def get_progress(self, pipelines: Sequence[str]) -> dict[str, PipelineProgress]:
        """Return the progress of pipelines by id, without those that have no job yet."""
        marks = ", ".join("?" * len(pipelines))
        rows = self._connection.execute(f"SELECT * FROM pipelines WHERE pipeline IN ({marks})", tuple(pipelines))
        return {row["pipeline"]: PipelineProgress(row["job"], row["model"]) for row in rows}

    def get_pipeline_of_job(self, job: str) -> str | None:
        """Return the id of the pipeline whose task a job runs; None if there is none."""
        row = self._select_first("SELECT pipeline FROM pipelines WHERE job = ?", job)
        return row["pipeline"] if row else None
